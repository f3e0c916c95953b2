"""Tools that do anything: at once or slowly, well or badly, many at a time or few."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import suppress
from typing import Any

from callslip import Context, Retry, tool
from soak.players import OutOfOrderError


def made() -> list[Any]:
    @tool
    def quick(n: int) -> int:
        """Give it back."""
        return n

    @tool
    async def slow(n: int) -> int:
        """Take a while, and at times no notice of being cancelled."""
        seconds = random.random() * 0.03
        if n % 5 == 0:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(seconds)
            return n
        await asyncio.sleep(seconds)
        return n

    @tool
    def slow_sync(n: int, context: Context) -> int:
        """Take a while in a thread; stop when nobody waits any more."""
        until = time.monotonic() + random.random() * 0.03
        while time.monotonic() < until and not context.cancelled:
            time.sleep(0.002)
        return n

    @tool
    def broken(n: int) -> int:
        """Fail, and at times do something that is waited for otherwise."""
        if n % 4 == 0:
            raise asyncio.CancelledError
        raise OutOfOrderError(str(n))

    @tool
    async def picky(n: int) -> int:
        """Ask for another try."""
        if n % 3:
            raise Retry("another number, please")
        return n

    @tool(timeout=0.01)
    def late(n: int) -> int:
        """Take longer than it may."""
        time.sleep(random.random() * 0.02)
        return n

    @tool(concurrency=2)
    async def narrow(n: int) -> int:
        """Let two in at once."""
        await asyncio.sleep(random.random() * 0.01)
        return n

    @tool(concurrency=1)
    def narrow_sync(n: int) -> int:
        """Let one in at once."""
        time.sleep(random.random() * 0.005)
        return n

    @tool(readonly=True, effect="pure")
    async def look(n: int) -> int:
        """Start before the block is whole."""
        await asyncio.sleep(random.random() * 0.01)
        return n

    return [quick, slow, slow_sync, broken, picky, late, narrow, narrow_sync, look]


def asking() -> list[Any]:
    """Those that need approval."""

    @tool(needs_approval=True)
    async def sign(n: int) -> int:
        """Sign."""
        await asyncio.sleep(random.random() * 0.01)
        return n

    @tool(needs_approval=True, concurrency=1, effect="idempotent")
    def seal(n: int) -> int:
        """Seal."""
        return n

    return [sign, seal]
