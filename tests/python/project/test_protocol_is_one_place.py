"""A protocol is one place: its own files, and the lists that CONTRIBUTING.md names."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import callslip
from callslip import _core
from callslip._protocols import PROTOCOL_NAMES
from callslip.protocols import find_protocol

PACKAGE = Path(callslip.__file__).parent
ROOT = PACKAGE.parents[1]
SRC = ROOT / "src"
CLASSES = {type(find_protocol(name)).__name__ for name in PROTOCOL_NAMES}
# The type of each protocol in Rust. `Ticket` is also the word for a call.
TYPES = r"\b(React|Chatty|protocol::Ticket|super::Ticket)\b"

# Where a new protocol is added.
LISTS = {
    "src/protocol/mod.rs",
    "python/callslip/_protocols/__init__.py",
    "python/callslip/protocols.py",
}
# The public names of the package.
EXPORTS = "python/callslip/__init__.py"


def _own_files() -> set[str]:
    """Return the files that belong to one protocol, beside the lists."""
    rust = [
        path
        for name in PROTOCOL_NAMES
        for path in (*SRC.glob(f"protocol/{name}.rs"), *SRC.glob(f"protocol/{name}/**/*.rs"))
    ]
    python = [PACKAGE / "_protocols" / f"{name}.py" for name in PROTOCOL_NAMES]
    return {path.relative_to(ROOT).as_posix() for path in (*rust, *python)}


def _code(text: str) -> str:
    """Return Rust without comments, and without the tests at its end."""
    code = re.sub(r"//[^\n]*", "", text)
    return code.partition("#[cfg(test)]\nmod tests")[0]


def _in_rust(text: str) -> list[str]:
    """Return where code names a protocol. `"ticket"` is also a table and a key of events."""
    code = _code(text)
    names = "|".join(set(PROTOCOL_NAMES) - {"ticket"})
    compared = r'[!=]= *"ticket"|"ticket" *(?:=>|\|)'
    return [
        *re.findall(rf'"(?:{names})"', code),
        *re.findall(compared, code),
        *re.findall(TYPES, code),
    ]


def _docstrings(tree: ast.AST) -> set[int]:
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def _slots(tree: ast.AST) -> set[int]:
    """Return the names of attributes in `__slots__`: `native` is also a half of a thing."""
    return {
        id(name)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and any(isinstance(to, ast.Name) and to.id == "__slots__" for to in node.targets)
        for name in ast.walk(node.value)
    }


def _in_python(text: str) -> Iterator[str]:
    """Yield where code names a protocol: in a comparison or a list, or by its class.

    `"ticket"` is also a key of events, which may be looked up and may stand in a mapping.
    """
    tree = ast.parse(text)
    docs = _docstrings(tree) | _slots(tree)
    plain = set(PROTOCOL_NAMES) - {"ticket"}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(value)) if value in plain and id(node) not in docs:
                yield value
            case ast.Compare(ops=[ast.Eq() | ast.NotEq()]) | ast.MatchValue():
                yield from (
                    "ticket"
                    for one in ast.walk(node)
                    if isinstance(one, ast.Constant) and one.value == "ticket"
                )
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                if name in CLASSES:
                    yield name


def _naming() -> dict[str, list[str]]:
    """Return the files of both halves that name a protocol, and what they name."""
    found = {}
    for path in SRC.rglob("*.rs"):
        found[path] = _in_rust(path.read_text("utf-8"))
    for path in PACKAGE.rglob("*.py"):
        found[path] = list(_in_python(path.read_text("utf-8")))
    return {path.relative_to(ROOT).as_posix(): names for path, names in found.items() if names}


def test_no_other_file_names_a_protocol():
    assert _naming().keys() - _own_files() - LISTS - {EXPORTS} == set()


def test_the_scan_sees_names():
    seen = _naming()

    assert seen.keys() >= LISTS
    assert _in_rust('"react" => React::default(), // "chatty"') == ['"react"', "React"]
    assert _in_rust('["event", "ticket"]; name == "ticket"') == ['== "ticket"']
    code = 'x = protocol.name == "ticket"\ny = ("chatty",)\nz = event["ticket"]\nReactProtocol()'
    assert sorted(_in_python(code)) == ["ReactProtocol", "chatty", "ticket"]
    assert list(_in_python('__slots__ = ("native",)\nx = ("native",)')) == ["native"]


def test_the_guide_names_the_files_of_a_new_protocol():
    guide = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    section = guide.partition("**a protocol.**")[2].partition("\n**")[0]
    named = set(re.findall(r"`((?:src|python)/[^`]+)`", section))

    assert {name for name in named if "NAME" not in name} == LISTS
    patterns = {name for name in named if "NAME" in name}
    for name in PROTOCOL_NAMES:
        for pattern in patterns:
            assert (ROOT / pattern.replace("NAME", name)).exists(), (pattern, name)
    others = {
        path
        for path in _own_files()
        if not any(
            path.startswith(pattern.replace("NAME", name).removesuffix(".rs"))
            for pattern in patterns
            for name in PROTOCOL_NAMES
        )
    }
    assert others == set()


def test_both_halves_have_the_same_list():
    assert _core.Protocol.names() == list(PROTOCOL_NAMES)
    assert [find_protocol(name).native.name for name in PROTOCOL_NAMES] == list(PROTOCOL_NAMES)


def test_an_unknown_protocol_is_refused_with_the_names():
    with pytest.raises(
        ValueError, match="^expected 'ticket', 'chatty', 'react' or 'native': got 'morse'$"
    ):
        _core.Protocol.built_in_template("morse")
