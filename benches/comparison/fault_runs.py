"""Runs of one peer under each fault, each in a process of its own, and what came of them."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from comparison.call_faults import CALL_FAULTS
from comparison.faults import FAULTS, Fault
from comparison.refusals import why_refused
from comparison.service import Reply, Script, serve

LIMIT = 30.0
"""Seconds that a run may take; one that takes longer hangs."""
SETTLED = 1.0
"""Seconds after a cancel until the connection to the model service must be closed."""
SHOWN = 240
"""Characters that are kept of what the model is told, of answers and of errors."""

Check = Callable[[Mapping[str, Any]], str | None] | None
"""Why a service refuses a request; `None` for one that refuses none."""


def of_calls(adapter: Any, names: Sequence[str]) -> dict[str, Any]:
    """Try each fault of tool calls with a strict service, by row of the page."""
    rows = adapter.rows() if hasattr(adapter, "rows") else {"": adapter}
    return {title: all_of(one, names, CALL_FAULTS, why_refused) for title, one in rows.items()}


def all_of(
    adapter: Any, names: Sequence[str], faults: Sequence[Fault] = FAULTS, check: Check = None
) -> dict[str, Any]:
    """Try each fault in a fork of this process, which has imported the peer already."""

    async def transfer(account: str, amount: float) -> str:
        """Transfer money to an account.

        Args:
            account: Who gets the money.
            amount: How much.
        """
        return account

    adapter.transfers("http://127.0.0.1:9/v1", transfer, None)
    return {
        fault.name: forked(adapter, fault, check)
        for fault in faults
        if not names or fault.name in names
    }


def forked(adapter: Any, fault: Fault, check: Check) -> dict[str, Any]:
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        Trial(adapter, fault, writing, check).run()
    os.close(writing)
    said = b""
    try:
        end = time.monotonic() + LIMIT + 5
        while select.select([reading], [], [], max(0.0, end - time.monotonic()))[0]:
            piece = os.read(reading, 65536)
            if not piece:
                break
            said += piece
    finally:
        os.close(reading)
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    return dict(json.loads(said))


class Trial:
    """One run under a fault, in a process that ends with it."""

    def __init__(self, adapter: Any, fault: Fault, writing: int, check: Check) -> None:
        self.adapter = adapter
        self.fault = fault
        self.writing = writing
        self.executed: list[list[str]] = []
        encode = getattr(adapter, "encode", lambda reply: reply)
        last = encode(getattr(adapter, "DONE", Reply(text="done")))
        self.script = Script([encode(reply) for reply in fault.replies], last, check=check)
        self.began = time.monotonic()

    def run(self) -> None:
        # A peer that blocks its event loop is ended from here.
        threading.Timer(LIMIT + 1, self.end, [{"ended": "hangs"}]).start()
        with serve(self.script) as base:
            try:
                asyncio.run(self.all_of(base))
            except BaseException as error:  # noqa: BLE001
                self.end(raised(error))

    async def all_of(self, base: str) -> None:
        # It does not return: threads of a peer that still wait would be waited for.
        self.end(await self.outcome(base))

    async def outcome(self, base: str) -> dict[str, Any]:
        run = self.adapter.transfers(base, self.transfer, self.fault.timeout)
        self.began = time.monotonic()
        task = asyncio.ensure_future(run())
        await asyncio.wait([task], timeout=self.fault.cancel_after or LIMIT)
        if self.fault.cancel_after and not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=5)
            await asyncio.sleep(SETTLED)
            if task.done() and self.script.open:
                return {"ended": "goes on"}
        if not task.done():
            return {"ended": "hangs"}
        if task.cancelled():
            return {"ended": "cancelled"}
        error = task.exception()
        return raised(error) if error else {"ended": "answers", "text": shorten(task.result())}

    async def transfer(self, account: str, amount: float) -> str:
        """Transfer money to an account.

        Args:
            account: Who gets the money.
            amount: How much.
        """
        self.executed.append([shorten(repr(account)), shorten(repr(amount))])
        if self.fault.fails:
            raise RuntimeError("the bank is closed")
        return "transferred"

    def end(self, found: dict[str, Any]) -> None:
        record = {
            **found,
            "executed": self.executed[:3],
            "executions": len(self.executed),
            "requests": len(self.script.requests),
            "told": self.told(),
            "seconds": round(time.monotonic() - self.began, 1),
        }
        os.write(self.writing, json.dumps(record).encode())
        os._exit(0)

    def told(self) -> str:
        """Return what the model reads after its faulty reply."""
        if len(self.script.requests) < 2 or self.fault.timeout:
            return ""
        messages = self.script.requests[1]["messages"]
        answers = [one for one in messages if one["role"] in {"tool", "user"}]
        content = answers[-1]["content"]
        if isinstance(content, list):
            content = " ".join(str(part.get("text", "")) for part in content)
        return shorten(content)


def raised(error: BaseException) -> dict[str, Any]:
    return {"ended": "raises", "error": type(error).__name__, "text": shorten(error)}


def shorten(value: object) -> str:
    return " ".join(str(value).split())[:SHOWN]
