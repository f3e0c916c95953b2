"""Errors about unknown attributes, with hints for names of other libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from callslip._base import _lazy

__all__ = ["OF_AGENTS", "knows_attributes", "unknown_name"]

T = TypeVar("T")

OF_AGENTS: Final[Mapping[str, str]] = {
    "add_tool register_tool tool tools": "Agent(…, tools=[…]), or agent.replace(tools=[…])",
    "ask chat execute invoke kickoff": "agent.run_sync(task), or await agent.run(task)",
    "acall ainvoke arun run_async": "await agent.run(task)",
    "astream iter run_stream run_streamed": "async with agent.stream(task) as run",
    "instructions prompt": "agent.system_prompt, or agent.replace(instructions=…)",
    "memory output_type": "Agent(…, store=…, returns=…), or agent.replace(…)",
    "conversation messages": "result.messages of what agent.run_sync(task) returns",
}
"""Replacements for attributes of agents in other libraries."""


def knows_attributes(elsewhere: Mapping[str, str]) -> Callable[[type[T]], type[T]]:
    """Add a hint to the error for an unknown attribute of a class.

    Type checkers still report unknown attributes.

    Args:
        elsewhere: Hints by the names of other libraries, with spaces between them.
    """
    hints = {name: hint for names, hint in elsewhere.items() for name in names.split()}

    def decorate(kind: type[T]) -> type[T]:
        def missing(self: T, name: str) -> object:
            if hasattr(type(self), name):
                # Its own code has raised this.
                return object.__getattribute__(self, name)
            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            hint = f"; use {hints[name]}" if name in hints else ""
            raise AttributeError(f"{text}{hint}", name=name, obj=self)

        setattr(kind, "__getattr__", missing)  # noqa: B010
        return kind

    return decorate


def unknown_name(
    module: str, name: str, known: Iterable[str], elsewhere: Mapping[str, str] | None = None
) -> AttributeError:
    """Return the error for a name that a module does not have, with a hint if one is near.

    Args:
        module: The module.
        name: The name.
        known: The names of the module.
        elsewhere: Hints by the names of other libraries.
    """
    hint = (elsewhere or {}).get(name)
    if hint is None and not name.startswith("_"):
        hint = next(iter(_lazy.difflib.get_close_matches(name, known, n=1, cutoff=0.75)), None)
    text = f"module {module!r} has no attribute {name!r}"
    return AttributeError(f"{text}; use {hint}" if hint else text, name=name)
