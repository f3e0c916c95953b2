"""Checks of options, for programs that no type checker has seen."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from callslip.errors import UsageError

__all__ = [
    "check_called_with",
    "check_dict_of_texts",
    "check_filter",
    "check_flag",
    "check_flags",
    "check_known",
    "check_new_file",
    "check_number",
    "check_one_of",
    "check_path",
    "check_place",
    "check_run_id",
    "check_seconds",
    "check_text",
    "check_type",
    "check_whole",
    "checked_texts",
    "hint_of_class",
    "is_url",
    "shown",
]

_LONGEST = 200
"""Characters of a value in an error."""

_LONGEST_NAME = 200
"""Characters of the name of an owner, or of a key."""


def shown(value: object) -> str:
    """Return a value as an error shows it; long values are cut."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def hint_of_class(value: object) -> str:
    """Return the end of an error for a class in place of its object; no text for other values."""
    return f"; pass {value.__name__}(…), an object of it" if isinstance(value, type) else ""


def check_one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Check that an option is one of some words.

    Raises:
        UsageError: It is not.
    """
    if value not in allowed:
        expected = " or ".join(repr(word) for word in allowed)
        raise UsageError(f"expected {name}={expected}: got {shown(value)}; pass one of them")


def check_flag(name: str, value: object) -> None:
    """Check that an option is `True` or `False`.

    Raises:
        UsageError: It is not.
    """
    if not isinstance(value, bool):
        raise UsageError(f"expected {name}=True or False: got {shown(value)}")


def check_flags(**flags: object) -> None:
    """Raise `UsageError` if one of these options is neither `True` nor `False`."""
    for name, flag in flags.items():
        check_flag(name, flag)


def check_whole(
    name: str,
    value: object,
    least: int = 0,
    most: int | None = None,
    *,
    none: str | None = None,
) -> None:
    """Check that an option is a whole number.

    Args:
        name: The option.
        value: Its value.
        least: The smallest number.
        most: The largest number.
        none: The meaning of `None`, such as `no limit`. Default: `None` is refused.

    Raises:
        UsageError: It is not such a number.
    """
    if value is None and none is not None:
        return
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole or not least <= value or (most is not None and value > most):  # type: ignore[operator]
        _refuse_number(name, value, f"a whole number {_span(least, most)}", none)


def check_number(
    name: str,
    value: object,
    kind: str = "a number",
    least: float = 0,
    *,
    zero: bool = True,
    none: str | None = None,
) -> None:
    """Check that an option is a finite number.

    Args:
        name: The option.
        value: Its value.
        kind: The expected kind of value, such as `a number of seconds`.
        least: The smallest number.
        zero: Whether 0 is such a number.
        none: The meaning of `None`, such as `no limit`. Default: `None` is refused.

    Raises:
        UsageError: It is not such a number.
    """
    if value is None and none is not None:
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not least <= value < math.inf or (value == 0 and not zero):  # type: ignore[operator]
        _refuse_number(name, value, f"{kind} {f'from {least:g}' if zero else 'above 0'}", none)


def check_seconds(
    name: str, value: object, least: float = 0, *, zero: bool = True, none: str | None = None
) -> None:
    """Check that an option is a number of seconds. As `check_number`."""
    check_number(name, value, "a number of seconds", least, zero=zero, none=none)


def _span(least: int, most: int | None) -> str:
    return f"from {least}" if most is None else f"from {least} to {most:,}"


def _refuse_number(name: str, value: object, expected: str, none: str | None) -> None:
    meaning = "" if none is None else f", or None for {none}"
    raise UsageError(f"expected {name} to be {expected}{meaning}: got {shown(value)}")


def check_type(name: str, value: object, kinds: type | tuple[type, ...], expected: str) -> None:
    """Check the type of an option.

    Args:
        name: The option.
        value: Its value.
        kinds: The types that it may have.
        expected: How a right value is written, such as `Limits(…) or None`.

    Raises:
        UsageError: It has another type.
    """
    if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is int):
        raise UsageError(f"expected {name}={expected}: got {shown(value)}{hint_of_class(value)}")


def check_path(name: str, path: object) -> None:
    """Check that an option is the path of a file or a folder.

    Raises:
        UsageError: It is not.
    """
    check_type(name, path, (str, os.PathLike), "a path")
    text = os.fspath(path)  # type: ignore[call-overload]  # checked above
    if not isinstance(text, str) or not text or "\0" in text:
        raise UsageError(f"expected {name}=a path: got {shown(path)}")


def check_new_file(name: str, path: Any) -> None:
    """Check that a path can take a file: its folder exists, and it is no folder itself.

    Raises:
        UsageError: It may not.
    """
    check_path(name, path)
    # Without `pathlib`, which is slow to import.
    folder = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120
    given = shown(os.fspath(path))
    if os.path.isdir(path):  # noqa: PTH112
        raise UsageError(
            f"expected {name} to be a file: got the folder {given}; pass the path of a file in it"
        )
    if not os.path.isdir(folder):  # noqa: PTH112
        raise UsageError(
            f"expected {name} in a folder that exists: got {given}; create the folder {folder}, or "
            "pass another path"
        )


def check_known(what: str, name: str | None) -> str | None:
    """Return the name of an owner or a key: text of 1 to 200 characters.

    Raises:
        UsageError: It is not.
    """
    if name is None:
        return None
    check_text(what, name)
    if not 1 <= len(name) <= _LONGEST_NAME:
        raise UsageError(
            f"expected {what} of 1 to {_LONGEST_NAME} characters: got {len(name)}; pass None for "
            "none, or a hash of a longer one"
        )
    return name


def check_text(what: str, text: object) -> None:
    """Check that a value is text that can be written down as UTF-8.

    Raises:
        UsageError: It is not.
    """
    if not isinstance(text, str):
        raise UsageError(f"expected {what} to be text: got {shown(text)}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{what} contains half of a surrogate pair at {error.start}, which is not a "
            "character: decode the text again"
        ) from None


def check_run_id(run_id: object) -> None:
    """Check that a value is the id of a run, and not the run.

    Raises:
        UsageError: It is not.
    """
    if not isinstance(run_id, str):
        places = {"id": "id", "run_id": "run_id", "run": "run.id"}
        found = [place for name, place in places.items() if hasattr(run_id, name)]
        hint = f": pass its .{found[0]}" if found else ""
        raise UsageError(f"expected the id of a run as text: got {shown(run_id)}{hint}")
    check_text("the id of the run", run_id)


def checked_texts(name: str, texts: object) -> list[str]:
    """Return an option that is a list of texts. One text is not a list of its letters.

    Raises:
        UsageError: It is no such list.
    """
    if isinstance(texts, str):
        raise UsageError(f"expected {name} as a list of texts: got {texts!r}: pass [{texts!r}]")
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise UsageError(f"expected {name} as a list of texts: got {shown(texts)}")
    return list(texts)


def check_dict_of_texts(name: str, texts: object) -> None:
    """Check that an option is a dict of texts by name. A value may be a secret: it is not shown.

    Raises:
        UsageError: It is no such dict.
    """
    if not isinstance(texts, Mapping):
        raise UsageError(f"expected {name} as a dict of texts: got {type(texts).__name__}")
    for key, text in texts.items():
        if not isinstance(key, str):
            raise UsageError(f"expected {name} with texts as keys: got {key!r}")
        if not isinstance(text, str):
            raise UsageError(f"expected {name}[{key!r}] to be text: got {type(text).__name__}")


def check_called_with(name: str, function: Any, *arguments: str) -> None:
    """Check that a function can be called with some arguments, before it is too late.

    Args:
        name: The option.
        function: Its value.
        arguments: The arguments of the function in words, such as `the task`.

    Raises:
        UsageError: It is no function, or takes fewer or more arguments.
    """
    if not callable(function):
        raise UsageError(
            f"expected {name} to be a function: got {shown(function)}; pass one that takes "
            f"{' and '.join(arguments) or 'nothing'}"
        )
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as error:
        taken = " and ".join(arguments) or "no arguments"
        raise UsageError(
            f"expected {name} to take {taken}: got a function that can't: {error}"
        ) from None
    except ValueError:  # a builtin without a signature
        return


def check_filter(
    *, texts: Mapping[str, object], since: object, until: object, limit: object
) -> None:
    """Check a filter of runs or tickets.

    Raises:
        UsageError: A text is none, a time is no number, or a number no whole one.
    """
    for name, text in texts.items():
        if text is not None:
            check_text(name, text)
    for name, time_of_it in (("since", since), ("until", until)):
        check_number(name, time_of_it, "a time in Unix seconds", none="any time")
    check_whole("limit", limit, none="all")


def is_url(name: str) -> bool:
    """Whether this is the URL of a database, and no path of a file."""
    return name.startswith(("postgresql://", "postgres://"))


def check_place(path: object) -> None:
    """Check that a value names a store: a file, a database, or `None` for memory.

    Raises:
        UsageError: It does not.
    """
    if path is not None:
        kinds = (str, os.PathLike)
        check_type("path", path, kinds, "the path of a file or the URL of a database")
    if isinstance(path, str) and "://" in path and not is_url(path):
        scheme, _, rest = path.partition("://")
        is_sqlite = scheme.startswith("sqlite")
        hint = f"the path alone: {rest.lstrip('/')!r}" if is_sqlite else "one of them"
        raise UsageError(
            "expected the path of a file, or a URL that begins with postgresql://: got "
            f"{scheme}://…; pass {hint}"
        )
    if path in {":memory:", ""}:
        raise UsageError(f"expected the path of a file: got {path!r}; use TicketStore() for memory")
