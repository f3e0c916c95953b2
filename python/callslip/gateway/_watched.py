"""Answers for the observers of the process, such as OpenTelemetry's."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from callslip.gateway._asked import Answered, Asked, Piece
from callslip.gateway._refused import refused_of
from callslip.runs._observer import ServedAnswer, ServedRequest
from callslip.runs._observers import current_observers

__all__ = ["watched"]

Pieces = AsyncGenerator[Piece | Answered]


async def watched(pieces: Pieces, asked: Asked, model: str, traceparent: str | None) -> Pieces:
    """Yield the pieces of an answer, and tell the observers of its beginning and its end.

    Args:
        pieces: The pieces.
        asked: The request.
        model: The name of the model.
        traceparent: The header of the request; `None` without one.
    """
    end = ServedAnswer(error="client_left")
    request = ServedRequest(model, asked.is_streamed, asked.options, traceparent)
    begun = [observer.enter_request(request) for observer in current_observers()]
    try:
        async with aclosing(pieces):
            async for piece in pieces:
                if isinstance(piece, Answered):
                    end = ServedAnswer(piece.finish_reason, piece.counts, piece.attempts)
                yield piece
    except Exception as error:
        end = ServedAnswer(error=refused_of(error).code)
        raise
    finally:
        for tell in reversed(begun):
            if tell is not None:
                tell(end)
