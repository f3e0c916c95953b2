"""A model of which only so many calls run at once."""

from __future__ import annotations

from callslip._threads.gate import Gate
from callslip.errors import UsageError
from callslip.models._call import ModelCall
from callslip.models._reply import Messages

__all__ = ["BoundedModel"]


class BoundedModel:
    """A model of which at most so many calls run at once.

    The bound is over all agents and runs that are given this object. Runs take turns: one with many
    children holds no other one up. A call counts from its beginning until its reply has been read.

    It is the agents that keep to the bound: calling this object yourself just calls the model.

    Args:
        model: Any model. What it takes from a run (`stop`, `grammar`, …) still reaches it.
        concurrency: Calls that run at once, 1 or more. Default 8.

    Attributes:
        accepts: The keywords that the model takes from a run.
        grammar_form: The form of grammar that it takes; `None` if it takes none.
        bounds: How much it may say at one place under a grammar; `None` for as much as it likes.
        is_async: Whether it is known to be async.
        gate: What the calls go through.

    Raises:
        UsageError: The model can't be called, is bounded already, or the bound is no count.
    """

    def __init__(self, model: object, concurrency: int = 8) -> None:
        self._call = ModelCall(model)
        if self._call.gate is not None:
            raise UsageError("the model is bounded already: give BoundedModel the model inside it")
        try:
            self.gate = Gate(concurrency)
        except ValueError as error:
            raise UsageError(str(error)) from None
        self.accepts = self._call.accepts
        self.grammar_form = self._call.grammar_form
        self.bounds = self._call.bounds
        self.is_async = self._call.is_async

    def __call__(self, messages: Messages, **offered: object) -> object:
        """Call the model, which is not kept to the bound here."""
        return self._call(messages, **offered)

    def __repr__(self) -> str:
        return f"BoundedModel({self._call.model!r}, concurrency={self.gate.limit})"
