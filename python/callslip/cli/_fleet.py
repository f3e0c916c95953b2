"""`callslip migrate`, `work`, `prune` and `erase`."""

from __future__ import annotations

import argparse
import asyncio
import atexit
import logging
import os
import re
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from callslip.cli._files import check_url, present_store
from callslip.cli._imports import imported
from callslip.cli._output import print_text, report
from callslip.errors import UsageError
from callslip.fleet import Fleet
from callslip.fleet._migrate import make_ready
from callslip.fleet._retention import archive_and_prune, erase_of_owner

__all__ = ["run"]

_NAME = "callslip-work"
_PATIENCE = 0.5
"""Seconds in which threads that have nothing to do any more end."""

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def run(options: argparse.Namespace) -> int:
    """Carry out one of the commands."""
    if options.command == "migrate":
        check_url(options.url)
        done = make_ready(options.url)
        made = "was made ready" if done.before == 0 else f"had version {done.before}"
        print_text(f"the database {made}, and has version {done.after} of the tables")
        if done.hint is not None:
            report(done.hint)
    elif options.command == "work":
        _work(options)
    elif options.command == "erase":
        with present_store(options.url) as store:
            _deleted(erase_of_owner(store, options.owner, options.archive, options.files))
    else:
        with present_store(options.url) as store:
            deleted = archive_and_prune(
                store, _seconds(options.older_than), options.archive, options.files
            )
        _deleted(deleted)
    return 0


def _deleted(runs: int) -> None:
    print_text(f"{runs} {'run was' if runs == 1 else 'runs were'} deleted")


def _work(options: argparse.Namespace) -> None:
    fleet = _fleet(options.fleet)
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    queues = options.queue or ["default"]
    print_text(f"working on {', '.join(queues)}: Ctrl-C or SIGTERM to leave", sys.stderr)
    threads = _Threads(thread_name_prefix=_NAME)

    async def work() -> None:
        asyncio.get_running_loop().set_default_executor(threads)
        await fleet.work(
            queues=queues, slots=options.slots, grace=options.grace, new=not options.no_new
        )

    try:
        asyncio.run(work())
    except KeyboardInterrupt:
        _leave_threads(130)
        raise
    _leave_threads(0)


class _Threads(ThreadPoolExecutor):
    """Threads for `asyncio.to_thread` that asyncio does not wait for when it ends."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002
        super().shutdown(wait=False, cancel_futures=cancel_futures)


def _leave_threads(code: int) -> None:
    """End the process if a tool still occupies a thread: Python itself would wait for it.

    The runs are left by now, and other workers go on with them.
    """
    until = time.monotonic() + _PATIENCE
    while any(thread.name.startswith(_NAME) for thread in threading.enumerate()):
        if time.monotonic() >= until:
            atexit._run_exitfuncs()
            sys.stdout.flush()
            os._exit(code)
        time.sleep(0.01)


def _fleet(name: str) -> Fleet:
    fleet = imported("the fleet", name, "the fleet as module:name")
    if not isinstance(fleet, Fleet):
        raise UsageError(f"expected {name} to be a Fleet: got {type(fleet).__name__}")
    return fleet


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text)
    if found is None:
        raise UsageError(f"expected an age such as 30d, 12h, 90m or 60s: got {text}")
    return float(found[1]) * _UNITS[found[2]]
