"""Models that take tools, made of models that write text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from callslip._base.option_names import knows_names_of_class
from callslip._protocols import DEFAULT_PROTOCOL
from callslip._threads.gate import Gate
from callslip.agent._turn_engine import TurnEngine
from callslip.errors import UsageError
from callslip.models import Messages, ToolChoice, ToolForm
from callslip.models._bounds import Bounds
from callslip.models._call import ModelCall
from callslip.models._context import CountTokens
from callslip.models._offered import check_messages, check_offered
from callslip.parts import PartKind
from callslip.protocols import Protocol, ProtocolName, find_protocol

__all__ = ["WithTools"]

_AUTO = ToolChoice()


@knows_names_of_class({"max_retries": "max_violations=…", "retries": "max_violations=…"})
class WithTools:
    """A model that takes tools, made of one that only writes text.

    Each request is one turn of a text protocol. The prompt describes the tools, and the earlier
    calls and results are in the form of the protocol. Models with constrained decoding receive a
    grammar. Invalid replies are refused, and the model tries again, up to `max_violations` times in
    a row. The result is an answer, or calls that fit the schemas of the tools. If no reply is
    valid, the result is a fault: the run counts one violation, and asks again.

    Without tools, a request goes to the model as it is.

    Args:
        model: Any model, as for `Agent`.
        protocol: `"react"` (default) for one call in a reply, `"chatty"` for several; or an object
            of one of them with its options.
        max_violations: Invalid replies in a row that are allowed; one more is a fault. Default: 3.
        calls_first: Whether each message of the user is answered with a call first, for models that
            would answer from memory. Default: `False`.

    Attributes:
        accepts: The accepted keywords of a run: `tools` and `tool_choice`, and `stop`, `seed` and
            `max_tokens` if the model accepts them.
        context: The tokens of the model's context; `None` if that is not known.
        count_tokens: Counts tokens as the model does; `None` if it doesn't.
        bounds: The limits of the model on the text at one place; `None` for none.
        gate: The gate of a `BoundedModel`; `None` without one.
        is_async: Whether the model is known to be async.
        model: The name of the model at its server; `None` if that is not known.
        provider: The name of its provider; `None` if that is not known.

    Raises:
        UsageError: The model cannot be called, or an option has a wrong value.
    """

    def __init__(
        self,
        model: object,
        protocol: Protocol | ProtocolName = DEFAULT_PROTOCOL,
        *,
        max_violations: int = 3,
        calls_first: bool = False,
    ) -> None:
        self._options: dict[str, Any] = {
            "protocol": protocol,
            "max_violations": max_violations,
            "calls_first": calls_first,
        }
        self._call = call = ModelCall(model)
        if not find_protocol(protocol)._retells:
            raise UsageError(
                f"expected protocol='react' or 'chatty' for WithTools: got {protocol!r}; use "
                "'react' for one call in a reply, 'chatty' for several"
            )
        self._engine = TurnEngine(call, **self._options)
        own = frozenset({"stop", "seed", "max_tokens"})
        self.accepts: frozenset[str] = (call.accepts & own) | {"tools", "tool_choice"}
        self.context: int | None = call.context
        self.count_tokens: CountTokens | None = call.count_tokens
        self.bounds: Bounds | None = call.bounds
        self.gate: Gate | None = call.gate
        self.is_async: bool = call.is_async
        model, provider = call.leaves()[0].known_name
        self.model: str | None = model
        self.provider: str | None = provider

    @property
    def parts(self) -> frozenset[PartKind]:
        """The kinds of images and files that the model takes."""
        return self._call.parts

    def __call__(
        self,
        messages: Messages,
        *,
        tools: Sequence[ToolForm] = (),
        tool_choice: ToolChoice | None = None,
        stop: Sequence[str] | None = None,
        seed: int | None = None,
        max_tokens: int | None = None,
    ) -> object:
        """Answer the last message, or call tools.

        Args:
            messages: The conversation, as a native run has it.
            tools: The tools.
            tool_choice: The allowed calls. Default: any tool, or an answer.
            stop: Stop sequences for the text of the model.
            seed: The seed.
            max_tokens: Output tokens of one reply of the model.

        Returns:
            A `ModelReply`; an awaitable of one if the model is async. Without tools, the result of
            the model.

        Raises:
            UsageError: The messages or an option cannot be used.
            ToolError: The tools cannot be described in the prompt.
            Exception: The model failed.
        """
        check_messages(messages)
        given = {"stop": stop, "seed": seed, "max_tokens": max_tokens}
        check_offered(given)
        options = {name: value for name, value in given.items() if value is not None}
        if not tools:
            return self._call(messages, **options)
        turn = self._engine.turn(messages, tools, tool_choice or _AUTO, options)
        return turn.ask_on_loop() if self.is_async else turn.ask()

    def without_retries(self) -> WithTools:
        """Return a copy with a model without retries of its client."""
        return WithTools(self._call.without_retries().model, **self._options)

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._call.model, self._options)

    def __repr__(self) -> str:
        return f"WithTools({self._call.model!r})"


def _again(model: object, options: dict[str, Any]) -> WithTools:
    """Make a pickled or copied model."""
    return WithTools(model, **options)
