"""One request with tools, and its reply, of a sync or an async client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import cast

from callslip.models._items import ToolChoice, ToolForm
from callslip.models._no_reply import check_body
from callslip.models._reply import ModelReply
from callslip.models.native._reading import FaultOf, NativeReader, read_native

__all__ = ["Offer", "native_reply"]


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools of a request, and which of them may be called."""

    tools: tuple[ToolForm, ...]
    choice: ToolChoice


def native_reply(
    send: Callable[[], object],
    reader: NativeReader,
    fault_of: FaultOf,
    *,
    takes_text: bool = False,
) -> object:
    """Send a request and read what the client returns.

    Args:
        send: Calls the client.
        reader: Reads the reply.
        fault_of: Recognises an error that is a fault of the reply; `None` for another one.
        takes_text: As of `read_native`.

    Returns:
        A `ModelReply`, a stream of `ModelChunk`s, or an awaitable of either.

    Raises:
        BaseException: Whatever the client raises, unchanged.
    """
    try:
        result = send()
    except Exception as error:  # noqa: BLE001  # what is no fault is raised again
        return _fault_reply(error, fault_of)
    if hasattr(result, "__await__"):
        awaitable = cast("Awaitable[object]", result)
        return _awaited(awaitable, reader, fault_of, takes_text=takes_text)
    return read_native(result, reader, takes_text=takes_text, fault_of=fault_of)


async def _awaited(
    result: Awaitable[object],
    reader: NativeReader,
    fault_of: FaultOf,
    *,
    takes_text: bool,
) -> object:
    try:
        came = await result
    except Exception as error:  # noqa: BLE001  # what is no fault is raised again
        return _fault_reply(error, fault_of)
    return read_native(came, reader, awaited=True, takes_text=takes_text, fault_of=fault_of)


def _fault_reply(error: Exception, fault_of: FaultOf) -> ModelReply:
    """Return the reply that an error stands for, or raise the error."""
    fault = fault_of(error)
    if fault is None:
        if isinstance(error, ValueError):
            check_body(error)
        raise error
    return ModelReply("", items=(fault,))
