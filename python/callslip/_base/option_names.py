"""Errors about unknown options, with hints for names of other libraries."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, ParamSpec, TypeVar, cast

from callslip._base import _lazy

__all__ = ["knows_names", "knows_names_of_class"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_ELSEWHERE: Final[Mapping[str, str]] = {
    "allow_delegation": "delegate=True",
    "backstory": "instructions=…",
    "callbacks": "agent.stream(…), whose events say what happens",
    "checkpointer": "store=…",
    "context": "deps=…",
    "deps": "it to the run: agent.run_sync(task, deps=…)",
    "deps_type": "deps=… to the run, and annotate tools with Context[Deps]",
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
"""Replacements for options of other libraries."""


_SHOWN = 6
"""Names of options in an error about positions."""


def knows_names(
    what: str, elsewhere: Mapping[str, str] = _ELSEWHERE
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Raise errors with hints for arguments that a function does not take.

    Args:
        what: The name of the function, for the error: `"Agent"`.
        elsewhere: Hints by the names of other libraries. Default: those of agents.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        taken = _Taken(what, function, elsewhere)

        @functools.wraps(function)
        def checked(*args: P.args, **options: P.kwargs) -> R:
            taken.check(len(args), options)
            return function(*args, **options)

        @functools.wraps(function)
        async def awaited(*args: P.args, **options: P.kwargs) -> object:
            taken.check(len(args), options)
            return await cast("Awaitable[object]", function(*args, **options))

        return cast("Callable[P, R]", awaited) if inspect.iscoroutinefunction(function) else checked

    return decorate


def knows_names_of_class(
    elsewhere: Mapping[str, str] | None = None,
) -> Callable[[type[T]], type[T]]:
    """Say the same for the arguments with which a class is called. As `knows_names`."""

    def decorate(kind: type[T]) -> type[T]:
        made = cast("Callable[..., None]", kind.__init__)
        setattr(kind, "__init__", knows_names(kind.__name__, elsewhere or {})(made))  # noqa: B010
        return kind

    return decorate


class _Taken:
    """The arguments that a function takes.

    Args:
        what: The name of the function, for errors.
        function: The function.
        elsewhere: Hints by the names of other libraries.
    """

    def __init__(
        self, what: str, function: Callable[..., object], elsewhere: Mapping[str, str]
    ) -> None:
        self._what, self._elsewhere = what, elsewhere
        parameters = list(inspect.signature(function).parameters.values())
        self._own = int(bool(parameters) and parameters[0].name == "self")
        by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        placed = [one for one in parameters if one.kind in by_place]
        self._places = [one.name for one in placed]
        self._required = [one.name for one in placed if one.default is one.empty]
        kinds = {one.kind for one in parameters}
        self._most = None if inspect.Parameter.VAR_POSITIONAL in kinds else len(placed)
        named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self._known = [one.name for one in parameters[self._own :] if one.kind in named]
        self._names = frozenset(self._known)
        self._takes_all = inspect.Parameter.VAR_KEYWORD in kinds

    def check(self, count: int, options: Mapping[str, object]) -> None:
        """Check the number of positional arguments and the names of the others.

        Raises:
            TypeError: The function does not take them, or needs more.
        """
        if not (self._takes_all or self._names.issuperset(options)):
            self._refuse_name(next(name for name in options if name not in self._names))
        if self._most is not None and count > self._most:
            self._refuse_count(count)
        if count < len(self._required):
            for name in self._required[count:]:
                if name not in options:
                    raise TypeError(
                        f"expected {name} of {self._what}: got none; pass {self._what}({name}, …)"
                    )

    def _refuse_name(self, name: str) -> None:
        near = _lazy.difflib.get_close_matches(name, self._known, n=1, cutoff=0.75)
        if name in self._elsewhere:
            hint = self._elsewhere[name]
        elif near:
            hint = f"{near[0]}=…"
        else:
            hint = f"one of {', '.join(self._known)}"
        raise TypeError(f"expected an option of {self._what}: got {name}; pass {hint}")

    def _refuse_count(self, count: int) -> None:
        places = self._places[self._own :]
        further = [f"{name}=…" for name in self._known if name not in places]
        expected = f"only {' and '.join(places)}" if places else "nothing"
        names = ", ".join(further[:_SHOWN] + ["…"] * (len(further) > _SHOWN))
        if further:
            hint = f"the others by their names: {names}"
        else:
            hint = f"them by name: {self._what}(name=value)" if self._takes_all else "no others"
        raise TypeError(
            f"expected {expected} by position in {self._what}(…): got {count - self._own}; pass "
            f"{hint}"
        )
