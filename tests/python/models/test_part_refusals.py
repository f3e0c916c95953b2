"""Servers that take no images or files: which failures say so, and what becomes of the request."""

from __future__ import annotations

import asyncio
import itertools
import warnings
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace as Obj
from typing import Any

import pytest

from callslip import (
    Agent,
    BoundedModel,
    Fallback,
    File,
    Image,
    ModelError,
    Priced,
    Retrying,
    ScriptedModel,
    tool,
)
from callslip.errors import ModelRefused
from callslip.models import as_model
from callslip.models._part_refusals import refused_kinds
from callslip.parts import PartKind
from failing_server import FailingServer, failing_server
from model_services import services
from optional import optional_module
from pictures import PDF, count_parts, png
from scripted import act, finish

openai = optional_module("openai")
anthropic = optional_module("anthropic")

CAT, PLOT = png(3, 2), png(5, 4)
MULTIPLE: frozenset[PartKind] = frozenset({"image", "pdf"})
NO_IMAGES = "this model does not support image input"

# As servers have said it.
OF_IMAGES = [
    # llama.cpp
    "image input is not supported - hint: if this is unexpected, you may need to provide the "
    "mmproj",
    "unsupported content[].type",
    # vLLM
    "facebook/opt-125m is not a multimodal model None",
    "At most 0 image(s) may be provided in one prompt. Set '--limit-mm-per-prompt' to increase it.",
    "Unsupported content part type: image_url",
    # OpenRouter
    "No endpoints found that support image input",
    "{'message': 'Provider returned error', 'code': 400, 'metadata': {'raw': "
    '\'{"message":"Image inputs are not supported by this model."}\'}}',
    # Groq
    "'messages.1' : for 'role:user' the following must be satisfied"
    "[('messages.1.content' : value must be a string)]",
    "messages[0].content must be a string",
    # DeepSeek
    "Failed to deserialize the JSON body into the target type: messages[13]: unknown variant "
    "`image_url`, expected `text` at line 1 column 6290571",
    # OpenAI, Azure
    "Invalid content type. image_url is only supported by certain models.",
    "Invalid value: 'image_url'. Supported values are: 'text'.",
    # Mistral
    "Image input is not enabled for this model",
    # Ollama, LM Studio
    "this model does not support image input (ref: b8bd630e-4a39-4b57-82af-9158ee9d5703)",
    "Failed to create new sequence: this model is missing data required for image input",
    "This model does not support images. Please use a model that does.",
    "Vision add-on is not loaded, but images were provided for processing",
    # Google, Bedrock
    "Image input modality is not enabled for models/text-1",
    "This model doesn't support the image content block that you provided. Remove it and try again",
    # DashScope, Volcengine
    "[Unexpected item type in content]",
    "Model do not support image input. Request id: 02",
    # Servers of their own: serde, pydantic
    "messages: invalid type: sequence, expected a string at line 1 column 40",
    "[{'type': 'string_type', 'loc': ('body', 'messages', 1, 'content'), "
    "'msg': 'Input should be a valid string', 'input': [{'type': 'text', 'text': 'too large'}]}]",
    "Multimodal data provided, but model does not support multimodal requests.",
]
OF_FILES = [
    "NotImplementedError: Unknown part type: file",
    "Unsupported chat content part type: 'file'. Supported types: 'text', 'image_url'",
    "400 Invalid value: file. Supported values are: 'text','image_url','video_url' and 'video'.",
    "claude-3-haiku does not support PDF input.",
    "This model doesn't support documents.",
    "messages.0.content.1: Input tag 'document' found using 'type' does not match any of the "
    "expected tags: 'text', 'image'",
    "unknown variant `file`, expected `text` or `image_url`",
]
OF_ONE = [
    "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6000000 bytes > 5242880",
    "Could not process image",
    "Invalid base64 data",
    "Invalid base64 image_url.",
    "Unsupported image format: image/bmp is not supported",
    "Image format webp is not supported",
    "does not support image format bmp",
    "does not support images with dimensions above 8000 pixels",
    "images larger than 20 MB are not supported",
    "image size 9000x9000 is not supported",
    "You uploaded an unsupported image. Please make sure your image is valid.",
    "The image data you provided does not represent a valid image. Please check your input and try "
    "again with one of the following image formats: ['image/jpeg', 'image/png'].",
    "Unsupported MIME type: image/tiff",
    "request too large",
    "At most 5 image(s) may be provided in one request",
    "Too many images",
    "The document is password protected",
    "This model's maximum context length is 900 tokens, at most 0 images fit",
    "blocked by content filtering policy: image is not supported",
]
OF_ANOTHER = [
    "no such model",
    "The model `llama-3.2-90b-vision-preview` is not supported",
    "model gpt-4-vision does not exist",
    "stream_options is not supported",
    "tools are not supported",
    "No endpoints found that support tool use",
    "Unsupported content type: application/json",
    "response_format only supports text",
]


