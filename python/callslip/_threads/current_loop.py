"""The event loop of this thread, and Ctrl-C while `run_sync` blocks it."""

from __future__ import annotations

import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from callslip._base import _lazy
from callslip.errors import UsageError

__all__ = ["check_loop", "interruptible", "is_in_loop", "is_in_trio", "warn_of_blocking"]


def is_in_loop() -> bool:
    """Whether an event loop runs in this thread."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return False
    # The public function raises without a loop, which is the case in nearly every run.
    return asyncio._get_running_loop() is not None


def warn_of_blocking(called: str, instead: str) -> None:
    """Warn if a sync call is about to block the event loop of this thread.

    Notebooks get no warning: their cells run one after the other anyway.

    Args:
        called: The sync function.
        instead: The async function.
    """
    if not is_in_loop() or _is_in_notebook():
        return
    # The warning names the line of the program.
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _is_own(frame.f_globals):
        level, frame = level + 1, frame.f_back
    warnings.warn(
        f"{called} stops the running event loop until it returns: use await {instead}(…), or call "
        f"await asyncio.to_thread({called}, …)",
        RuntimeWarning,
        stacklevel=level,
    )


def _is_own(names: Mapping[str, object]) -> bool:
    return str(names.get("__name__")).startswith("callslip.")


def _is_in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def check_loop(in_thread: str = "agent.run_sync, task") -> None:
    """Check that an event loop of asyncio runs in this thread.

    Args:
        in_thread: What a program that uses trio can call in another thread instead.

    Raises:
        UsageError: There is none.
    """
    if not is_in_loop():
        found = "that of trio" if is_in_trio() else "none"
        raise UsageError(
            f"expected a running event loop of asyncio: got {found}; under trio, call "
            f"await trio.to_thread.run_sync({in_thread})"
        )


def is_in_trio() -> bool:
    """Whether trio runs in this thread."""
    trio = sys.modules.get("trio")
    if trio is None:
        return False
    try:
        trio.lowlevel.current_trio_token()
    except RuntimeError:
        return False
    return True


@contextmanager
def interruptible() -> Iterator[None]:
    """Have Ctrl-C raise `KeyboardInterrupt` at once, not only when the blocked loop continues."""
    before = _handler()
    if before is None:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        # A tool may have set a handler of its own, which stays.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, before)


def _handler() -> Callable[..., object] | None:
    """Return the handler of `asyncio.run`, if it is set and can be replaced.

    It cancels the main task, which has no effect until `run_sync` returns. A handler of the
    program's own stays.
    """
    if threading.current_thread() is not threading.main_thread():
        return None
    handler = signal.getsignal(signal.SIGINT)
    if isinstance(handler, partial) and isinstance(
        getattr(handler.func, "__self__", None), _lazy.asyncio.Runner
    ):
        return handler
    return None
