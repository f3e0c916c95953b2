"""What services answer, each in its own form: text, reasoning, costs, ends, refusals."""

import asyncio
import re
from types import SimpleNamespace as Obj

import pytest

from callslip import (
    Agent,
    Delta,
    Limits,
    ModelChunk,
    ModelError,
    ModelReply,
    ProtocolError,
    ScriptedModel,
    Usage,
    UsageError,
)
from callslip.errors import ContextFull, ModelRefused
from callslip.models import as_model

ANSWER = "It is 42."


def chat(message, end="stop", usage=None):
    return {"choices": [{"index": 0, "message": message, "finish_reason": end}], "usage": usage}


def delta(end=None, **told):
    return {"choices": [{"index": 0, "delta": told, "finish_reason": end}]}


class Scripted:
    """A model that gives these results, one a call; counts the calls."""

    def __init__(self, *results):
        self.results = list(results)
        self.calls = 0

    def __call__(self, messages):
        self.calls += 1
        return self.results[min(self.calls, len(self.results)) - 1]


def ask(result, **options):
    return Agent(Scripted(result), protocol="chatty", **options).run_sync("what is it?")


def watched(result, protocol="chatty"):
    """The reasoning that a stream tells of, the text that it tells of, and the answer."""

    async def main():
        async with Agent(Scripted(result), protocol=protocol).stream("what is it?") as run:
            told = [item async for item in run if isinstance(item, Delta)]
        return told, run.result.value

    told, answer = asyncio.run(main())
    reasoning = "".join(one.text for one in told if isinstance(one, Delta.Reasoning))
    text = "".join(one.text for one in told if isinstance(one, Delta.Text | Delta.Answer))
    return reasoning, text, answer


# What each client's reply says.

GEMINI = {
    "candidates": [
        {
            "content": {"parts": [{"text": "hm", "thought": True}, {"text": ANSWER}]},
            "finishReason": "STOP",
        }
    ],
    "usageMetadata": {
        "promptTokenCount": 20,
        "candidatesTokenCount": 5,
        "thoughtsTokenCount": 3,
        "cachedContentTokenCount": 6,
    },
}
GEMINI_OBJECT = Obj(
    candidates=[
        Obj(
            content=Obj(parts=[Obj(text="hm", thought=True), Obj(text=ANSWER, thought=None)]),
            finish_reason=Obj(value="STOP"),
        )
    ],
    text=ANSWER,
    usage_metadata=Obj(
        prompt_token_count=20,
        candidates_token_count=5,
        thoughts_token_count=3,
        cached_content_token_count=6,
    ),
)
BEDROCK = {
    "output": {
        "message": {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
                {"text": ANSWER},
            ],
        }
    },
    "stopReason": "end_turn",
    "usage": {
        "inputTokens": 10,
        "outputTokens": 8,
        "totalTokens": 28,
        "cacheReadInputTokens": 6,
        "cacheWriteInputTokens": 4,
    },
    "ResponseMetadata": {"HTTPStatusCode": 200},
}
COHERE = Obj(
    id="1",
    finish_reason="COMPLETE",
    message=Obj(
        role="assistant",
        content=[Obj(type="thinking", thinking="hm"), Obj(type="text", text=ANSWER)],
        tool_calls=None,
    ),
    usage=Obj(
        billed_units=Obj(input_tokens=3.0, output_tokens=8.0),
        tokens=Obj(input_tokens=20.0, output_tokens=8.0),
        cached_tokens=6.0,
    ),
)
MISTRAL = chat(
    {
        "content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
            {"type": "text", "text": ANSWER},
        ]
    },
    usage={"prompt_tokens": 20, "completion_tokens": 8},
)
LLAMA_CPP = chat(
    {"content": ANSWER, "reasoning_content": "hm"},
    usage={
        "prompt_tokens": 20,
        "completion_tokens": 8,
        "prompt_tokens_details": {"cached_tokens": 6},
    },
)
VLLM = chat(
    {"content": ANSWER, "reasoning": "hm"}, usage={"prompt_tokens": 20, "completion_tokens": 8}
)
DEEPSEEK = chat(
    {"content": ANSWER, "reasoning_content": "hm"},
    usage={"prompt_tokens": 20, "completion_tokens": 8, "prompt_cache_hit_tokens": 6},
)
ANTHROPIC = {
    "type": "message",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": ANSWER},
    ],
    "stop_reason": "end_turn",
    "usage": {
        "input_tokens": 10,
        "cache_read_input_tokens": 6,
        "cache_creation_input_tokens": 4,
        "output_tokens": 8,
    },
}
RESPONSES = {
    "object": "response",
    "status": "completed",
    "output": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "content": [{"type": "output_text", "text": ANSWER}]},
    ],
    "usage": {
        "input_tokens": 20,
        "output_tokens": 8,
        "input_tokens_details": {"cached_tokens": 6},
    },
}
OLLAMA_CHAT = {
    "model": "m",
    "message": {"role": "assistant", "content": ANSWER, "thinking": "hm"},
    "done": True,
    "done_reason": "stop",
    "prompt_eval_count": 20,
    "eval_count": 8,
}
OLLAMA_GENERATE = {
    "model": "m",
    "response": ANSWER,
    "thinking": "hm",
    "done": True,
    "done_reason": "stop",
    "prompt_eval_count": 20,
    "eval_count": 8,
}
LANGCHAIN = Obj(
    type="ai",
    content=ANSWER,
    additional_kwargs={"reasoning_content": "hm"},
    tool_calls=[],
    response_metadata={"stop_reason": "end_turn"},
    usage_metadata={
        "input_tokens": 20,
        "output_tokens": 8,
        "input_token_details": {"cache_read": 6},
    },
)
VLLM_OFFLINE = [
    Obj(
        prompt_token_ids=list(range(20)),
        num_cached_tokens=6,
        outputs=[Obj(text=ANSWER, token_ids=tuple(range(8)), finish_reason="stop")],
    )
]
SERVER_OF_HUGGING_FACE = {
    "generated_text": ANSWER,
    "details": {"finish_reason": "eos_token", "generated_tokens": 8},
}

