"""Docstrings: the description and the parameters' lines, in every style."""

from __future__ import annotations

import datetime as dt
from typing import Annotated

import pytest
from pydantic import BaseModel, Field

from callslip import Tool, tool
from callslip.tools._docstring import read_docstring


@pytest.mark.parametrize(
    ("text", "description", "parameters"),
    [
        ("", "", {}),
        (" \n one line \n", "one line", {}),
        (
            "Do.\n\nMore.\n\nArgs:\n    a (int): The a,\n        in words: two.\n    *b: The b.\n\n"
            "Returns:\n    It.\n\nRaises:\n    ValueError: Never.\n\nAt last.",
            "Do.\n\nMore.\n\nAt last.",
            {"a": "The a, in words: two.", "b": "The b."},
        ),
        # Without a blank line, indented by two.
        (
            "Do.\nArgs:\n  a: The a.\n  b:\n    The b.\nReturns:\n  It.",
            "Do.",
            {"a": "The a.", "b": "The b."},
        ),
        ("Do.\n\nArgs:\n    a (:obj:`str`, optional): The a.", "Do.", {"a": "The a."}),
        (
            "Do.\n\nParameters\n----------\na : int\n    The a.\nb, c\n    Both.\n\n"
            "Returns\n-------\nint\n    It.",
            "Do.",
            {"a": "The a.", "b": "Both.", "c": "Both."},
        ),
        (
            "Do.\n\nMore.\n\n:param a: The a,\n    and more.\n:param int b: The b.\n:returns: It.",
            "Do.\n\nMore.",
            {"a": "The a, and more.", "b": "The b."},
        ),
        # What is meant for the caller stays, what is not goes.
        (
            "Do.\n\nNote:\n    In cents.\n\nWarning:\n    It costs.\n\nExample:\n    >>> f()\n\n"
            "Todo:\n    * More.",
            "Do.\n\nNote: In cents.\n\nWarning: It costs.",
            {},
        ),
        ("Do.\n\nNote: as it is.\nArgs: none.", "Do.\n\nNote: as it is.\nArgs: none.", {}),
        # Mixed, the first that says something of a parameter has it.
        (
            "Do.\n\nArgs:\n    a: The a.\n\n:param a: Not this.\n:param b: The b.\n\n"
            "Parameters\n----------\nc : int\n    The c.",
            "Do.",
            {"a": "The a.", "b": "The b.", "c": "The c."},
        ),
        # Malformed.
        ("Do.\n\nArgs:\na: Not indented.", "Do.\n\nArgs:\na: Not indented.", {}),
        ("Do.\n\nArgs:\n    a - a dash\n    b: The b.", "Do.", {"b": "The b."}),
    ],
)
def test_docstrings(text: str, description: str, parameters: dict[str, str]) -> None:
    read = read_docstring(text)
    assert read == (description, parameters)


def test_nothing_is_logged_of_a_docstring(caplog: pytest.LogCaptureFixture) -> None:
    read_docstring("Do.\n\nArgs:\n    a - a dash\n    nothing\n\nRaises:\n    what")
    read_docstring("Do.\n\nParameters\n----------\n: int\n")
    read_docstring(":param: The a.\n:type\n")
    assert not caplog.records


def test_what_stands_at_the_parameter_itself_comes_before_the_docstring() -> None:
    @tool
    def f(
        a: Annotated[dt.date, Field(description="Own.")],
        b: Annotated[dt.date, "Own."],
        c: Annotated[int, "Own."],
        d: dt.date,
    ) -> None:
        """Do.

        Args:
            a: Not this.
            b: Not this.
            c: Not this.
            d: This.
        """

    told = [schema["description"] for schema in f.parameters["properties"].values()]
    assert told == ["Own.", "Own.", "Own.", "This."]


class Shop:
    """A shop."""

    @tool
    def buy(self, item: str) -> None:
        """Buy.

        Args:
            item: What.
        """

    def sell(self, item: str) -> None:
        """Sell.

        :param item: What.
        """

    def __call__(self, item: str) -> None: ...


class Corner(Shop):
    def sell(self, item: str) -> None: ...


class Point(BaseModel):
    x: int


class Documented(Point):
    """A point."""


class Further(Documented): ...


def test_what_a_library_says_of_its_base_class_is_no_description() -> None:
    assert [Tool(one).description for one in (Point, Documented, Further)] == [
        *("", "A point.", "A point.")
    ]


def test_docstrings_of_methods_are_inherited() -> None:
    for one, text in [(Corner().buy, "Buy."), (Tool(Corner().sell), "Sell.")]:
        assert one.description == text
        assert one.parameters["properties"]["item"]["description"] == "What."
    assert Tool(Shop()).description == "A shop."
    assert Tool(Shop.sell.__get__(Shop()), description="Own.").description == "Own."
