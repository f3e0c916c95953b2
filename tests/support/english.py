"""Counts patterns of stilted English in the docs, and in the comments of the code.

    python tests/support/english.py             the figure of each kind of file, and of each pattern
    python tests/support/english.py FILE ...    each hit in these files
    python tests/support/english.py --worst     the files with the most hits
    python tests/support/english.py --lower     lowers the figures in tests/data/english.json

Read are pages of Markdown, docstrings and `#` comments of Python and its stubs, the comments of
Rust, and `--` comments of SQL. Code, quotations, questions and strings are not, nor are the
docstrings of tools, which models read. A figure is the number of hits in 100 sentences. Some hits
are fine where they stand; in plain technical prose they are rare.
"""

from __future__ import annotations

import ast
import io
import json
import math
import re
import sys
import textwrap
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "tests/data/english.json"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
KINDS = ("md", "py", "pyi", "rs", "sql")
FOLDERS = {"py": "python/callslip", "pyi": "python/callslip", "rs": "src", "sql": "src"}

WORDS = re.compile(r"\b(what|whatever|where|wherever|who|whoever|whose)\b", re.IGNORECASE)
PATTERNS = {
    # "What is sent is checked" names no subject until the reader has solved it.
    "clause": WORDS,
    "negated": re.compile(r"\b(nothing|nobody|no one)\b", re.IGNORECASE),
    "pronoun": re.compile(
        r"\bof (?:its|their|your|his) own\b|\b(?:that|those) of\b|\bof (?:which|whom)\b"
        r"|\bthe (?:former|latter)\b|\b(?:and|nor) so (?:is|are|do|does)\b",
        re.IGNORECASE,
    ),
    "event": re.compile(
        r"\btold\b|\b(?:is|are|was|were|be|been|being) (?:asked|said|given|rung)\b"
        r"|\b(?:has|have|had) the \w+ \w+ed\b",
        re.IGNORECASE,
    ),
    "connective": re.compile(
        r"\balso (?:if|where|when|without|after|of|those)\b|\bbut for\b|\bmend(?:s|ed|ing)?\b"
        r"|(?<!all )(?<!many )(?<!several )(?<!two )(?<!both )\bat once\b|\bthere(?:of|in|by)\b"
        r"|\b(?:alike|anew|beside|likewise)\b|\bwhereby\b|\bhence\b|\bthus\b|\bso[.;]",
        re.IGNORECASE,
    ),
    "word": re.compile(
        r"\bthe machine\b|\bunder a grammar\b|\breadings?\b(?= of it)|\b(?:one|possible) reading\b"
        r"|\b(?:at rest|rests|misfits?|losses|foreign|in vain|for ever)\b|\bonce and for all\b"
        r"|\b(?:a|the|its|no|own|each) bounds?\b|\bthe (?:price|gain)\b",
        re.IGNORECASE,
    ),
    "passive": re.compile(r"\bmay be \w+(?:ed|en)\b", re.IGNORECASE),
}
SHORT = "short"
"""A whole comment of up to three words, which repeats the name of its item."""

_CODE = re.compile(r"```.*?```|~~~.*?~~~|``.*?``|`[^`\n]*`", re.DOTALL)
_QUOTED = re.compile(r"\"[^\"\n]{1,120}\"|“[^”]*”|\*[^*\n]+\*")
_BLOCKS = re.compile(r"\n\s*\n|\n(?=[#|*-])|\n(?=\s*\*{0,2}\w+(?: \([^)]*\))?: )")
_HEADING = re.compile(r"^(Args|Attributes|Returns|Raises|Yields|Example|Examples|Note):\s*$")
_ENTRY = re.compile(r"^\s*\*{0,2}\w+(?: \([^)]*\))?: ")
_DIRECTIVE = re.compile(
    r"^(noqa|type:|pragma|pyright:|ruff:|mypy:|fmt:|!|SPDX|SAFETY:|[-=]{3,})", re.IGNORECASE
)
_RUST = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|b?r(?P<hash>\#*)".*?"(?P=hash)"""
    r"""|b?"(?:\\.|[^"\\])*"|b?'(?:\\[^\n]{1,10}?|[^'\\\n])'""",
    re.DOTALL,
)
_SQL = re.compile(r"(?P<comment>--[^\n]*)|'(?:''|[^'])*'")


def sentences(text: str) -> list[str]:
    """Return the sentences of a page of Markdown or of a comment, without code and quotations."""
    text = _QUOTED.sub(" x ", _CODE.sub(" x ", text))
    text = re.sub(r"\]\([^)]*\)", "]", text)
    found = [
        one.strip()
        for block in _BLOCKS.split(text)
        for one in re.findall(r".+?(?:[.!?](?=\s|$)|$)", " ".join(block.split()))
    ]
    return [one for one in found if len(one.split()) > 2]


def clauses(text: str) -> list[str]:
    """Return the sentences that have a clause with "what" or "where", once for each."""
    return [one for one in sentences(text) if not one.endswith("?") for _ in WORDS.findall(one)]


def hits(text: str) -> Iterator[tuple[str, str]]:
    """Yield each hit in a text: the name of the pattern, and the sentence."""
    for sentence in sentences(text):
        if not sentence.endswith("?"):
            for name, pattern in PATTERNS.items():
                for _ in pattern.finditer(sentence):
                    yield name, sentence


