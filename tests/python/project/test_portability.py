"""The package works without what only Unix has; the sandbox says that it needs Linux."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import callslip
import like_windows

PACKAGE = Path(callslip.__file__).parent
SOURCES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path
    for path in PACKAGE.rglob("*.py")
}
ON_UNIX_ONLY = [name for name in SOURCES if name in like_windows.NEVER_THERE]


def at_import(node):
    """Yield the nodes that are evaluated when a module is imported."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.If) and "sys.platform" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            # Defaults and decorators are evaluated, the body and hints are not.
            for part in (*child.args.defaults, *filter(None, child.args.kw_defaults)):
                yield part
                yield from at_import(part)
            for decorator in getattr(child, "decorator_list", ()):
                yield from at_import(decorator)
            continue
        yield child
        yield from at_import(child)


def may_be_missing(tree):
    """Return the imports in `try` with `except ImportError`."""
    return {
        statement
        for node in ast.walk(tree)
        if isinstance(node, ast.Try)
        and any(
            "ImportError" in ast.unparse(handler.type) for handler in node.handlers if handler.type
        )
        for statement in node.body
    }


def names_of_import(node):
    if isinstance(node, ast.Import):
        return {alias.name.partition(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom) and not node.level:
        return {str(node.module).partition(".")[0]}
    return set()


@pytest.mark.parametrize("name", sorted(set(SOURCES) - set(ON_UNIX_ONLY)))
def test_nothing_of_unix_is_needed_to_import_a_module(name):
    tree = ast.parse(SOURCES[name].read_text("utf-8"))
    optional = may_be_missing(tree)
    needed = set()
    for node in at_import(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and node not in optional:
            needed |= names_of_import(node) & set(like_windows.MODULES)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            known = like_windows.ATTRIBUTES.get(node.value.id, ())
            needed |= {ast.unparse(node)} if node.attr in known else set()
    assert needed == set()


def test_modules_for_unix_are_imported_by_functions_only():
    assert set(ON_UNIX_ONLY) == like_windows.NEVER_THERE
    importing = [
        f"{name} imports {node.module}"
        for name, path in SOURCES.items()
        for node in at_import(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module in like_windows.NEVER_THERE
    ]
    assert importing == []


def test_the_package_works_without_what_windows_has_not(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "like_windows", str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(like_windows.__file__).parent)},
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said[0] == f"imported {len(SOURCES)} modules"
    assert said[1] == "ran 23 agents"
    assert said[-4:] == [
        "ran 3 commands",
        *3
        * [
            "expected Linux, or macOS with backend=…, for scripts: got win32; use WSL, in which "
            "the program runs as on Linux"
        ],
    ]
