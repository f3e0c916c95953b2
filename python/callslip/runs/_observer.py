"""What an observer of runs receives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from callslip.events import Event
    from callslip.runs._run import Run

__all__ = ["Observer", "ServedAnswer", "ServedRequest"]


class ServedRequest(NamedTuple):
    """A request of a client to a model that this process serves.

    Attributes:
        model: The name of the model for clients.
        streamed: Whether the answer is streamed.
        options: `max_tokens`, `seed` and `stop`, as far as the client has sent them.
        traceparent: The client's own trace, as a header; `None` without one.
    """

    model: str
    streamed: bool
    options: Mapping[str, object]
    traceparent: str | None


class ServedAnswer(NamedTuple):
    """The end of a request.

    Attributes:
        finish_reason: `"stop"`, `"length"` or `"tool_calls"`; `None` without an answer.
        usage: The tokens of all attempts: `input_tokens`, `output_tokens` and `cached_tokens`.
        attempts: The replies that the model has written.
        error: A code for the failure; `None` with an answer.
    """

    finish_reason: str | None = None
    usage: Mapping[str, float] = MappingProxyType({})
    attempts: int = 0
    error: str | None = None


class Observer:
    """A receiver of the events of runs, in the order of each log."""

    def on_event(self, run: Run, event: Event) -> None:
        """Receive an event that was added to the log.

        Args:
            run: The run. Its state may be ahead of the event.
            event: The event.
        """
        raise NotImplementedError

    def on_start(self, run: Run, at: float) -> str | None:  # noqa: ARG002
        """Receive the notice that a run is about to begin.

        Args:
            run: The run.
            at: Unix seconds.

        Returns:
            The trace that it begins in, as a header `traceparent`, for its log; `None` without one.
        """
        return None

    def on_left(self, run: Run) -> None:
        """Receive the notice that the driver has left a run, which may not be over."""

    def enter_call(self, run: Run, ticket: str) -> Callable[[], object] | None:  # noqa: ARG002
        """Prepare the context that a tool is about to run in.

        Args:
            run: The run.
            ticket: The id of the call's ticket, such as `"T1"`.

        Returns:
            Called when that context is left; `None` if nothing is to be done.
        """
        return None

    def enter_request(
        self,
        request: ServedRequest,  # noqa: ARG002
    ) -> Callable[[ServedAnswer], object] | None:
        """Prepare the context in which a served request is answered.

        Args:
            request: The request.

        Returns:
            Called with the end of the request, in the same context; `None` if nothing is to be
            done.
        """
        return None
