"""The shapes in which known clients answer, told by their fields; no client library is imported.

| client | whole | streamed |
|---|---|---|
| OpenAI chat (LiteLLM, llama.cpp, vLLM, ...) | `choices[0].message.content` | `.delta.content` |
| OpenAI responses | `output[].content[].text` | `response.output_text.delta` |
| Anthropic messages | `content[].text` | `content_block_delta` |
| Ollama | `message.content` | the same |
| anything with a `.text` or `.content` string (LangChain, Gemini, ...) | that | that |

Objects and the dicts of their JSON are read alike. Reasoning that a client keeps apart from the
text is not part of the reply.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from callslip.errors import ModelError
from callslip.models._reply import ModelChunk, ModelReply

__all__ = ["read_finish", "read_shape", "read_usage"]

_CUT = frozenset(
    {
        "incomplete",
        "length",
        "max_output_tokens",
        "max_tokens",
        "model_context_window_exceeded",
        "pause_turn",
    }
)
_WITHHELD = frozenset({"content_filter", "refusal", "safety"})
_TOOL_CALL = frozenset({"tool_calls", "function_call", "tool_use", "custom_tool_call", "tool_call"})
# The events of Anthropic's stream helper, which repeat what its `content_block_delta` said.
_ECHOES = frozenset({"text", "thinking", "citation", "signature", "input_json", "compaction"})


def read_shape(item: object, *, whole: bool) -> ModelChunk | None:
    """Read a client's response (`whole`), or one chunk of its stream.

    Returns:
        What it says, perhaps nothing (all fields empty); `None` if the shape is not known.

    Raises:
        ModelError: The shape is known and holds no text to go on with: an error report, a native
            tool call, a reply withheld by the provider.
    """
    if isinstance(item, (ModelChunk, ModelReply)):
        if type(item.text) is not str:
            raise ModelError(f"expected a string as the text of a chunk, got {item.text!r}")
        return ModelChunk(item.text, read_finish(item.finish_reason), item.usage)
    choices = _field(item, "choices")
    if isinstance(choices, (list, tuple)):
        return _read_choices(item, choices, whole=whole)
    kind = _field(item, "type")
    if isinstance(kind, str):
        event = _read_event(item, kind)
        if event is not None:
            return event
    if _field(item, "object") == "response":
        return _read_response(item)
    error = _field(item, "error")
    if error and (isinstance(item, dict) or hasattr(item, "choices")):
        _raise_reported(error)
    return _read_plain(item)


def read_finish(reason: object, why: object = None) -> str | None:
    """`"stop"` or `"length"` for a client's own word, `None` for none.

    Raises:
        ModelError: The reply was withheld by the provider (`why` is quoted), or is a tool call.
    """
    if reason is None:
        return None
    word = str(getattr(reason, "value", reason)).lower()
    if word in _CUT:
        return "length"
    if word in _WITHHELD:
        told = f": {why}" if why else ""
        raise ModelError(f"the model's provider withheld the reply ({word}){told}")
    if word in _TOOL_CALL:
        _raise_tool_call()
    return "stop"


def read_usage(usage: object) -> dict[str, float] | None:
    """A client's counts as `input_tokens`, `output_tokens`, `cached_tokens` and `cost`.

    `input_tokens` counts the whole input, the cached part included, whatever the client means by
    the word; `cost` is what OpenRouter tells. What is missing is left out; `None` if all is.
    """
    if usage is None:
        return None
    # LiteLLM reports OpenAI's totals with Anthropic's parts beside them: the totals go first.
    total = _count(usage, "prompt_tokens")
    cached = _count(_field(usage, "prompt_tokens_details"), "cached_tokens")
    if total is None:
        total = _count(usage, "input_tokens")
        read = _count(usage, "cache_read_input_tokens")
        if total is not None:
            # Anthropic counts the three parts of the input apart.
            total += (read or 0) + (_count(usage, "cache_creation_input_tokens") or 0)
        for value in (
            read,
            _count(_field(usage, "input_tokens_details"), "cached_tokens"),
            _count(_field(usage, "input_token_details"), "cache_read"),
            _count(usage, "cached_tokens"),
        ):
            cached = value if cached is None else cached
    made = _count(usage, "completion_tokens")
    made = _count(usage, "output_tokens") if made is None else made
    cost = _field(usage, "cost")
    counts: dict[str, float | None] = {
        "input_tokens": total,
        "output_tokens": made,
        "cached_tokens": cached,
        "cost": cost if isinstance(cost, (int, float)) else None,
    }
    known = {name: count for name, count in counts.items() if count is not None}
    return known or None


def _read_choices(item: object, choices: Iterable[object], *, whole: bool) -> ModelChunk:
    usage = read_usage(_field(item, "usage"))
    # With `n` above 1 the first choice is the reply; others come in chunks of their own.
    choice = next((one for one in choices if not _field(one, "index")), None)
    if choice is None:
        error = _field(item, "error")
        if error:
            _raise_reported(error)
        if whole:
            raise ModelError("expected a reply from the model, got a response without choices")
        return ModelChunk("", None, usage)
    part = _field(choice, "message")
    part = _field(choice, "delta") if part is None else part
    if part is None:
        text = _text_of(_field(choice, "text"))
    else:
        if _field(part, "tool_calls") or _field(part, "function_call"):
            _raise_tool_call()
        # A refusal in words stands in its own field; it is what the model said.
        text = _text_of(_field(part, "content")) or _text_of(_field(part, "refusal"))
    return ModelChunk(text, read_finish(_field(choice, "finish_reason")), usage)


def _read_event(item: object, kind: str) -> ModelChunk | None:
    """An event of Anthropic's message stream or of OpenAI's responses stream."""
    if kind == "content_block_delta":
        delta = _field(item, "delta")
        if _field(delta, "type") == "text_delta":
            return ModelChunk(_text_of(_field(delta, "text")))
        return ModelChunk()
    if kind == "content_block_start":
        return ModelChunk(_text_of([_field(item, "content_block")]))
    if kind == "message_start":
        return ModelChunk(usage=read_usage(_field(_field(item, "message"), "usage")))
    if kind == "message_delta":
        delta = _field(item, "delta")
        return ModelChunk("", _stop_reason(delta), read_usage(_field(item, "usage")))
    if kind == "error":
        _raise_reported(_field(item, "error") or item)
    if kind.startswith("response."):
        return _read_response_event(item, kind.removeprefix("response."))
    if kind.startswith(("message_", "content_block_")) or kind == "ping":
        return ModelChunk()
    if kind in _ECHOES and _field(item, "snapshot") is not None:
        return ModelChunk()
    return None


def _read_response_event(item: object, kind: str) -> ModelChunk:
    if kind in ("output_text.delta", "refusal.delta"):
        return ModelChunk(_text_of(_field(item, "delta")))
    if kind == "output_item.added":
        _text_of([_field(item, "item")])
    if kind in ("completed", "incomplete", "failed"):
        end = _read_response(_field(item, "response"))
        return ModelChunk("", end.finish_reason, end.usage)
    return ModelChunk()


def _read_response(item: object) -> ModelChunk:
    if _field(item, "status") in ("failed", "cancelled"):
        _raise_reported(_field(item, "error") or f"the response is {_field(item, 'status')}")
    cut = _field(_field(item, "incomplete_details"), "reason")
    output = _field(item, "output")
    text = ""
    for part in output if isinstance(output, (list, tuple)) else ():
        text += _text_of(_field(part, "content") if _field(part, "type") == "message" else [part])
    finish = read_finish(cut or _field(item, "status"))
    return ModelChunk(text, finish, read_usage(_field(item, "usage")))


def _read_plain(item: object) -> ModelChunk | None:
    """A response with its text in one field: `.text`, Ollama's `.message.content`, `.content`."""
    text = _field(item, "text")
    usage = _field(item, "usage")
    if not isinstance(text, str):
        message = _field(item, "message")
        message = item if message is None or isinstance(message, str) else message
        text = _field(message, "content")
        if not isinstance(text, (str, list)):
            return None
        if _field(message, "tool_calls"):
            _raise_tool_call()
        if usage is None and _field(item, "eval_count") is not None:
            usage = {
                "input_tokens": _count(item, "prompt_eval_count"),
                "output_tokens": _count(item, "eval_count"),
            }
    usage = _field(item, "usage_metadata") if usage is None else usage
    return ModelChunk(_text_of(text), _stop_reason(item), read_usage(usage))


