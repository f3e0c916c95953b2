"""Follow a text by a GBNF grammar, as llama.cpp does: by what may come next, in every way there is.

llguidance's converter cuts a text into words first, which free text in our GBNF is not made for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, eq=False)
class Characters:
    """One character, in one of the ranges or in none of them."""

    negated: bool
    ranges: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    ways: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    node: Node
    least: int
    most: int | None


Node: TypeAlias = Characters | Rule | Choice | Row | Repeat
Stack: TypeAlias = "tuple[Node, Stack] | None"

_COUNT = re.compile(r"[?*+]|\{(\d+)(?:(,)(\d*))?\}")


class Grammar:
    """The rules of a GBNF text, one a line."""

    def __init__(self, text: str) -> None:
        self.rules: dict[str, Node] = {}
        for line in text.splitlines():
            name, _, self._text = line.partition(" ::= ")
            self._at = 0
            self.rules[name] = self._choice()
            assert self._at == len(self._text), line

    def admits(self, text: str) -> bool:
        """Whether the grammar has exactly this text."""
        stacks = self._ready((Rule("root"), None))
        for character in text:
            after: set[Stack] = set()
            for stack in stacks:
                if stack is None:
                    continue
                node, rest = stack
                assert isinstance(node, Characters)
                if any(low <= character <= high for low, high in node.ranges) != node.negated:
                    after |= self._ready(rest)
            stacks = after
        return None in stacks

    def _ready(self, stack: Stack) -> set[Stack]:
        """The stacks with one character on top, or nothing at all."""
        ready: set[Stack] = set()
        seen: set[Stack] = set()
        pending = [stack]
        while pending:
            stack = pending.pop()
            if stack in seen:
                continue
            seen.add(stack)
            if stack is None:
                ready.add(stack)
                continue
            node, rest = stack
            match node:
                case Characters():
                    ready.add(stack)
                case Rule(name):
                    pending.append((self.rules[name], rest))
                case Choice(ways):
                    pending.extend((way, rest) for way in ways)
                case Row(parts):
                    for part in reversed(parts):
                        rest = (part, rest)
                    pending.append(rest)
                case Repeat(one, least, most):
                    if least == 0:
                        pending.append(rest)
                    if least == 0 and most is None:
                        pending.append((one, (node, rest)))
                    elif most != 0:
                        fewer = None if most is None else most - 1
                        pending.append((one, (Repeat(one, max(least - 1, 0), fewer), rest)))
        return ready

    def _take(self, mark: str) -> bool:
        found = self._text.startswith(mark, self._at)
        self._at += len(mark) if found else 0
        return found

    def _choice(self) -> Node:
        ways = [self._row()]
        while self._take("|"):
            ways.append(self._row())
        return Choice(tuple(ways))

    def _row(self) -> Node:
        parts: list[Node] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            if not self._take(" "):
                parts.append(self._counted(self._one()))
        return Row(tuple(parts))

    def _one(self) -> Node:
        if self._take('"'):
            text: list[Node] = []
            while not self._take('"'):
                character = self._character()
                text.append(Characters(negated=False, ranges=((character, character),)))
            return Row(tuple(text))
        if self._take("("):
            inside = self._choice()
            assert self._take(")")
            return inside
        if self._take("["):
            negated, ranges = self._take("^"), []
            while not self._take("]"):
                low = self._character()
                ranges.append((low, self._character() if self._take("-") else low))
            return Characters(negated, tuple(ranges))
        name = re.compile(r"[a-z0-9-]+").match(self._text, self._at)
        assert name, self._text[self._at :]
        self._at = name.end()
        return Rule(name[0])

    def _counted(self, node: Node) -> Node:
        count = _COUNT.match(self._text, self._at)
        if not count:
            return node
        self._at = count.end()
        if count[1] is None:
            return Repeat(node, int(count[0] == "+"), 1 if count[0] == "?" else None)
        least = int(count[1])
        return Repeat(
            node, least, least if count[2] is None else int(count[3]) if count[3] else None
        )

    def _character(self) -> str:
        if not self._take("\\"):
            self._at += 1
            return self._text[self._at - 1]
        kind = self._text[self._at]
        self._at += 1
        digits = {"x": 2, "u": 4, "U": 8}.get(kind, 0)
        if not digits:
            return {"n": "\n", "t": "\t", "r": "\r"}.get(kind, kind)
        self._at += digits
        return chr(int(self._text[self._at - digits : self._at], 16))
