"""The event loop that runs in this thread, and Ctrl-C while `run_sync` holds it up."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from callslip import _lazy
from callslip.errors import UsageError

__all__ = ["answered_at_once", "check_loop", "holds_up_a_loop"]


def holds_up_a_loop() -> bool:
    """Whether an event loop runs in this thread."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return False
    # The public one raises where there is none, as in nearly every run.
    return asyncio._get_running_loop() is not None


def check_loop() -> None:
    """Raise `UsageError` where no event loop of asyncio runs."""
    if not holds_up_a_loop():
        raise UsageError(
            "expected a running event loop of asyncio: got none; under trio, call "
            "await trio.to_thread.run_sync(agent.run_sync, task)"
        )


@contextmanager
def answered_at_once() -> Iterator[None]:
    """Have Ctrl-C raise `KeyboardInterrupt` where it would only be told to the loop held up."""
    before = _handler()
    if before is None:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        # A tool may have put its own there, to stay.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, before)


def _handler() -> Callable[..., object] | None:
    """Return the handler of `asyncio.run`, where it is in place and can be replaced.

    It cancels the main task, which hears of nothing until `run_sync` returns. A handler of the
    program's own is left alone: what Ctrl-C means is its to say.
    """
    if threading.current_thread() is not threading.main_thread():
        return None
    handler = signal.getsignal(signal.SIGINT)
    if isinstance(handler, partial) and isinstance(
        getattr(handler.func, "__self__", None), _lazy.asyncio.Runner
    ):
        return handler
    return None
