"""The part that all wrappers of models have."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Self

from callslip._threads.gate import Gate
from callslip.models._attempt import HasAttempts
from callslip.models._bounds import Bounds
from callslip.models._call import ModelCall
from callslip.models._context import CountTokens
from callslip.models._direct import answer
from callslip.models._offered import check_messages
from callslip.models._reply import Messages
from callslip.parts import PartKind

__all__ = ["Wrapper"]


class Wrapper(HasAttempts):
    """A callable around one or more models, which offers a run what they offer.

    Attributes:
        accepts: The keywords of a run that any of the models accepts.
        grammar_form: The form of grammar of the first model that accepts one; `None` for none.
        bounds: The limits of that model on the text at one place; `None` for no limits.
        context: The smallest context of the models, in tokens; `None` if none is known.
        count_tokens: Counts tokens as the model with that context does, or else as the first one
            that does; `None` if none does.
        is_async: Whether any of the models is known to be async.
        gate: The gate of the first model; `None` if it has none.
    """

    def __init__(self, *models: object) -> None:
        self._calls = tuple(ModelCall(model) for model in models)
        forms = [call for call in self._calls if call.grammar_form is not None]
        self.accepts: frozenset[str] = frozenset().union(*(call.accepts for call in self._calls))
        self.grammar_form: str | None = forms[0].grammar_form if forms else None
        self.bounds: Bounds | None = forms[0].bounds if forms else None
        contexts = [call for call in self._calls if call.context is not None]
        contexts.sort(key=lambda call: call.context or 0)
        self.context: int | None = contexts[0].context if contexts else None
        counts = (call.count_tokens for call in (*contexts[:1], *self._calls))
        self.count_tokens: CountTokens | None = next(
            (count for count in counts if count is not None), None
        )
        self.is_async: bool = any(call.is_async for call in self._calls)
        self.gate: Gate | None = self._calls[0].gate

    @property
    def parts(self) -> frozenset[PartKind]:
        """The kinds of images and files that any of the models takes."""
        return frozenset().union(*(call.parts for call in self._calls))

    def __call__(self, messages: Messages, **options: object) -> object:
        """Answer the messages outside of a run, where attempts that fail are not logged.

        Returns:
            A `ModelReply` or a stream of `ModelChunk`s; an awaitable of one of these if the model
            is async.

        Raises:
            UsageError: `messages` is not a list of messages.
            Exception: That of the last attempt.
        """
        check_messages(messages)
        return answer(ModelCall(self).attempts(), messages, options, is_async=self.is_async)

    def _leaves(self) -> list[ModelCall]:
        """Return the models inside, without their wrappers."""
        return [leaf for call in self._calls for leaf in call.leaves()]

    def without_retries(self) -> Self:
        """Return this wrapper around models whose clients do not retry by themselves."""
        wrapper = copy(self)
        wrapper._calls = tuple(call.without_retries() for call in self._calls)
        return wrapper

    def _inside(self) -> Iterator[Wrapper]:
        """Yield this wrapper and those inside of it."""
        yield self
        for call in self._calls:
            if isinstance(call.model, Wrapper):
                yield from call.model._inside()

    @property
    def _inner(self) -> object:
        return self._calls[0].model
