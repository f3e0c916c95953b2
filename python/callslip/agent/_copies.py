"""Copies of agents: in this process, and as bytes for another one."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from callslip._base.failure import message_of, one_line
from callslip.errors import UsageError

if TYPE_CHECKING:
    from callslip.agent._agent import Agent

__all__ = ["agent_of_options", "deep_copy", "options_to_pickle"]


def agent_of_options(kind: type[Agent[Any]], options: dict[str, Any]) -> Agent[Any]:
    """Make an agent of pickled options."""
    return kind(**options)


def deep_copy(agent: Agent[Any], options: Mapping[str, Any], memo: dict[int, Any]) -> Agent[Any]:
    """Return an agent with copies of the options. Stores, runners and sources of tools are shared.

    Raises:
        UsageError: An option cannot be copied.
    """
    copied = dict(options)
    for name in ("model", "tools", "roles", "history"):
        try:
            copied[name] = copy.deepcopy(options[name], memo)
        except UsageError:
            raise
        except Exception as error:
            raise _refusal("copied", name, options[name], error) from error
    return type(agent)(**copied)


def options_to_pickle(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of an agent for another process.

    Raises:
        UsageError: One of them cannot be pickled.
    """
    for name, value in _parts_of(options):
        try:
            pickle.dumps(value)
        except UsageError:
            raise
        except Exception as error:
            raise _refusal("pickled", name, value, error) from error
    return dict(options)


def _parts_of(options: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in options.items():
        if name == "tools" and isinstance(value, list | tuple):
            yield from (("a tool", one) for one in value)
        else:
            yield name, value


def _refusal(verb: str, name: str, value: object, error: Exception) -> UsageError:
    hint = "define it at the top of a module, and pass it by its name" if callable(value) else ""
    if name == "model":
        hint = 'pass as_model("openai:…"), or a function that makes the client'
    hint = hint or "make the agent where it is used, in a function"
    return UsageError(
        f"expected an agent whose options can be {verb}: got {name} as "
        f"{one_line(repr(value), 100)}: {one_line(message_of(error), 200)}; {hint}"
    )