def texts(path: Path) -> list[str]:
    """Return what a file says in English: a page as one text, each comment of code as one."""
    source = path.read_text("utf-8")
    match path.suffix:
        case ".md":
            return [source]
        case ".rs":
            return _joined(source, _RUST, "//")
        case ".sql":
            return _joined(source, _SQL, "--")
        case _:
            return [*_docstrings(ast.parse(source)), *_hash_comments(source)]


def _joined(source: str, pattern: re.Pattern[str], mark: str) -> list[str]:
    """Return the comments of a source. Those on lines that follow one another are one."""
    found: list[str] = []
    last = -2
    for match in pattern.finditer(source):
        comment = match["comment"]
        if comment is None:
            continue
        line = source.count("\n", 0, match.start())
        if comment.startswith("/*"):
            text = re.sub(r"(?m)^\s*\* ?", "", comment[2:-2].strip("*!"))
        else:
            text = comment.removeprefix(mark).lstrip("/!").removeprefix(" ")
        if _DIRECTIVE.match(text.strip()):
            continue
        alone = not source[source.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
        if alone and line == last + 1 and found:
            found[-1] += "\n" + text
        else:
            found.append(text)
        last = line if alone else -2
    return found


def _hash_comments(source: str) -> list[str]:
    found: list[str] = []
    last = -2
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        text, line = token.string.lstrip("#").strip(), token.start[0]
        text = text.split("  # ")[-1] if text.startswith("noqa") else text
        if not text or _DIRECTIVE.match(text):
            continue
        alone = not token.line[: token.start[1]].strip()
        if alone and line == last + 1 and found:
            found[-1] += "\n" + text
        else:
            found.append(text)
        last = line if alone else -2
    return found


def _docstrings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list) or _is_tool(node):
            continue
        for child in body:
            value = child.value if isinstance(child, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield _prose(value.value)


def _is_tool(node: ast.AST) -> bool:
    marks = [ast.unparse(mark) for mark in getattr(node, "decorator_list", ())]
    return any(re.match(r"(\w+\.)?tool\b", mark) for mark in marks)


def _prose(docstring: str) -> str:
    """Return a docstring without examples, headings and the names of parameters."""
    first, _, rest = docstring.partition("\n")
    kept, in_section = [first, ""], False
    for line in textwrap.dedent(rest).split("\n"):
        if _HEADING.match(line):
            in_section = True
            kept.append("")
        elif in_section and line.startswith("    "):
            entry = _ENTRY.match(line)
            kept += ["", line[entry.end() :]] if entry and not line.startswith(" " * 8) else [line]
        elif not line.startswith("    "):
            in_section = False
            kept.append(line)
    return "\n".join(kept)


def files(kind: str) -> list[Path]:
    """Return the files of a kind, by the ending of their names."""
    return PAGES if kind == "md" else sorted((ROOT / FOLDERS[kind]).rglob(f"*.{kind}"))


def count(paths: list[Path]) -> tuple[Counter[str], int]:
    """Return the hits in files by pattern, and how many sentences the files have."""
    counted: Counter[str] = Counter()
    number = 0
    for path in paths:
        for text in texts(path):
            number += len(sentences(text))
            counted.update(name for name, _ in hits(text))
            if is_short(text) and path.suffix != ".md":
                counted[SHORT] += 1
                number += not sentences(text)
    return counted, number


def is_short(text: str) -> bool:
    """Whether a comment is one short line, such as "Its id."; names of products are none."""
    words = text.split()
    ends = bool(words) and words[-1].endswith(".") and "`" not in text
    return ends and 2 <= len(words) <= 3 and words[1][0].islower()


def figure(kind: str) -> float:
    """Return the hits in 100 sentences of a kind of file."""
    counted, number = count(files(kind))
    return 100 * counted.total() / max(number, 1)


def known_figures() -> dict[str, float]:
    """Return the figures that hold."""
    figures: dict[str, float] = json.loads(FIGURES.read_text("utf-8"))
    return figures


def lower() -> None:
    """Write down each figure that is lower now. A higher one stays as it is.

    A figure is rounded up, by a tenth at least: two branches that pass alone also pass merged.
    """
    known = known_figures() if FIGURES.exists() else {}
    now = {kind: math.ceil(10 * figure(kind) + 1) / 10 for kind in KINDS}
    lowest = {kind: min(value, known.get(kind, value)) for kind, value in now.items()}
    FIGURES.write_text(json.dumps(lowest, indent=2) + "\n", "utf-8")


def main() -> None:
    """Print figures or hits, as the arguments say."""
    arguments = sys.argv[1:]
    if arguments == ["--lower"]:
        lower()
    elif arguments == ["--worst"]:
        totals = {path: count([path])[0].total() for kind in KINDS for path in files(kind)}
        for path, number in sorted(totals.items(), key=lambda item: -item[1])[:60]:
            print(f"{number:4} {path.relative_to(ROOT)}")
    elif arguments:
        for path in map(Path, arguments):
            for text in texts(path):
                for name, sentence in hits(text):
                    print(f"{path}: {name}: {sentence}")
                if is_short(text) and path.suffix != ".md":
                    print(f"{path}: {SHORT}: {text.strip()}")
    else:
        for kind in KINDS:
            counted, number = count(files(kind))
            rate = 100 * counted.total() / max(number, 1)
            print(f"{kind:4} {rate:6.2f} in 100 of {number} sentences: {dict(counted)}")


if __name__ == "__main__":
    main()
