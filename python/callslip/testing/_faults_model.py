"""A model whose replies go wrong as a test plans it."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

from callslip._base import _lazy
from callslip._base.options import check_called_with, check_type, shown
from callslip.errors import UsageError
from callslip.models._call import ModelCall
from callslip.models._direct import answer, join_chunks, read_whole
from callslip.models._items import Envelope
from callslip.models._reply import Messages, ModelChunk, ModelReply, ReplyStream, open_result
from callslip.testing._reply_text import pieces_of, reply_of, text_of
from callslip.testing._say import Say
from callslip.testing.faults import Fault, Hang

if TYPE_CHECKING:
    from callslip.models._bounds import Bounds
    from callslip.parts import PartKind

__all__ = ["Faults"]

_Changed: TypeAlias = "ModelReply | Iterable[str | ModelChunk]"


class Faults:
    """A model whose replies have faults.

    A fault that changes the text of a reply waits for the whole reply. An exception takes the
    place of a call: the model is not called. Used in a `with` statement it calls `close` and
    `assert_done` at the end.

    Args:
        model: The model, such as a `ScriptedModel`.
        say: The `Say` of the agent's protocol.
        faults: Faults by the number of the call, from 1, with repeated calls (`Retrying`) counted
            too; or a list of faults, which are drawn at random. Of these a reply only gets one that
            it has a place for.
        rate: The share of calls with a fault, above 0 and up to 1, for a list of faults.
        seed: The seed of the draws, which follow the order of the calls. Default: 0.

    Raises:
        UsageError: There are no faults, or the options do not fit them. From a call: the reply has
            no place for the planned fault, or the fault has not changed it.
    """

    def __init__(
        self,
        model: object,
        say: Say,
        faults: Mapping[int, Fault] | Sequence[Fault],
        *,
        rate: float | None = None,
        seed: int = 0,
    ) -> None:
        call = ModelCall(model)
        check_type("say", say, Say, "Say(…) of the agent's protocol")
        self._call = call
        self._plan = _Plan(faults, rate, seed)
        self._say = say
        self._is_over = threading.Event()
        self._wrong: UsageError | None = None
        self.accepts: frozenset[str] = call.accepts
        self.grammar_form: str | None = call.grammar_form
        self.bounds: Bounds | None = call.bounds
        self.context: int | None = call.context
        self.parts: frozenset[PartKind] = call.parts
        self.is_async: bool = call.is_async

    @property
    def made(self) -> dict[int, Fault]:
        """The faults that were made, by the number of the call."""
        return dict(self._plan.made)

    def __call__(self, messages: Messages, **options: object) -> object:
        """Return the reply of the model, or a fault in its place."""
        number, faults = self._plan.next()
        if self.is_async:
            return self._answer_later(number, faults, messages, options)
        wait = self._begin(number, faults)
        if wait and self._is_over.wait(wait):
            raise TimeoutError("expected a reply before the end of the test: got none")
        reply = self._ask(messages, options)
        if wait or not faults:
            return reply
        return self._change(number, faults, _whole(open_result(reply)))

    async def _answer_later(
        self, number: int, faults: Sequence[Fault], messages: Messages, options: dict[str, object]
    ) -> object:
        wait = self._begin(number, faults)
        if wait:
            await _lazy.asyncio.sleep(wait)
        reply = await cast("Awaitable[object]", self._ask(messages, options))
        if wait or not faults:
            return reply
        whole = await read_whole(open_result(reply, awaited=True))
        return self._change(number, faults, whole)

    def _ask(self, messages: Messages, options: Mapping[str, object]) -> object:
        return answer(self._call.attempts(), messages, options, is_async=self._call.is_async)

    def _begin(self, number: int, faults: Sequence[Fault]) -> float:
        """Raise an exception that was drawn. Returns the seconds to wait for a `Hang`."""
        first = faults[0] if faults else None
        if isinstance(first, Hang):
            self._plan.made[number] = first
            return first.seconds
        if isinstance(first, BaseException) or (
            isinstance(first, type) and issubclass(first, BaseException)
        ):
            self._plan.made[number] = first
            raise first
        return 0.0

    def _change(self, number: int, faults: Sequence[Fault], reply: ModelReply) -> object:
        """Return the reply with the first fault that it has a place for."""
        for fault in faults:
            if not callable(fault) or isinstance(fault, type):
                continue
            try:
                changed = _changed(fault, reply, self._say)
            except UsageError as error:
                if self._plan.is_drawn:
                    continue
                self._wrong = error
                raise
            self._plan.made[number] = fault
            return changed
        return reply

    def close(self) -> None:
        """End the waits of `hang` in other threads."""
        self._is_over.set()

    def assert_done(self) -> None:
        """Raise `AssertionError` if a planned fault was not made, or none of the drawn ones."""
        if self._wrong is not None:
            raise AssertionError(str(self._wrong)) from self._wrong
        self._plan.assert_done()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
        # A failure of the test itself must not be replaced by that of the remaining faults.
        if kind is None:
            self.assert_done()

    def __repr__(self) -> str:
        return f"Faults({self._call.model!r}, {len(self._plan.made)} made)"


class _Plan:
    """The faults of each call: planned by its number, or drawn."""

    def __init__(
        self, faults: Mapping[int, Fault] | Sequence[Fault], rate: float | None, seed: int
    ) -> None:
        self.is_drawn = not isinstance(faults, Mapping)
        if isinstance(faults, str) or not isinstance(faults, (Mapping, Sequence, type(None))):
            raise UsageError(
                f"expected a list of faults, or a dict by the number of the call: got "
                f"{shown(faults)}; pass [{getattr(faults, '__name__', 'fault')}]"
            )
        if not faults:
            raise UsageError("expected faults: got none")
        for fault in faults.values() if isinstance(faults, Mapping) else faults:
            _check_fault(fault)
        if isinstance(faults, Mapping):
            if rate is not None:
                raise UsageError("expected no rate for planned faults: pass a list of faults")
            for number in faults:
                if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                    raise UsageError(f"expected the number of a call, from 1: got {number!r}")
        else:
            _check_rate(rate)
        check_type("seed", seed, int, "a whole number")
        self.made: dict[int, Fault] = {}
        self._faults = faults
        self._rate = rate or 0.0
        self._random = Random(seed)  # noqa: S311  # a test has to draw the same faults again
        self._calls = 0
        self._lock = threading.Lock()

    def next(self) -> tuple[int, Sequence[Fault]]:
        """Return the number of the next call and its faults, of which the first one that fits."""
        with self._lock:
            self._calls += 1
            if isinstance(self._faults, Mapping):
                planned = self._faults.get(self._calls)
                return self._calls, () if planned is None else (planned,)
            drawn = self._random.random() < self._rate
            order = self._random.sample(self._faults, len(self._faults))
            return self._calls, order if drawn else ()

    def assert_done(self) -> None:
        """Raise `AssertionError` if a planned fault was not made, or none of the drawn ones."""
        if isinstance(self._faults, Mapping):
            left = sorted(self._faults.keys() - self.made.keys())
            if left:
                raise AssertionError(
                    f"expected faults in the calls {left}: got {self._calls} calls without them"
                )
        elif not self.made:
            raise AssertionError(
                f"expected at least one fault: got none in {self._calls} calls: pass another seed"
            )


def _check_rate(rate: object) -> None:
    is_number = isinstance(rate, (int, float)) and not isinstance(rate, bool)
    if not is_number or not 0 < rate <= 1:  # type: ignore[operator]
        raise UsageError(f"expected a rate above 0 and up to 1: got {shown(rate)}: pass rate=…")


def _check_fault(fault: object) -> None:
    is_exception = isinstance(fault, BaseException) or (
        isinstance(fault, type) and issubclass(fault, BaseException)
    )
    is_function = callable(fault) and not isinstance(fault, type)
    if not (is_exception or is_function or isinstance(fault, Hang)):
        raise UsageError(
            f"expected a function, a wait or an exception as a fault: got {shown(fault)}"
        )
    if is_function:
        check_called_with("a fault", fault, "the reply", "the Say")


def _changed(fault: Any, reply: ModelReply, say: Say) -> _Changed:
    """Return what a fault makes of a reply.

    Raises:
        UsageError: The reply itself, or nothing that a model replies.
    """
    before = text_of(reply, say)
    made = fault(before, say)
    name = getattr(fault, "__name__", repr(fault))
    if isinstance(made, str):
        made = reply_of(made, say, reply)
    elif isinstance(made, ModelReply) and isinstance(made.text, Envelope):
        made = reply_of(made.text, say, made)
    if isinstance(made, ModelReply):
        is_same = text_of(made, say) == before
        if is_same and made.finish_reason in (None, reply.finish_reason):
            raise UsageError(f"expected {name} to change the reply: got the same {before!r}")
        return made
    if isinstance(made, (bytes, Mapping)) or not isinstance(made, Iterable):
        raise UsageError(f"expected a reply or the pieces of one from {name}: got {made!r}")
    return pieces_of(cast("Iterable[str]", made), say)


def _whole(reply: object) -> ModelReply:
    if isinstance(reply, ModelReply):
        return reply
    stream = cast("ReplyStream", reply)
    try:
        return join_chunks(stream)
    finally:
        stream.close()
