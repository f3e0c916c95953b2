"""Waiting for what goes on if the task that waits is cancelled."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from callslip._base import _lazy

if TYPE_CHECKING:
    import asyncio

__all__ = ["shielded"]

ResultT = TypeVar("ResultT")


def shielded(future: asyncio.Future[ResultT]) -> asyncio.Future[ResultT]:
    """Return a future that can be cancelled without the one that it waits for.

    As `asyncio.shield`. But an exception that comes after the cancellation is not logged as one
    that nobody has retrieved: nobody waits for it any more.
    """
    future.add_done_callback(_retrieve)
    return _lazy.asyncio.shield(future)


def _retrieve(future: asyncio.Future[ResultT]) -> None:
    if not future.cancelled():
        future.exception()
