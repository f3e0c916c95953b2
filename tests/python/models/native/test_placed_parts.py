"""Images of results: inside of the result that tells of them, or behind all of them."""

import asyncio

import pytest

from callslip import File, Image, as_model
from callslip.models._items import ToolChoice
from callslip.models.native._turns import turns_of
from callslip.parts import _unpickled
from native_scenes import ASK, OSLO, TOOLS, Asking
from optional import optional_module
from pictures import PDF, png
from services.anthropic import AnthropicService
from services.loopback import running
from services.responses import ResponsesService

LIBRARIES = {"anthropic": AnthropicService, "openai": ResponsesService}


def labelled(label, data=None):
    kind, media_type = (Image, "image/png") if data is None else (File, "application/pdf")
    return _unpickled(kind, png(3, 4) if data is None else data, media_type, None, label)


def messages(*parts, contents=("see [image 3x4, 73 bytes, T1]", "seen"), errors=(False, False)):
    calls = [
        {"call": own, "tool": "forecast", "arguments": OSLO, "data": None} for own in ("a", "b")
    ]
    results = [
        {"result": own, "tool": "forecast", "content": content, "error": error}
        for own, content, error in zip(("a", "b"), contents, errors, strict=True)
    ]
    told = {"role": "user", "content": "-", "items": [*results, {"text": "Go on."}]}
    return [
        *ASK,
        {"role": "assistant", "content": "-", "items": calls},
        told | {"parts": list(parts)},
    ]


@pytest.fixture(params=LIBRARIES)
def sent(request):
    """A function that returns the blocks of each result, and the blocks behind them."""
    library = optional_module(request.param)
    with running(LIBRARIES[request.param]()) as service, asyncio.Runner() as runner:
        service.begin([("text", "Seen.")])
        make = library.Anthropic if request.param == "anthropic" else library.OpenAI
        base = service.base if request.param == "anthropic" else f"{service.base}/v1"
        with make(base_url=base, api_key="k", max_retries=0) as client:
            is_openai = request.param == "openai"
            model = as_model(client.responses.create if is_openai else client, model="m")

            def ask(*parts, **options):
                Asking(runner)(model, messages(*parts, **options))
                body = service.bodies[-1]
                if is_openai:
                    *results, last = body["input"][-3:]
                    return [_kinds(one["output"]) for one in results], _kinds(last["content"])
                blocks = body["messages"][-1]["content"]
                return [_kinds(one["content"]) for one in blocks[:2]], _kinds(blocks[2:])

            yield ask


def _kinds(content):
    if isinstance(content, str):
        return [content]
    names = ("text", "image", "document", "input_image", "input_file")
    assert all(block["type"] in (*names, "input_text") for block in content)
    return [
        block.get("text") or block["type"].removeprefix("input_").replace("document", "file")
        for block in content
    ]


SEE = "see [image 3x4, 73 bytes, T1]"


def test_a_part_stands_inside_of_the_result_that_tells_of_it(sent):
    both = (SEE, "see [application/pdf 9 bytes, T2]")
    found = sent(labelled("T1"), labelled("T2", PDF), contents=both)
    assert found == ([[both[0], "T1:", "image"], [both[1], "T2:", "file"]], ["Go on."])


@pytest.mark.parametrize(
    ("label", "contents"),
    [("U1", (SEE, "seen")), ("T1", (SEE, SEE)), ("T1", ("T1", "seen T1]"))],
    ids=str,
)
def test_another_part_stands_behind_them(sent, label, contents):
    results, behind = sent(labelled(label), contents=contents)
    assert results == [[one] for one in contents]
    assert behind == ["Go on.", f"{label}:", "image"]


def test_the_part_of_an_error_stands_behind_it(sent):
    (first, _), behind = sent(labelled("T1"), errors=(True, False))
    assert first[-1].endswith(SEE)
    assert len(first) == 1
    assert behind == ["Go on.", "T1:", "image"]


def test_a_model_that_takes_none_is_sent_none():
    made = []

    def create(*, model, messages, stop_sequences=None, **options):
        made.append(messages)
        return {"type": "message", "content": [], "stop_reason": "end_turn"}

    model = as_model(create, model="m", parts=())
    model(messages(labelled("T1")), tools=TOOLS, tool_choice=ToolChoice())
    results = made[0][-1]["content"]
    assert [block["type"] for block in results] == ["tool_result", "tool_result", "text"]


def test_arguments_with_a_key_twice_are_no_object():
    own = {"call": "a", "tool": "pay", "arguments": '{"sum": 5, "in": {"a": 1, "a": 2}}'}
    (turn,) = turns_of([{"role": "assistant", "content": "", "items": [own]}], "anthropic")
    (call,) = turn.items
    assert call.arguments == own["arguments"]
    assert call.object == {"INVALID_JSON": own["arguments"]}
