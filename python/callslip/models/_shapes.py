"""Responses of known clients, recognised by their fields; no client library is imported.

| client | whole | streamed |
|---|---|---|
| OpenAI chat (LiteLLM, Mistral, ...) | `choices[0].message.content` | `.delta.content` |
| OpenAI responses | `output[].content[].text` | `response.output_text.delta` |
| Anthropic messages | `content[].text` | `content_block_delta` |
| Gemini | `candidates[0].content.parts[].text` | the same |
| Bedrock converse | `output.message.content[].text` | `contentBlockDelta.delta.text` |
| Cohere | `message.content[].text` | `content-delta` |
| Ollama | `message.content`, `response` | the same |
| Hugging Face | `[0].generated_text` | `token.text` |
| vLLM without a server | `[0].outputs[0].text` | |
| anything with a `.text` or `.content` string (LangChain, ...) | that | that |

Objects and the dicts of their JSON are read alike. Reasoning that a client keeps apart from the
text is no part of the reply: it is read beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from callslip.errors import ModelError
from callslip.models._blocks import reasoning_of, text_of
from callslip.models._events import read_event, read_response
from callslip.models._fields import field, first_field, has_field
from callslip.models._finish_reasons import (
    quote_body,
    raise_reported,
    raise_tool_call,
    read_finish,
    reported_in,
    withheld,
)
from callslip.models._gemini_bedrock import read_bedrock, read_gemini
from callslip.models._piece import Piece, check_end
from callslip.models._reply import ModelChunk, ModelReply
from callslip.models._text_generation import read_batch, read_generated
from callslip.models._token_counts import check_counts, read_usage

__all__ = ["read_chat", "read_finish", "read_shape", "read_usage"]


def read_shape(item: object, *, whole: bool) -> Piece | None:
    """Read a client's response (`whole`), or one chunk of its stream.

    Returns:
        The piece of the reply, which may be empty; `None` if the shape is not known.

    Raises:
        ModelError: The shape is known but contains no usable text: an error report, a native tool
            call, or a reply that the server has abandoned.
    """
    if isinstance(item, (ModelChunk, ModelReply)):
        return _read_own(item)
    if isinstance(item, (list, tuple)):
        return read_batch(item)
    choices = _choices_of(item)
    if choices is not None:
        return _read_choices(item, choices, whole=whole)
    for read in _READERS:
        piece = read(item)
        if piece is not None:
            return piece
    return None


def _read_own(item: ModelChunk | ModelReply) -> Piece:
    for name in ("text", "reasoning"):
        value = getattr(item, name)
        if type(value) is not str:
            raise ModelError(f"expected a string as the {name} of a chunk: got {value!r}")
    check_counts(item.usage)
    end = item.finish_reason
    return Piece(
        item.text,
        None if withheld(end) else read_finish(end),
        item.usage,
        reasoning=item.reasoning,
        withheld=withheld(end),
    )


def read_chat(item: object, *, whole: bool) -> tuple[Piece, object, object] | None:
    """Read a chat completion, or a chunk of one, whose tool calls are read by the caller.

    Returns:
        The piece; the message or delta that it was read from, `None` without one; and the finish
        reason, for `check_end`. `None` if the item has no choices.

    Raises:
        ModelError: It reports an error.
    """
    choices = _choices_of(item)
    return None if choices is None else _read_choice(item, choices, whole=whole)


def _choices_of(item: object) -> Iterable[object] | None:
    choices = field(item, "choices")
    if choices is None and has_field(item, "choices"):
        # Some servers write so what others leave empty.
        return ()
    return choices if isinstance(choices, (list, tuple)) else None


def _read_choices(item: object, choices: Iterable[object], *, whole: bool) -> Piece:
    piece, part, reason = _read_choice(item, choices, whole=whole)
    if part is not None and (field(part, "tool_calls") or field(part, "function_call")):
        raise_tool_call()
    return check_end(piece, reason)


def _read_choice(
    item: object, choices: Iterable[object], *, whole: bool
) -> tuple[Piece, object, object]:
    """Read the first choice: its piece, its message or delta, and its finish reason."""
    usage = read_usage(field(item, "usage"))
    # With `n` above 1 the first choice is the reply; others come in chunks of their own.
    choice = next((one for one in choices if not field(one, "index")), None)
    if choice is None:
        return _read_empty(item, usage, whole=whole, has_others=bool(choices)), None, None
    if error := field(choice, "error") or reported_in(field(item, "base_resp")):
        raise_reported(error)
    names = ("message", "delta") if whole else ("delta", "message")
    part = first_field(choice, *names)
    is_repeat = not whole and field(choice, "delta") is None and part is not None
    if not whole and part is not None and not is_repeat and _is_blank(part):
        # Perplexity has both; some servers end with a chunk that has the whole message alone.
        message = field(choice, "message")
        part, is_repeat = (part, False) if message is None else (message, True)
    if part is None:
        piece = Piece(text_of(field(choice, "text")))
    else:
        content = field(part, "content")
        # Servers use either name, and some use both.
        reasoning = first_field(part, "reasoning_content", "reasoning")
        piece = Piece(
            text_of(content),
            reasoning=reasoning if isinstance(reasoning, str) else reasoning_of(content),
            refusal=text_of(field(part, "refusal")) or text_of(content, kind="refusal"),
            is_repeat=is_repeat,
        )
    piece.usage = usage
    return piece, part, field(choice, "finish_reason")


def _is_blank(delta: object) -> bool:
    """Whether a delta has neither text nor reasoning."""
    names = ("content", "reasoning_content", "reasoning", "refusal", "tool_calls", "function_call")
    return not any(field(delta, name) for name in names)


def _read_empty(
    item: object, usage: Mapping[str, float] | None, *, whole: bool, has_others: bool
) -> Piece:
    """Read a response or a chunk without the first choice."""
    if error := reported_in(item):
        raise_reported(error)
    if whole:
        raise ModelError(
            "expected a reply from the model: got a response without choices: "
            f"{quote_body(item)}; ask it again, or look at what its server says of the request"
        )
    kind = field(item, "object")
    is_chunk = (
        has_others
        or usage is not None
        or (isinstance(kind, str) and "completion" in kind)
        # The filters of Azure come in a chunk of their own.
        or bool(field(item, "prompt_filter_results"))
        or item == {"choices": []}
    )
    return Piece(usage=usage, is_service=True, odd=None if is_chunk else item)


def _read_plain(item: object) -> Piece | None:
    """Read a response with its text in one field: Ollama, Cohere, LangChain and many more."""
    piece = _read_ollama(item)
    usage = first_field(item, "usage", "usage_metadata")
    if piece is None:
        text, content = field(item, "text"), field(item, "content")
        if not isinstance(text, str):
            message = field(item, "message")
            message = item if message is None or isinstance(message, str) else message
            text = content = field(message, "content")
            if not isinstance(text, (str, list)):
                return None
            if field(message, "tool_calls"):
                raise_tool_call()
        reasoning = field(field(item, "additional_kwargs"), "reasoning_content")
        piece = Piece(
            text_of(text),
            reasoning=reasoning if isinstance(reasoning, str) else reasoning_of(content),
            refusal=text_of(content, kind="refusal"),
        )
        if usage is None and field(item, "generation_tokens") is not None:
            usage = item
    if usage is not None:
        piece.usage = read_usage(usage)
    metadata = field(item, "response_metadata")
    names = ("stop_reason", "finish_reason", "done_reason")
    end = first_field(item, *names) or first_field(metadata, *names)
    why = field(field(item, "stop_details"), "explanation")
    is_service = piece.is_service or _is_reply_of_service(item)
    piece = check_end(piece, end, why)
    piece.is_service = is_service
    return piece


def _read_ollama(item: object) -> Piece | None:
    done = field(item, "done")
    if not isinstance(done, bool) and field(item, "eval_count") is None:
        return None
    message = field(item, "message")
    if message is None:
        text, reasoning = field(item, "response"), field(item, "thinking")
    else:
        if field(message, "tool_calls"):
            raise_tool_call()
        text, reasoning = field(message, "content"), field(message, "thinking")
    if message is None and not isinstance(text, str):
        return None
    piece = Piece(text_of(text), reasoning=text_of(reasoning), usage=read_usage(item))
    # Older servers report the end, but no reason.
    piece.finish_reason = "stop" if done and field(item, "done_reason") is None else None
    piece.is_service = isinstance(done, bool)
    return piece


def _is_reply_of_service(item: object) -> bool:
    """Whether it is a whole message of Anthropic's, of Cohere's or of LangChain's."""
    return field(item, "type") in ("message", "ai") or (
        isinstance(field(field(item, "message"), "content"), (list, tuple))
    )


def _read_wrapped(item: object) -> Piece | None:
    """Mistral's stream wraps each chunk."""
    data = field(item, "data")
    choices = field(data, "choices")
    return _read_choices(data, choices, whole=False) if isinstance(choices, (list, tuple)) else None


def _read_error(item: object) -> None:
    error = field(item, "error")
    if error and _is_json(item):
        raise_reported(error if not isinstance(error, str) else item)


def _read_report(item: object) -> None:
    """Read a body in which nothing of a reply has been found."""
    if _is_json(item) and (error := reported_in(item)):
        raise_reported(error)


def _is_json(item: object) -> bool:
    """Whether it is JSON, or what clients make of any JSON."""
    return isinstance(item, dict) or hasattr(item, "model_dump")


_READERS: tuple[Callable[[object], Piece | None], ...] = (
    _read_wrapped,
    read_event,
    read_response,
    _read_error,
    read_gemini,
    read_bedrock,
    read_generated,
    _read_plain,
    _read_report,
)
