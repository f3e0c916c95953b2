"""Responses of text generation: Hugging Face, and vLLM without a server."""

from __future__ import annotations

from callslip.models._blocks import text_of
from callslip.models._fields import field
from callslip.models._piece import Piece, check_end
from callslip.models._token_counts import read_usage

__all__ = ["read_batch", "read_generated"]


def read_generated(item: object) -> Piece | None:
    """Read a response of Hugging Face: of its server, its client or a pipeline."""
    token = field(item, "token")
    generated = field(item, "generated_text")
    details = field(item, "details")
    if token is not None and isinstance(field(token, "text"), str):
        # In a stream the last chunk repeats the whole text.
        text = "" if field(token, "special") else text_of(field(token, "text"))
        piece = Piece(text, usage=read_usage(details), is_service=True)
    elif isinstance(generated, str):
        piece = Piece(generated, usage=read_usage(details))
    elif isinstance(generated, (list, tuple)) and generated:
        # A pipeline returns the messages that it received, with the reply as the last one.
        piece = Piece(text_of(field(generated[-1], "content")))
    else:
        return None
    is_service = piece.is_service
    check_end(piece, field(details, "finish_reason"))
    piece.is_service = is_service
    return piece


def read_batch(items: list[object] | tuple[object, ...]) -> Piece | None:
    """Read the first reply of a batch. Other lists contain the pieces of one reply."""
    first = items[0] if items else None
    if isinstance(first, (list, tuple)):
        return read_batch(first)
    if field(first, "generated_text") is not None:
        return read_generated(first)
    outputs = field(first, "outputs")
    if not isinstance(outputs, (list, tuple)) or not outputs:
        return None
    made = outputs[0]
    read, written = field(first, "prompt_token_ids"), field(made, "token_ids")
    usage = {
        "input_tokens": len(read) if isinstance(read, (list, tuple)) else None,
        "output_tokens": len(written) if isinstance(written, (list, tuple)) else None,
        "cached_tokens": field(first, "num_cached_tokens"),
    }
    piece = Piece(text_of(field(made, "text")), usage=read_usage(usage))
    check_end(piece, field(made, "finish_reason"))
    piece.is_service = False
    return piece
