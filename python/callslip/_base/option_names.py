"""Errors about options that there are not, for who knows them by the names of another library."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, ParamSpec, TypeVar, cast

from callslip._base import _lazy

__all__ = ["knows_names", "knows_names_of_fields"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_ELSEWHERE: Final[Mapping[str, str]] = {
    "allow_delegation": "delegate=True",
    "backstory": "instructions=…",
    "callbacks": "agent.stream(…), whose events say what happens",
    "checkpointer": "store=…",
    "context": "deps=…",
    "description": "instructions=…",
    "goal": "instructions=…",
    "handoffs": "roles=…",
    "human_input": "needs_approval=True to the tools that need it",
    "interrupt_before": "needs_approval=True to the tools that need it",
    "max_iter": "limits=Limits(turns=…)",
    "max_iterations": "limits=Limits(turns=…)",
    "max_output_tokens": "max_tokens=…",
    "max_retries": "limits=Limits(max_violations=…), or Retrying(model) as the model",
    "max_rounds": "limits=Limits(turns=…)",
    "max_steps": "limits=Limits(turns=…)",
    "max_turns": "limits=Limits(turns=…)",
    "memory": "store=… and a key= for each conversation",
    "message_history": "messages=…",
    "model_settings": "them to as_model(client, …)",
    "output_schema": "returns=…",
    "output_type": "returns=…",
    "prompt": "instructions=…",
    "recursion_limit": "limits=Limits(turns=…)",
    "response_format": "returns=…",
    "response_model": "returns=…",
    "result_type": "returns=…",
    "retries": "Retrying(model) as the model",
    "system": "instructions=…",
    "system_message": "instructions=…",
    "system_prompt": "instructions=…",
    "temperature": "it to as_model(client, temperature=…)",
    "timeout": "limits=Limits(seconds=…)",
    "top_p": "it to as_model(client, top_p=…)",
    "usage_limits": "limits=…",
    "verbose": "agent.stream(…), whose events say what happens",
}
"""Options of agents by their names in other libraries: what is passed here."""


def knows_names(
    what: str, elsewhere: Mapping[str, str] = _ELSEWHERE
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Say for an unknown keyword of a function what to pass in its place.

    Args:
        what: What has the options, for the error: `"Agent"`.
        elsewhere: What to pass, by the names of other libraries. Default: those of agents.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        known = [
            name
            for name, one in inspect.signature(function).parameters.items()
            if one.kind in (one.KEYWORD_ONLY, one.POSITIONAL_OR_KEYWORD) and name != "self"
        ]
        names = frozenset(known)

        def check(options: Mapping[str, object]) -> None:
            if not names.issuperset(options):
                _refuse(what, next(name for name in options if name not in names), known, elsewhere)

        @functools.wraps(function)
        def checked(*args: P.args, **options: P.kwargs) -> R:
            check(options)
            return function(*args, **options)

        @functools.wraps(function)
        async def awaited(*args: P.args, **options: P.kwargs) -> object:
            check(options)
            return await cast("Awaitable[object]", function(*args, **options))

        return cast("Callable[P, R]", awaited) if inspect.iscoroutinefunction(function) else checked

    return decorate


def knows_names_of_fields(elsewhere: Mapping[str, str]) -> Callable[[type[T]], type[T]]:
    """Say the same for the fields of a dataclass."""

    def decorate(kind: type[T]) -> type[T]:
        made = cast("Callable[..., None]", kind.__init__)
        setattr(kind, "__init__", knows_names(kind.__name__, elsewhere)(made))  # noqa: B010
        return kind

    return decorate


def _refuse(what: str, name: str, known: list[str], elsewhere: Mapping[str, str]) -> None:
    near = _lazy.difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    if name in elsewhere:
        hint = elsewhere[name]
    elif near:
        hint = f"{near[0]}=…"
    else:
        hint = f"one of {', '.join(known)}"
    raise TypeError(f"expected an option of {what}: got {name}; pass {hint}")