ALL = (20, 8, 6)


@pytest.mark.parametrize(
    ("result", "reasoning", "counts"),
    [
        pytest.param(GEMINI, "hm", ALL, id="gemini"),
        pytest.param(GEMINI_OBJECT, "hm", ALL, id="gemini object"),
        pytest.param(BEDROCK, "hm", ALL, id="bedrock"),
        pytest.param(COHERE, "hm", ALL, id="cohere"),
        pytest.param(MISTRAL, "hm", (20, 8, 0), id="mistral"),
        pytest.param(LLAMA_CPP, "hm", ALL, id="llama.cpp"),
        pytest.param(VLLM, "hm", (20, 8, 0), id="vllm"),
        pytest.param(DEEPSEEK, "hm", ALL, id="deepseek"),
        pytest.param(ANTHROPIC, "hm", ALL, id="anthropic"),
        pytest.param(RESPONSES, "hm", ALL, id="responses"),
        pytest.param(OLLAMA_CHAT, "hm", (20, 8, 0), id="ollama chat"),
        pytest.param(OLLAMA_GENERATE, "hm", (20, 8, 0), id="ollama generate"),
        pytest.param(Obj(**OLLAMA_GENERATE), "hm", (20, 8, 0), id="ollama object"),
        pytest.param(LANGCHAIN, "hm", ALL, id="langchain"),
        pytest.param([{"generated_text": ANSWER}], "", (0, 0, 0), id="pipeline"),
        pytest.param(
            [{"generated_text": [{"role": "user"}, {"role": "assistant", "content": ANSWER}]}],
            "",
            (0, 0, 0),
            id="pipeline of messages",
        ),
        pytest.param([[{"generated_text": ANSWER}]], "", (0, 0, 0), id="pipeline of a batch"),
        pytest.param(SERVER_OF_HUGGING_FACE, "", (0, 8, 0), id="hugging face server"),
        pytest.param(VLLM_OFFLINE, "", ALL, id="vllm offline"),
        pytest.param(
            ModelReply(ANSWER, usage=Usage(20, 8, 6, 0.5), reasoning="hm"), "hm", ALL, id="own"
        ),
    ],
)
def test_a_whole_reply(result, reasoning, counts):
    run = ask(result)
    assert run.value == ANSWER
    usage = run.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == counts
    assert watched(result) == (reasoning, "", ANSWER)


def ollama(content, *, done=False, thinking=None, **more):
    return {"message": {"content": content, "thinking": thinking}, "done": done, **more}