def _stop_reason(item: object) -> str | None:
    reason = None
    for name in ("stop_reason", "finish_reason", "done_reason"):
        reason = _field(item, name) if reason is None else reason
    if reason is None:
        reason = _field(_field(item, "response_metadata"), "finish_reason")
    return read_finish(reason, _field(_field(item, "stop_details"), "explanation"))


def _text_of(content: object) -> str:
    """The text of a content field: a string, nothing, or a list of typed blocks."""
    if isinstance(content, str):
        return content if type(content) is str else str(content)
    if not isinstance(content, (list, tuple)):
        return ""
    text = ""
    for block in content:
        if isinstance(block, str):
            text += block
            continue
        kind = _field(block, "type")
        if kind in _TOOL_CALL:
            _raise_tool_call()
        piece = _field(block, "refusal" if kind == "refusal" else "text")
        if kind in ("text", "output_text", "refusal", None) and isinstance(piece, str):
            text += piece
    return text


def _raise_tool_call() -> NoReturn:
    raise ModelError(
        "expected text from the model, got a native tool call: tools are called in the text of "
        "the reply, so call the client without tools of its own"
    )


def _raise_reported(error: object) -> NoReturn:
    told = _field(error, "message") or error
    raise ModelError(f"the model's server reported an error: {told}")


def _count(item: object, name: str) -> int | None:
    value = _field(item, name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _field(item: object, name: str) -> object:
    if isinstance(item, dict):
        return item.get(name)
    return getattr(item, name, None)
