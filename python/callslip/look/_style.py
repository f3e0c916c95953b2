"""The style sheets of pages and of outputs in notebooks: the same rows in the colours of each."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources

__all__ = ["output_style", "page_style", "policy_hash", "shipped"]

_LIGHT = (
    "--ink: #1c2024; --soft: #5b636c; --line: #d9dde2; --back: #fff; --field: #f5f6f8; "
    "--bad: #a8201a; --badback: #fdecea; --work: #2f6fb0; --wait: #965800;"
)
_DARK = (
    "--ink: #e6e8eb; --soft: #a3abb5; --line: #343a41; --back: #14171a; --field: #1d2125; "
    "--bad: #ff8f87; --badback: #3a1a18; --work: #6aa9e6; --wait: #e0a040;"
)
_IS_DARK = "@media (prefers-color-scheme: dark)"

# Where a front end has no theme of its own, the system's counts.
_NO_THEME = ":root:not([theme]) body:not([data-jp-theme-light], .vscode-light, .vscode-dark)"
_DARK_THEMES = 'body[data-jp-theme-light="false"], body.vscode-dark, :root[theme="dark"]'

# Twice the class: a front end's own rules for elements of an output are as specific as one.
_OUTPUT = ".callslip.callslip"


@cache
def page_style() -> str:
    """Return the style sheet of a page."""
    return (
        f":root {{ {_LIGHT} }}\n{_IS_DARK} {{ :root {{ {_DARK} }} }}\n"
        f"{_file('rows.css')}{_file('page.css')}"
    )


@cache
def output_style() -> str:
    """Return the style sheet of an output of a notebook, which concerns nothing around it."""
    return (
        f"{_OUTPUT} {{ {_LIGHT} }}\n"
        f"{_IS_DARK} {{ {_NO_THEME} {_OUTPUT} {{ {_DARK} }} }}\n"
        f":is({_DARK_THEMES}) {_OUTPUT} {{ {_DARK} }}\n"
        f"{_OUTPUT} {{\n{_file('output.css')}{_file('rows.css')}}}\n"
    )


def policy_hash(text: str) -> str:
    """Return a style sheet or a script as a content security policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _file(name: str) -> str:
    return shipped("callslip.look", name)


def shipped(package: str, name: str) -> str:
    """Return the text of a file of a package."""
    text = resources.files(package).joinpath(name).read_text("utf-8")
    # A browser reads the ends of lines so, and takes the hash of what it has read.
    return text.replace("\r\n", "\n")
