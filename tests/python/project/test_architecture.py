"""How the Python half is built; the order of its packages is held by `make lint`."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import callslip

PACKAGE = Path(callslip.__file__).parent


def _name(path: Path) -> str:
    parts = (path.parent if path.stem == "__init__" else path.with_suffix("")).relative_to(PACKAGE)
    return ".".join(("callslip", *parts.parts))


MODULES = {_name(path): path for path in PACKAGE.rglob("*.py")}
# Where a heavy module, or one that most programs never need, would be imported with the package.
MOST_INSIDE_FUNCTIONS = 20
MOST_IN_A_KNOT = 3

LONGEST_FILE = 500
# Copied alone to the machine that runs the scripts.
LONG_FILES = {"callslip.sandbox.serve"}
LONGEST_FUNCTION = 60
MOST_PARAMETERS = 7
MOST_FIELDS = 12
# How many fields these types have, which only becomes fewer.
TYPES_WITH_MANY_FIELDS = {
    # Of the public face: a field for each option, under the name that users pass.
    "callslip.agent._agent.Agent": 22,
    "callslip.models.local.LocalModel": 18,
    "callslip.tools._tool.Tool": 17,
    # Handles of a run: what users read, and what the driver and the watchers share through it.
    "callslip.runs._run.Run": 13,
    # The relay of a fleet and the child runs that others drive; whether a worker takes new runs.
    "callslip.runs._feed.Feed": 14,
    "callslip.fleet._worker.Worker": 13,
    "callslip._runtime.stream.RunStream": 13,
    # The parts of the schema as they grow, each passed on under its own name.
    "callslip.tools._signature._Reader": 14,
}


def imports(path: Path) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Yield each import that is made when the program runs, and whether a function makes it."""

    def walk(node: ast.AST, inside: bool):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import | ast.ImportFrom):
                yield child, inside
            elif not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
                function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
                yield from walk(child, inside or function)

    yield from walk(ast.parse(path.read_text("utf-8")), False)


def modules_of(statement: ast.Import | ast.ImportFrom) -> set[str]:
    if isinstance(statement, ast.Import):
        names = {alias.name for alias in statement.names}
    else:
        full = {f"{statement.module}.{alias.name}" for alias in statement.names}
        names = {name if name in MODULES else str(statement.module) for name in full}
    return names & MODULES.keys() - {"callslip"}


def test_every_module_is_found():
    assert {"callslip", "callslip.tools", "callslip._runtime.session"} <= MODULES.keys()


def test_no_module_imports_a_public_name_from_the_package_itself():
    # `make lint` does not follow imports through the package, which knows every public name.
    found = {
        f"{name}: {ast.unparse(node)}"
        for name, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "callslip"
        for alias in node.names
        if alias.name not in {"_core", "__version__"} and f"callslip.{alias.name}" not in MODULES
    }
    assert found == set()


def test_few_imports_stand_inside_of_functions():
    found = [
        f"{name}: {ast.unparse(statement)}"
        for name, path in MODULES.items()
        for statement, inside in imports(path)
        if inside
    ]
    assert len(found) <= MOST_INSIDE_FUNCTIONS, "\n".join(found)


def test_few_modules_import_one_another():
    arrows = {
        name: set().union(*(modules_of(statement) for statement, _ in imports(path))) - {name}
        for name, path in MODULES.items()
    }

    def reached(start: str) -> set[str]:
        seen, todo = set(), [start]
        while todo:
            for name in arrows[todo.pop()] - seen:
                seen.add(name)
                todo.append(name)
        return seen

    all_reached = {name: reached(name) for name in arrows}
    knots = {
        frozenset({name, *(other for other in below if name in all_reached[other])})
        for name, below in all_reached.items()
        if name in below
    }
    assert max(map(len, knots), default=0) <= MOST_IN_A_KNOT, knots


