"""A run as server-sent events, for any framework."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TypeAlias

from callslip._base import _lazy
from callslip._base.json import to_json
from callslip._base.log import GuardedLogger
from callslip._base.options import check_seconds, check_type
from callslip.errors import UnknownRun, UsageError
from callslip.events import Compacted, Delta, Event, Progress, RunStarted
from callslip.events._json import fields_of, fields_of_delta
from callslip.runs import Run, Ticket, Waiting
from callslip.runs._watch import RunWatch
from callslip.web._messages import KEEP_ALIVE, RETRY, SILENCE, message

__all__ = ["Item", "event_stream", "item_json"]

_log = GuardedLogger("callslip.web")

Item: TypeAlias = Event | Delta | Progress | Waiting | Ticket
"""An object with a public JSON form: an item of a watch, or a ticket."""

_ITEMS = (Event, Delta, Progress, Waiting, Ticket)

_LEFT_OUT: dict[type[Event], frozenset[str]] = {
    RunStarted: frozenset({"setup", "instructions"}),
    Compacted: frozenset({"start", "hash", "sum", "state"}),
}
"""Fields with the agent's prompt and tools, or with the whole state: no page needs them."""


def item_json(item: Item) -> str:
    """Return the public JSON form of an item of a watch, or of a ticket.

    It is the form that `event.to_json()` returns; deltas, progress and `Waiting` have the `kind`
    `"delta"`, `"progress"` and `"waiting"`. The result is always valid JSON in UTF-8, without line
    breaks.

    Args:
        item: An event, a delta, a report of progress, a `Waiting`, or a ticket.

    Raises:
        UsageError: It is something else.
    """
    check_type("item", item, _ITEMS, "an item of run.watch(), or a ticket")
    return to_json(fields_of_delta(item)) if isinstance(item, Delta) else item.to_json()


def event_stream(
    run: Run,
    *,
    after: int | None = None,
    children: bool = False,
    silence: float = SILENCE,
) -> AsyncIterator[bytes]:
    """Return a run as server-sent events: first its log, then live.

    Each message is named after the kind of its item, and its data are `item_json`. Only events of
    the run's own log have an id: their `seq`. The event `run_started` comes without `setup` and
    `instructions`, and `compacted` without its state.

    The last message is `end`: its data have the `kind`, `run_id`, the `reason` as in
    `Run.stop_reason`, and the `error` of a run that failed. A page closes its `EventSource` at
    `end`. A run that waits for a decision or an answer stays open: the message `waiting` lists the
    tickets. If the driver leaves the run without an end, as when the server stops, the stream ends
    without `end`, and browsers connect again.

    Leaving the iteration doesn't stop the run.

    Args:
        run: The run, from `agent.start(…)` or `store.run(…)`.
        after: The `seq` of the last event that the client has, from `Last-Event-ID`. Default: none.
        children: As for `Run.watch`.
        silence: Seconds without a message after which a comment is sent, so that proxies keep the
            connection. Default: 15.

    Raises:
        UsageError: The log has no event `after`, or an option has a wrong value.
    """
    check_seconds("silence", silence, zero=False)
    return _messages(run.watch(after=after, children=children), run.id, silence)


async def _messages(watch: RunWatch, run_id: str, silence: float) -> AsyncIterator[bytes]:
    yield RETRY
    error: Exception | None = None
    while True:
        pause = _lazy.asyncio.timeout(silence)
        try:
            async with pause:
                item = await anext(watch)
        except StopAsyncIteration:
            break
        except Exception as raised:  # noqa: BLE001  # a failed run raises any exception
            # The program's own error may be a TimeoutError too.
            if isinstance(raised, TimeoutError) and pause.expired():
                yield KEEP_ALIVE
                continue
            if not _is_end(watch.run, raised):
                _log.warning("the stream of run %s is broken off", run_id, exc_info=raised)
                return
            error = raised
            break
        yield _message(item, run_id)
    yield _end(watch.run, run_id, error)


def _is_end(run: Run, error: Exception) -> bool:
    """Whether a client has no reason to connect again."""
    return run.finished or run._store is None or isinstance(error, UnknownRun | UsageError)


def _end(run: Run, run_id: str, error: Exception | None) -> bytes:
    said = None if error is None else str(error)
    end = {"kind": "end", "run_id": run_id, "reason": run.stop_reason, "error": said}
    return message("end", to_json(end))


def _message(item: Event | Delta | Progress | Waiting, run_id: str) -> bytes:
    if not isinstance(item, Event):
        kind = "progress" if isinstance(item, Progress) else "waiting"
        return message("delta" if isinstance(item, Delta) else kind, item_json(item))
    left_out = _LEFT_OUT.get(type(item), frozenset())
    own = {name: value for name, value in fields_of(item).items() if name not in left_out}
    # The numbers of a child run's log are no place in this one.
    seq = item.seq if item.run_id == run_id else None
    return message(item.kind, to_json({"kind": item.kind, **own}), seq)
