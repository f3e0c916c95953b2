"""Approval of the packages of scripts."""

from __future__ import annotations

import json
import re
import select
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from callslip import _core
from callslip._base.options import check_called_with
from callslip._threads.pool import in_thread
from callslip.errors import ScriptRefused, UsageError
from callslip.sandbox._answerers import find_person
from callslip.sandbox._events import InputRequest
from callslip.sandbox._steps import awaited_sync

if TYPE_CHECKING:
    from callslip.sandbox._answerers import Answerer

__all__ = ["Deps", "PackageApproval"]

Deps: TypeAlias = "Literal['ask'] | Sequence[str] | Callable[[list[str]], bool | Awaitable[bool]]"
"""`"ask"` for a person, a list of approved packages, or a function that decides."""

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_YES = {"y", "yes"}


class PackageApproval:
    """Approval of the packages of scripts.

    A person is never asked twice about a package that was approved.

    Raises:
        UsageError: `deps` is neither `"ask"`, a list of names and requirements, nor a function.
    """

    def __init__(self, deps: Deps) -> None:
        self._names: set[str] = set()
        self._requirements: set[str] = set()
        self._decide: Callable[[list[str]], Any] | None = None
        self.asks: bool = deps == "ask"
        if self.asks:
            return
        if callable(deps):
            check_called_with("deps", deps, "the list of requirements")
            self._decide = deps
            return
        if isinstance(deps, str) or not isinstance(deps, Sequence):
            raise UsageError(f"expected deps='ask', a list of packages or a function: got {deps!r}")
        for one in deps:
            if not isinstance(one, str):
                raise UsageError(f"expected deps to be a list of strings: got {one!r} in it")
            if _NAME.fullmatch(one):
                self._names.add(_normalize_name(one))
            else:
                self._requirements.add(_requirement(one))

    def summary(self) -> str:
        """Return which packages a script may declare, for the description of the tool.

        Empty if it may declare none, as where somebody should be asked and nobody is there.
        """
        if self.asks and find_person() is None:
            return ""
        if self.asks or self._decide is not None:
            return "others than the standard library's have to be approved"
        known = sorted(self._names | self._requirements)
        return f"only these: {', '.join(known)}" if known else ""

    def unapproved(self, dependencies: Sequence[str], names: Sequence[str]) -> list[str]:
        """Return the requirements that are not approved yet. A name alone approves no extras."""
        return [
            requirement
            for requirement, name in zip(dependencies, names, strict=True)
            if (name not in self._names or "[" in requirement.partition(";")[0])
            and requirement not in self._requirements
        ]

    def unapproved_packages(self, packages: Sequence[str], declared: Sequence[str]) -> list[str]:
        """Return the dependencies that are not approved yet, as `name==version`.

        A list of packages also approves their dependencies, which are reported in an event.
        """
        if not self.asks and self._decide is None:
            return []
        known = {*declared, *self._names, *map(_name, self._requirements)}
        return [one for one in packages if _name(one) not in known]

    def decide(self, requirements: list[str], attend: Callable[[], None]) -> None:
        """Ask for a decision, in this thread.

        Raises:
            ScriptRefused: They may not be installed.
        """
        if self._decide is not None:
            said = self._decide(list(requirements))
            if hasattr(said, "__await__"):
                said = awaited_sync(said, attend)
            self._apply(said, requirements)
            return

        def wait(descriptor: int | None) -> None:
            attend()
            _wait(descriptor)

        answer = self._person(requirements).ask(_question(requirements), wait)
        self._remember((answer or "").strip().lower() in _YES, requirements)

    async def decide_async(self, requirements: list[str]) -> None:
        """Ask for a decision without blocking the event loop, like `decide`."""
        if self._decide is not None:
            said: Any = await in_thread(self._decide, list(requirements))
            if hasattr(said, "__await__"):
                said = await cast("Awaitable[Any]", said)
            self._apply(said, requirements)
            return
        answer = await self._person(requirements).ask_async(_question(requirements))
        self._remember((answer or "").strip().lower() in _YES, requirements)

    def _person(self, requirements: list[str]) -> Answerer:
        person = find_person() if self.asks else None
        if person is None:
            raise _denial(requirements)
        return person

    def _apply(self, said: object, requirements: list[str]) -> None:
        if not isinstance(said, bool):
            raise UsageError(f"expected deps(requirements) to return True or False: got {said!r}")
        if not said:
            raise _denial(requirements)

    def _remember(self, said: bool, requirements: list[str]) -> None:  # noqa: FBT001  # private
        self._apply(said, requirements)
        self._requirements.update(requirements)


def _question(requirements: list[str]) -> InputRequest:
    packages = ", ".join(requirements)
    return InputRequest(
        f"a script of the model wants to install {packages}: may it? [y/N] ", asker="callslip"
    )


def _wait(descriptor: int | None) -> None:
    poll = select.poll()
    if descriptor is not None:
        poll.register(descriptor, select.POLLIN)
    poll.poll(100)


def _denial(requirements: list[str]) -> ScriptRefused:
    packages = ", ".join(requirements)
    return ScriptRefused(
        f"these packages are not approved: {packages}; do without them", "dependency_denied"
    )


def _requirement(text: str) -> str:
    """Return a requirement in the normalised form of the declarations of scripts."""
    read = json.loads(_core.read_script(f"# dependencies = [{json.dumps(text)}]\npass\n"))
    if "refused" in read or len(read["dependencies"]) != 1:
        why = read.get("refused", {}).get("message", "it is not a requirement")
        raise UsageError(f"expected a package or a requirement in deps: got {text!r} ({why})")
    requirement: str = read["dependencies"][0]
    return requirement


def _name(requirement: str) -> str:
    found = _NAME.match(requirement)
    return _normalize_name(found[0]) if found else requirement


def _normalize_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