@pytest.mark.parametrize("word", ["utils", "helpers", "manager", "common"])
def test_names_say_what_is_inside(word):
    assert [name for name in MODULES if word in name.rpartition(".")[2]] == []


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield each function with its name in the package, those inside of functions too."""

    def walk(node: ast.AST, above: str):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{above}.{child.name}"
                if not isinstance(child, ast.ClassDef):
                    yield name, child
                yield from walk(child, name)
            else:
                yield from walk(child, above)

    for module, path in MODULES.items():
        yield from walk(ast.parse(path.read_text("utf-8")), module)


def classes() -> Iterator[tuple[str, ast.ClassDef]]:
    for module, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                yield f"{module}.{node.name}", node


def is_record(node: ast.ClassDef) -> bool:
    """Whether a type only holds data: a dataclass, or a dictionary with known keys."""
    marks = [*node.decorator_list, *node.bases]
    return any(word in ast.unparse(mark) for mark in marks for word in ("dataclass", "TypedDict"))


def fields_of(node: ast.ClassDef) -> set[str]:
    """Return the names of the attributes that the methods of a type assign to `self`."""
    return {
        target.attr
        for target in ast.walk(node)
        if isinstance(target, ast.Attribute)
        and isinstance(target.ctx, ast.Store)
        and ast.unparse(target.value) == "self"
    }


def public_names() -> set[str]:
    """Names that a module without an underscore exports, and the bases of exported classes."""
    exported = {
        name: getattr(home, name)
        for module in MODULES
        if "._" not in module
        for home in (importlib.import_module(module),)
        for name in getattr(home, "__all__", ())
    }
    classes = [value for value in exported.values() if isinstance(value, type)]
    return {*exported, *(base.__name__ for one in classes for base in one.__mro__)}


def is_public(name: str, exported: set[str]) -> bool:
    module = max((one for one in MODULES if name.startswith(f"{one}.")), key=len)
    first, *others = name.removeprefix(f"{module}.").split(".")
    return first in exported and all(
        other == "__init__" or not other.startswith("_") for other in others
    )


def test_no_file_is_long():
    lines = {name: path.read_text("utf-8").count("\n") for name, path in MODULES.items()}
    found = {name: count for name, count in lines.items() if count > LONGEST_FILE}
    assert found.keys() == LONG_FILES, found


def test_no_function_is_long():
    lines = {name: node.end_lineno - node.lineno + 1 for name, node in functions()}
    found = {name: count for name, count in lines.items() if count > LONGEST_FUNCTION}
    assert not found, found


def test_only_the_public_face_has_functions_with_many_parameters():
    found, exported = {}, public_names()
    for name, node in functions():
        given = node.args
        parameters = {one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
        count = len(parameters - {"self", "cls"})
        if count > MOST_PARAMETERS and not is_public(name, exported):
            found[name] = count
    assert found == {}


def test_only_records_have_many_fields():
    counts = {name: len(fields_of(node)) for name, node in classes() if not is_record(node)}
    found = {name: count for name, count in counts.items() if count > MOST_FIELDS}
    assert found == TYPES_WITH_MANY_FIELDS


# One function writes markup around texts, and escapes them; and a sandbox as HTML of a notebook.
WRITES_MARKUP = ("callslip.look._markup", "callslip.sandbox._display")
# The tags of protocols.
WRITES_TAGS = ("callslip._protocols.chatty", "callslip._protocols.ticket")


def test_markup_is_put_together_in_few_places():
    found = {
        name
        for name, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.JoinedStr) and _has_tag(node)
    }
    others = {name for name in found if not name.startswith((*WRITES_MARKUP, *WRITES_TAGS))}
    assert (others, "callslip.sandbox._display" in found) == (set(), True)


def _has_tag(text: ast.JoinedStr) -> bool:
    fixed = "".join(one.value for one in text.values if isinstance(one, ast.Constant))
    return re.search(r"</?[a-z!]", fixed) is not None