class StatusError(Exception):
    """As clients raise it."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        if status is not None:
            self.status_code = status


@pytest.mark.parametrize("status", [400, 404, 415, 422, 500, 501, None])
def test_refusals_of_images(status: int | None) -> None:
    found = {
        said: refused_kinds(StatusError(said, status), frozenset({"image"})) for said in OF_IMAGES
    }
    assert [said for said, kinds in found.items() if kinds != {"image"}] == []


def test_refusals_of_files_alone() -> None:
    for said in OF_FILES:
        assert (said, refused_kinds(StatusError(said, 400), MULTIPLE)) == (said, {"pdf"})
    for said in OF_IMAGES:
        assert (said, "image" in refused_kinds(StatusError(said, 400), MULTIPLE)) == (said, True)


@pytest.mark.parametrize("said", OF_ONE + OF_ANOTHER)
def test_failures_for_other_reasons(said: str) -> None:
    assert refused_kinds(StatusError(said, 400), MULTIPLE) == set()


@pytest.mark.parametrize("status", [401, 403, 408, 413, 429, 503, 529])
def test_statuses_of_other_failures(status: int) -> None:
    assert refused_kinds(StatusError(NO_IMAGES, status), MULTIPLE) == set()


def test_a_cause_says_it_too() -> None:
    error = RuntimeError("the provider failed")
    error.__cause__ = StatusError(NO_IMAGES, 400)
    assert refused_kinds(error, MULTIPLE) == {"image"}


# ---- runs


@pytest.fixture
def server() -> Iterator[FailingServer]:
    with failing_server() as server:
        yield server


CLIENTS = pytest.mark.parametrize("library", ["openai", "anthropic"])
DRIVERS = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
# The library, and whether it is async and streams.
WIRES = list(itertools.product(("openai", "anthropic"), (False, True), (False, True)))
WRAPPERS = {
    "none": lambda model: model,
    "retrying": lambda model: Retrying(model, backoff=0),
    "fallback": lambda model: Fallback(model, ScriptedModel([])),
    "all": lambda model: BoundedModel(Priced(Retrying(model, timeout=60), input=1, output=1)),
}


def model_of(
    server: Any, library: str = "openai", *, is_async: bool = False, **options: Any
) -> Any:
    if library == "anthropic":
        make = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
        return as_model(
            make(base_url=server.base, api_key="k", max_retries=0), model="m", **options
        )
    make = openai.AsyncOpenAI if is_async else openai.OpenAI
    client = make(base_url=f"{server.base}/v1", api_key="k", max_retries=0)
    return as_model(client, model="m", **options)


@tool
def plot() -> Image:
    """Draw a plot."""
    return Image(PLOT)


def run(model: Any, task: Any, *, is_async: bool = False) -> Any:
    agent = Agent(model, tools=[plot])
    return asyncio.run(agent.run(task)) if is_async else agent.run_sync(task)


def told(caught: Any) -> list[str]:
    return [str(one.message) for one in caught if one.category is UserWarning]


@pytest.mark.parametrize("wire", WIRES, ids=str)
@pytest.mark.parametrize("wrapped", WRAPPERS)
@pytest.mark.parametrize("status", [400, 500])
def test_a_run_goes_on_without_images(
    server: FailingServer, wire: tuple[str, bool, bool], wrapped: str, status: int
) -> None:
    library, is_async, stream = wire
    server.refusal = (status, NO_IMAGES)
    server.script = [act("plot"), act("plot"), finish("seen")]
    leaf = model_of(server, library, is_async=is_async, stream=stream)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        result = run(WRAPPERS[wrapped](leaf), "go", is_async=is_async)
    assert result.value == "seen"
    # Of all requests one was sent the image, and it was made again without it.
    assert [count_parts(body) for body in server.bodies] == [0, 1, 0, 0]
    assert server.bodies[1]["messages"][:-1] == server.bodies[2]["messages"][:-1]
    assert isinstance(server.bodies[2]["messages"][-1]["content"], str)
    assert "[image 5x4," in server.bodies[2]["messages"][-1]["content"]
    (warned,) = told(caught)
    assert warned.startswith(
        "m takes no images and files, and reads a line in their place from now on: "
    )
    assert NO_IMAGES in warned
    assert warned.endswith("; pass parts=() to as_model")
    # The images of the run are whole all the same, and no attempt has failed.
    assert result.run.parts["T1"].data == PLOT
    assert "attempt_failed" not in str(result.run.export())


@DRIVERS
@STREAMS
@pytest.mark.parametrize("responses", [False, True], ids=["chat", "responses"])
def test_a_refusal_that_is_in_the_reply(is_async: bool, stream: bool, responses: bool) -> None:
    with services() as server:
        server.refusal, server.text = (200, NO_IMAGES), finish("seen")
        model: Any = model_of(server, is_async=is_async, stream=stream)
        if responses:
            create = model._client.__self__._client.responses.create
            model = as_model(create, model="m", stream=stream)
        with pytest.warns(UserWarning, match="takes no images"):
            result = run(model, ["look", Image(CAT)], is_async=is_async)
        assert result.value == "seen"
        assert [count_parts(body) for body in server.bodies] == [1, 0]


@STREAMS
def test_clients_that_fail_once_their_stream_is_read(stream: bool) -> None:
    """Those of Google, Cohere, Ollama and LangChain are generators."""
    asked: list[int] = []

    def answer(turns: list[dict[str, Any]]) -> Iterator[Any]:
        asked.append(sum(isinstance(turn["content"], list) for turn in turns))
        if asked[-1]:
            yield Obj(content="", response_metadata={}, usage_metadata=None)
            raise StatusError(NO_IMAGES, 400)
        yield Obj(content=finish("seen"), response_metadata={}, usage_metadata=None)

    async def astream(turns: list[dict[str, Any]], **_: Any) -> AsyncIterator[Any]:
        for chunk in answer(turns):
            yield chunk

    async def ainvoke(turns: list[dict[str, Any]], **_: Any) -> Any:
        return list(answer(turns))[-1]

    client = Obj(
        stream=lambda turns, **_: answer(turns),
        invoke=lambda turns, **_: list(answer(turns))[-1],
        astream=astream,
        ainvoke=ainvoke,
    )
    for is_async in (False, True):
        asked.clear()
        model = as_model(client, stream=stream)
        model.is_async = is_async
        with pytest.warns(UserWarning, match="the model takes no images"):
            assert run(model, ["look", Image(CAT)], is_async=is_async).value == "seen"
        assert asked == [1, 0]


@DRIVERS
@STREAMS
def test_files_may_be_refused_alone(is_async: bool, stream: bool) -> None:
    refused = "Unknown part type: file"

    with services() as server:
        server.refusal, server.text = (400, refused), finish("seen")
        model = model_of(server, is_async=is_async, stream=stream)
        with pytest.warns(UserWarning, match="takes no PDF files") as caught:
            run(model, ["look", File(PDF)], is_async=is_async)
        server.refusal = None
        run(model, ["look", File(PDF), Image(CAT)], is_async=is_async)
        assert [count_parts(body) for body in server.bodies] == [1, 0, 1]
    (warned,) = told(caught)
    assert warned.startswith("m takes no PDF files, and reads a line in their place from now on: ")
    assert warned.endswith("; pass parts=('image',) to as_model")
    assert model.parts == {"image"}


@CLIENTS
@STREAMS
@pytest.mark.parametrize("said", ["image exceeds 5 MB maximum", "Could not process image"])
def test_an_image_that_is_refused_ends_the_run(
    server: FailingServer, library: str, stream: bool, said: str
) -> None:
    server.refusal = (400, said)
    model = model_of(server, library, stream=stream)
    with pytest.raises(ModelError, match=said):
        run(model, ["look", Image(CAT)])
    assert len(server.bodies) == 1
    assert model.parts == {"image", "pdf"}


def test_a_request_without_images_is_not_made_again(server: FailingServer) -> None:
    server.script = ["400"]
    model = model_of(server)
    with pytest.raises(ModelError, match="no such option"):
        run(model, "go")
    assert len(server.bodies) == 1


def test_the_failure_of_the_second_request_is_raised(server: FailingServer) -> None:
    server.refusal, server.script = (400, NO_IMAGES), ["401"]
    with pytest.warns(UserWarning, match="takes no images"), pytest.raises(ModelError, match="401"):
        run(model_of(server), ["look", Image(CAT)])
    assert [count_parts(body) for body in server.bodies] == [1, 0]


def test_a_refusal_to_answer_is_not_one_of_images(server: FailingServer) -> None:
    server.script = ["refused"]
    model = model_of(server, stream=False)
    with pytest.raises(ModelRefused):
        run(model, ["look", Image(CAT)])
    assert count_parts(server.bodies[0]) == 1
    assert model.parts == {"image", "pdf"}


def test_the_next_model_takes_the_images_that_the_first_does_not(server: FailingServer) -> None:
    """Each model of a wrapper learns for itself."""
    server.refusal, server.script = (400, NO_IMAGES), ["401"]
    second = ScriptedModel([finish("seen")], parts=("image",))
    model = Fallback(model_of(server), second)
    assert model.parts == {"image", "pdf"}
    with pytest.warns(UserWarning, match="takes no images"):
        assert run(model, ["look", Image(CAT)]).value == "seen"
    assert model.parts == {"image"}
    assert [part.label for part in second.requests[0].messages[-1]["parts"]] == ["U1"]


# ---- what the user is told of images that are not sent


@pytest.mark.parametrize(
    ("options", "task", "said"),
    [
        (
            {"parts": ("pdf",)},
            Image(CAT),
            "the model reads a line in place of the image: pass parts=('image', 'pdf') to as_model "
            "if it takes images",
        ),
        (
            {},
            File(b"RIFF", media_type="audio/wav"),
            "the model reads a line in place of the file: pass parts=('audio', 'image', 'pdf') to "
            "as_model if it takes audio",
        ),
        (
            {},
            File(b"\0", media_type="video/mp4"),
            "the model reads a line in place of the file: its client is sent no video",
        ),
    ],
)
def test_an_image_of_the_user_that_is_not_sent_is_told_once(
    server: FailingServer, options: dict[str, Any], task: File, said: str
) -> None:
    server.script = [act("plot"), finish(), finish()]
    model = model_of(server, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        run(model, ["look", task])
        run(model, ["look", task])
    assert told(caught) == [said]


@pytest.mark.parametrize(
    ("options", "task"),
    [
        ({"parts": ()}, ["look", Image(CAT)]),
        ({"parts": ("pdf",)}, "go"),
        ({}, ["look", File(b"a,b\n", name="a.csv")]),
        ({}, ["look", Image(CAT), File(PDF)]),
    ],
)
def test_nothing_is_told_of_images_of_tools_and_of_what_no_model_takes(
    server: FailingServer, options: dict[str, Any], task: Any
) -> None:
    server.script = [act("plot"), finish("seen")]
    assert run(model_of(server, **options), task).value == "seen"