STREAMS = {
    "llama.cpp": [
        delta(reasoning_content="h"),
        delta(reasoning_content="m", content=None),
        delta(content="It "),
        delta(content="is 42."),
        delta("stop"),
        {"choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 8}},
    ],
    "vllm": [
        delta(reasoning="hm"),
        delta(content=ANSWER),
        delta("stop"),
        {"choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 8}},
    ],
    "mistral": [
        {"data": delta(content=[{"type": "thinking", "thinking": [{"text": "hm"}]}])},
        {"data": delta(content=ANSWER)},
        {
            "data": delta("stop", content="")
            | {"usage": {"prompt_tokens": 20, "completion_tokens": 8}}
        },
    ],
    "anthropic": [
        {"type": "message_start", "message": {"usage": {"input_tokens": 20, "output_tokens": 1}}},
        {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": ANSWER}},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 8},
        },
        {"type": "message_stop"},
    ],
    "responses": [
        {"type": "response.created", "response": {"status": "in_progress"}},
        {"type": "response.reasoning_summary_text.delta", "delta": "h"},
        {"type": "response.reasoning_text.delta", "delta": "m"},
        {"type": "response.output_text.delta", "delta": ANSWER},
        {"type": "response.completed", "response": RESPONSES},
    ],
    "bedrock": {
        "stream": [
            {"messageStart": {"role": "assistant"}},
            {"contentBlockDelta": {"delta": {"reasoningContent": {"text": "hm"}}}},
            {"contentBlockStop": {"contentBlockIndex": 0}},
            {"contentBlockDelta": {"delta": {"text": ANSWER}}},
            {"messageStop": {"stopReason": "end_turn"}},
            {"metadata": {"usage": {"inputTokens": 20, "outputTokens": 8}}},
        ],
        "ResponseMetadata": {},
    },
    "cohere": [
        {"type": "message-start", "delta": {"message": {"role": "assistant", "content": []}}},
        {"type": "content-start", "delta": {"message": {"content": {"type": "thinking"}}}},
        {"type": "content-delta", "delta": {"message": {"content": {"thinking": "hm"}}}},
        {"type": "content-end", "index": 0},
        {"type": "content-delta", "delta": {"message": {"content": {"text": ANSWER}}}},
        {
            "type": "message-end",
            "delta": {
                "finish_reason": "COMPLETE",
                "usage": {"tokens": {"input_tokens": 20.0, "output_tokens": 8.0}},
            },
        },
    ],
    "gemini": [
        {"candidates": [{"content": {"parts": [{"text": "hm", "thought": True}]}}]},
        {"candidates": [{"content": {"parts": [{"text": ANSWER}]}}]},
        {
            "candidates": [{"content": {"parts": []}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 20, "candidatesTokenCount": 8},
        },
    ],
    "ollama": [
        ollama("", thinking="hm"),
        ollama(ANSWER),
        ollama("", done=True, done_reason="stop", prompt_eval_count=20, eval_count=8),
    ],
}


@pytest.mark.parametrize("client", STREAMS)
def test_a_streamed_reply(client):
    given = STREAMS[client]
    reasoning, text, answer = watched(given)
    assert (reasoning, answer) == ("hm", ANSWER)
    assert "hm" not in text
    usage = ask(given).usage
    assert (usage.input_tokens, usage.output_tokens) == (20, 8)


@pytest.mark.parametrize("client", STREAMS)
def test_a_stream_that_breaks_off_is_cut(client):
    given = STREAMS[client]
    events = given["stream"] if isinstance(given, dict) else given
    at = next(at for at, event in enumerate(events) if "42" in str(event))
    # All that comes before the end is known, and nothing after it.
    model = Scripted(iter(events[: at + 1]), ANSWER)
    result = Agent(model, protocol="chatty").run_sync("what is it?")
    replies = [event for event in result.run.log if event.kind == "model_replied"]
    assert replies[0].finish_reason == "length"
    assert replies[0].text == ANSWER


def test_a_program_s_own_pieces_need_no_end():
    assert ask(iter(["It is ", "42."])).value == ANSWER
    assert ask(iter([ModelChunk("It is "), ModelChunk("42.")])).value == ANSWER
    replied = ask(iter(["It is 42."])).run.log[2]
    assert (replied.kind, replied.finish_reason) == ("model_replied", "stop")


# Ends in each client's words.


@pytest.mark.parametrize(
    "result",
    [
        chat({"content": ANSWER}, "length"),
        {**ANTHROPIC, "stop_reason": "max_tokens"},
        {
            **RESPONSES,
            "status": "incomplete",
            "incomplete_details": {"reason": "max_output_tokens"},
        },
        {"candidates": [{**GEMINI["candidates"][0], "finishReason": "MAX_TOKENS"}]},
        {**BEDROCK, "stopReason": "max_tokens"},
        Obj(**{**vars(COHERE), "finish_reason": "MAX_TOKENS"}),
        {**OLLAMA_CHAT, "done_reason": "length"},
        {**OLLAMA_GENERATE, "done_reason": "length"},
        Obj(**{**vars(LANGCHAIN), "response_metadata": {"finish_reason": "length"}}),
        {"generated_text": ANSWER, "details": {"finish_reason": "length"}},
        [Obj(outputs=[Obj(text=ANSWER, finish_reason="length")])],
        Obj(text=ANSWER, finish_reason=Obj(value=2, name="MAX_TOKENS")),
    ],
)
def test_a_reply_that_was_cut(result):
    run = Agent(Scripted(result, ANSWER), protocol="chatty").run_sync("what is it?").run
    replied = next(event for event in run.log if event.kind == "model_replied")
    assert replied.finish_reason == "length"


@pytest.mark.parametrize(
    "result",
    [
        chat({"content": ANSWER}, "model_length"),
        lambda: iter([delta(content=ANSWER), delta("model_length")]),
        {**ANTHROPIC, "stop_reason": "model_context_window_exceeded"},
        lambda: iter(
            [
                {"type": "content_block_delta", "delta": {"type": "text_delta", "text": ANSWER}},
                {
                    "type": "message_delta",
                    "delta": {"stop_reason": "model_context_window_exceeded"},
                },
            ]
        ),
        {**BEDROCK, "stopReason": "model_context_window_exceeded"},
        lambda: iter([{"type": "error", "code": "context_length_exceeded", "message": "long"}]),
        lambda: iter(
            [
                {
                    "type": "response.failed",
                    "response": {
                        "status": "failed",
                        "error": {"code": "x", "message": "it exceeds the context window"},
                    },
                }
            ]
        ),
    ],
)
def test_a_reply_that_meets_a_full_context(result):
    with pytest.raises(ContextFull) as caught:
        ask(result() if callable(result) else result)
    assert "pass history=KeepLast" in str(caught.value)


@pytest.mark.parametrize(
    "result",
    [
        [delta(content="It"), {"error": {"code": "content_filter", "message": "filtered"}}],
        [{"type": "error", "code": "invalid_prompt", "message": "no"}],
        [
            {
                "type": "response.failed",
                "response": {
                    "status": "failed",
                    "error": {"code": "bio_policy", "message": "no"},
                },
            }
        ],
    ],
)
def test_a_refusal_that_a_stream_reports(result):
    with pytest.raises(ModelRefused, match="the model refused to answer: "):
        ask(iter(result))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("end", ["error", "abort", "ERROR", "TIMEOUT"])
def test_a_reply_that_the_server_gives_up(end, stream):
    result = iter([delta(content="It"), delta(end)]) if stream else chat({"content": "It"}, end)
    with pytest.raises(ModelError, match=rf"gave the reply up \({end.lower()}\)"):
        ask(result)


# Refusals and empty replies: one request, and the model's words.

NO = "I can't help with that, Dave."
GUARD = "the model's provider withheld the reply"


@pytest.mark.parametrize("protocol", ["ticket", "chatty", "react"])
@pytest.mark.parametrize(
    ("result", "words"),
    [
        (chat({"content": None, "refusal": NO}), f"the model refused to answer: {NO}"),
        (
            [delta(content=""), delta(refusal=NO[:9]), delta(refusal=NO[9:]), delta("stop")],
            f"the model refused to answer: {NO}",
        ),
        (
            {
                **RESPONSES,
                "output": [{"type": "message", "content": [{"type": "refusal", "refusal": NO}]}],
            },
            f"the model refused to answer: {NO}",
        ),
        (
            [
                {"type": "response.refusal.delta", "delta": NO},
                {"type": "response.completed", "response": {**RESPONSES, "output": []}},
            ],
            f"the model refused to answer: {NO}",
        ),
        (
            chat({"content": "It is"}, "content_filter"),
            f"{GUARD} (content_filter); it had written: It is",
        ),
        (
            [delta(content="It "), delta(content="is"), delta("content_filter")],
            f"{GUARD} (content_filter); it had written: It is",
        ),
        (
            {**ANTHROPIC, "stop_reason": "refusal", "stop_details": {"explanation": NO}},
            f"{GUARD} (refusal): {NO}; it had written: {ANSWER}",
        ),
        (
            [
                *STREAMS["anthropic"][:3],
                {"type": "message_delta", "delta": {"stop_reason": "refusal"}},
            ],
            f"{GUARD} (refusal); it had written: {ANSWER}",
        ),
        ({"candidates": [{"finishReason": "SAFETY"}]}, f"{GUARD} (safety)"),
        (
            {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}},
            "the model's provider refused the prompt (PROHIBITED_CONTENT)",
        ),
        (
            Obj(
                candidates=None, text=None, prompt_feedback=Obj(block_reason=Obj(value="BLOCKLIST"))
            ),
            "the model's provider refused the prompt (BLOCKLIST)",
        ),
        (
            {**BEDROCK, "stopReason": "guardrail_intervened"},
            f"{GUARD} (guardrail_intervened); it had written: {ANSWER}",
        ),
        (ModelReply("", "content_filter"), f"{GUARD} (content_filter)"),
    ],
)
def test_a_refusal_ends_the_run_in_one_request(result, words, protocol):
    model = Scripted(result)
    with pytest.raises(ModelRefused) as caught:
        Agent(model, protocol=protocol).run_sync("what is it?")
    assert str(caught.value) == words
    assert model.calls == 1
    assert caught.value.run.stop_reason == "model_error"


class Refused(Exception):  # noqa: N818
    """As a client raises it; classes differ, and what they have in common is told by."""

    def __init__(self, text, **fields):
        super().__init__(text)
        self.__dict__.update(fields)


@pytest.mark.parametrize(
    "error",
    [
        Refused(NO, code="content_policy_violation"),
        Refused(NO, body={"error": {"code": "content_filter", "message": NO}}),
        Refused(f"Output blocked by content filtering policy: {NO}", type="invalid_request_error"),
    ],
)
def test_a_refusal_that_a_client_raises(error):
    calls = []

    def model(messages):
        calls.append(messages)
        raise error

    with pytest.raises(ModelRefused) as caught:
        Agent(model).run_sync("what is it?")
    assert str(caught.value) == f"the model refused to answer: Refused: {error}"
    assert caught.value.__cause__ is error
    assert len(calls) == 1


@pytest.mark.parametrize("protocol", ["ticket", "chatty", "react"])
@pytest.mark.parametrize(
    "result",
    [
        chat({"content": None}),
        chat({"content": ""}),
        chat({"content": " \n"}),
        [delta(role="assistant", content=""), delta("stop")],
        {"type": "message", "content": [], "stop_reason": "end_turn"},
        {**RESPONSES, "output": []},
        {"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}]},
        {"output": {"message": {"content": []}}, "stopReason": "end_turn"},
        Obj(message=Obj(content=[]), finish_reason="COMPLETE"),
        ollama("", done=True),
        {"response": "", "done": True, "done_reason": "stop"},
    ],
)
def test_an_empty_reply_of_a_service_ends_the_run_in_one_request(result, protocol):
    model = Scripted(result)
    with pytest.raises(ModelError, match="^expected a reply from the model: got an empty one"):
        Agent(model, protocol=protocol).run_sync("what is it?")
    assert model.calls == 1


@pytest.mark.parametrize(
    "result",
    [
        chat({"content": "", "reasoning_content": "first I look,\nthen I leap"}),
        [delta(reasoning="first I look,\n"), delta(reasoning="then I leap"), delta("stop")],
    ],
)
def test_a_reply_of_nothing_but_reasoning_quotes_it(result):
    model = Scripted(result)
    with pytest.raises(ModelError) as caught:
        Agent(model, protocol="react").run_sync("what is it?")
    assert str(caught.value) == (
        "expected a reply from the model: got nothing but reasoning; turn the model's reasoning "
        "off, or use a model that replies after it; it had thought: first I look, then I leap"
    )
    assert model.calls == 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_that_begins_with_many_blanks_is_not_empty(stream):
    blanks = " \n" * 2_000
    whole = chat({"content": blanks + ANSWER})
    pieces = [delta(content=blanks), delta(content=ANSWER), delta("stop")]
    assert ask(pieces if stream else whole).value.strip() == ANSWER


def test_words_are_quoted_on_one_line():
    refused = chat({"content": None, "refusal": "\x1b[2JNo.\nNever \x07" + "!" * 900})
    with pytest.raises(ModelRefused) as caught:
        ask(refused)
    assert str(caught.value) == f"the model refused to answer: [2JNo. Never {'!' * 487} …"


def test_reasoning_that_the_token_limit_cut_is_a_cut_reply():
    model = Scripted(chat({"content": "", "reasoning_content": "hm"}, "length"), ANSWER)
    result = Agent(model, protocol="chatty").run_sync("what is it?")
    assert (result.value, model.calls) == (ANSWER, 2)


@pytest.mark.parametrize("protocol", ["ticket", "react"])
def test_a_model_that_keeps_refusing_in_words_is_quoted(protocol):
    with pytest.raises(ProtocolError) as caught:
        Agent(
            Scripted(chat({"content": NO})), protocol=protocol, limits=Limits(max_violations=1)
        ).run_sync("x")
    assert str(caught.value).endswith(f"; the model's words: {NO}")


def test_a_scripted_model_may_think():
    reply = ModelReply(ANSWER, reasoning="hm")
    for chunk_size in (None, 4):
        model = ScriptedModel([reply], chunk_size=chunk_size)

        async def main(model=model):
            async with Agent(model, protocol="chatty").stream("x") as run:
                return [one.text async for one in run if isinstance(one, Delta.Reasoning)]

        assert asyncio.run(main()) == ["hm"]


# Usage as programs give it.


def test_usage_may_be_a_usage():
    result = ask(ModelReply(ANSWER, usage=Usage(7, 2, 1, 0.25)))
    assert result.usage == Usage(7, 2, 1, 0.25)
    pieces = iter([ModelChunk(ANSWER), ModelChunk("", "stop", Usage(7, 2, 1, 0.25))])
    assert ask(pieces).usage == Usage(7, 2, 1, 0.25)


def test_usage_in_another_client_s_words_is_read():
    told = ModelReply(ANSWER, usage={"prompt_tokens": 7, "completion_tokens": 2})
    assert ask(told).usage == Usage(7, 2, 0, 0.0)
    assert ask(ModelReply(ANSWER, usage={})).usage == Usage(0, 0, 0, 0.0)


@pytest.mark.parametrize("usage", ["7 tokens", 7, object()])
def test_usage_that_is_none_is_said(usage):
    with pytest.raises(ModelError, match="expected the usage of a reply as a Usage or a mapping"):
        ask(ModelReply(ANSWER, usage=usage))


@pytest.mark.parametrize(
    ("usage", "told"),
    [
        (
            {"input_tokens": "5"},
            "expected input_tokens of usage as a number: got '5'; pass ",
        ),
        ({"output_tokens": True}, "expected output_tokens of usage as a number: got True; pass "),
        ({"cached_tokens": 1.5}, "expected cached_tokens of usage as a whole number of tokens: g"),
        ({"cost": "0.1"}, "expected cost of usage as a number: got '0.1'; pass usage={"),
        (Usage("5", 0, 0, 0.0), "expected input_tokens of usage as a number: got '5'; pass "),
    ],
)
@pytest.mark.parametrize("is_whole", [True, False], ids=["whole", "streamed"])
def test_counts_of_a_wrong_type_are_told(usage, told, is_whole):
    reply = ModelReply(ANSWER, usage=usage)
    with pytest.raises(ModelError, match=f": UsageError: {re.escape(told)}") as caught:
        ask(reply if is_whole else iter([ModelChunk(ANSWER), ModelChunk("", "stop", usage)]))
    assert isinstance(caught.value.__cause__, UsageError)


@pytest.mark.parametrize("count", [None, -1, float("nan"), float("inf"), 7.0])
def test_odd_counts_of_services_are_borne(count):
    usage = {"input_tokens": count, "output_tokens": 2, "cost": count}
    tokens = 7 if count == 7 else 0
    assert ask(ModelReply(ANSWER, usage=usage)).usage == Usage(tokens, 2, 0, float(tokens))


def test_a_budget_counts_what_such_clients_tell():
    """Tokens that are not read would never reach a limit."""
    model = Scripted(BEDROCK)
    agent = Agent(model, protocol="react", limits=Limits(tokens=20), on_limit="raise")
    with pytest.raises(Exception, match="tokens"):
        agent.run_sync("x")
    assert model.calls == 1


# Through a client object.


def client(answer):
    return Obj(chat=Obj(completions=Obj(create=lambda **request: answer)))


def test_a_client_s_reasoning_is_shown_and_is_no_answer():
    for stream, answer in ((True, STREAMS["llama.cpp"]), (False, LLAMA_CPP)):
        model = as_model(client(answer), model="m", stream=stream)
        result = Agent(model, protocol="chatty").run_sync("what is it?")
        assert result.value == ANSWER
        assert "hm" not in str(result.messages[2:])
