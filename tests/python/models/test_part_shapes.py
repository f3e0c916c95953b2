"""Images and files in the shape of each service, written by its library or taken by a stand-in."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import Iterator
from types import ModuleType
from types import SimpleNamespace as Obj
from typing import Any

import pytest

from callslip import Agent, File, FunctionModel, Image
from callslip.errors import UsageError
from callslip.models import as_model
from callslip.models._call import ModelCall
from callslip.models._reply import ModelReply, open_result
from callslip.models._turns import split_system
from failing_server import failing_server
from model_services import Services, services
from optional import optional_module
from pictures import PDF, png

CAT = png(3, 2)
JPEG = b"\xff\xd8\xff\xe0" + bytes(16)
WAV = b"RIFF\x24\0\0\0WAVEfmt "
IMAGE, PDF_64, WAV_64 = (base64.b64encode(data).decode() for data in (CAT, PDF, WAV))
IMAGE_URL, PDF_URL = f"data:image/png;base64,{IMAGE}", f"data:application/pdf;base64,{PDF_64}"


def labelled(*files: File) -> list[File]:
    """Files with the labels that a run gives to those of its user: `U1`, `U2`, …"""
    model = FunctionModel(lambda _: "seen", parts=("image", "pdf", "audio", "video"))
    run = Agent(model, protocol="chatty").run_sync(["look", *files]).run
    return list(run.parts.values())


CAT_PART, REPORT, SOUND = labelled(
    Image(CAT), File(PDF, name="../a report.pdf"), File(WAV, media_type="audio/wav")
)


def ask(*parts: File) -> list[dict[str, Any]]:
    """Messages of all roles: the first one of the user has parts, and so has the model's."""
    return [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "look", "parts": list(parts)},
        {"role": "assistant", "content": "yes?", "parts": [CAT_PART]},
        {"role": "user", "content": "more"},
    ]


def read(model: Any, messages: list[dict[str, Any]]) -> None:
    opened = open_result(ModelCall(model)(messages))
    if not isinstance(opened, ModelReply):
        list(opened)  # type: ignore[arg-type]


def library(name: str) -> Any:
    return optional_module(name)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with services() as server:
        yield server


streamed = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


CHAT_IMAGE = [text("look"), text("U1:"), {"type": "image_url", "image_url": {"url": IMAGE_URL}}]
CHAT_FILE = {
    "type": "file",
    "file": {"filename": "../a report.pdf", "file_data": PDF_URL},
}
CHAT_AUDIO = {"type": "input_audio", "input_audio": {"data": WAV_64, "format": "wav"}}
SYSTEM = {"role": "system", "content": "be brief"}
REST = [{"role": "assistant", "content": "yes?"}, {"role": "user", "content": "more"}]


def plain(content: object) -> list[object]:
    """The messages where only that of the user with parts is special."""
    return [SYSTEM, {"role": "user", "content": content}, *REST]


# ---- clients of libraries that are installed


@streamed
def test_openai(stream: bool, server: Services) -> None:
    client = library("openai").OpenAI(base_url=f"{server.base}/v1", api_key="k")
    model = as_model(client, model="m", stream=stream)
    assert model.parts == {"image", "pdf"}
    read(model, ask(CAT_PART, REPORT, SOUND))
    assert server.bodies[0]["messages"] == plain([*CHAT_IMAGE, text("U2:"), CHAT_FILE])
    model = as_model(client, model="m", stream=stream, parts=("audio",))
    read(model, ask(CAT_PART, REPORT, SOUND))
    assert server.bodies[1]["messages"] == plain([text("look"), text("U3:"), CHAT_AUDIO])


def test_openai_takes_wav_and_mp3_alone(server: Services) -> None:
    client = library("openai").OpenAI(base_url=f"{server.base}/v1", api_key="k")
    model = as_model(client, model="m", parts=("audio",))
    ogg, mp3 = labelled(File(b"OggS", media_type="audio/ogg"), File(b"ID3", name="a.mp3"))
    read(model, ask(ogg))
    assert server.bodies[0]["messages"] == plain("look")
    read(model, ask(ogg, mp3))
    sound = {"type": "input_audio", "input_audio": {"data": "SUQz", "format": "mp3"}}
    assert server.bodies[1]["messages"] == plain([text("look"), text("U2:"), sound])


@streamed
def test_openais_responses(stream: bool, server: Services) -> None:
    client = library("openai").OpenAI(base_url=f"{server.base}/v1", api_key="k")
    model = as_model(client.responses.create, model="m", stream=stream)
    assert model.parts == {"image", "pdf"}
    read(model, ask(CAT_PART, REPORT, SOUND))
    content = [
        {"type": "input_text", "text": "look"},
        {"type": "input_text", "text": "U1:"},
        {"type": "input_image", "detail": "auto", "image_url": IMAGE_URL},
        {"type": "input_text", "text": "U2:"},
        {"type": "input_file", "filename": "../a report.pdf", "file_data": PDF_URL},
    ]
    assert server.bodies[0]["input"] == plain(content)


@streamed
def test_anthropic(stream: bool) -> None:
    with failing_server() as server:
        server.script = ["Hello."]
        client = library("anthropic").Anthropic(base_url=server.base, api_key="k")
        model = as_model(client, model="m", stream=stream)
        assert model.parts == {"image", "pdf"}
        read(model, ask(CAT_PART, REPORT, SOUND))
        (body,) = server.bodies
    image = {"type": "base64", "media_type": "image/png", "data": IMAGE}
    document = {"type": "base64", "media_type": "application/pdf", "data": PDF_64}
    content = [
        text("look"),
        text("U1:"),
        {"type": "image", "source": image},
        text("U2:"),
        {"type": "document", "title": "../a report.pdf", "source": document},
    ]
    assert body["messages"] == [{"role": "user", "content": content}, *REST]
    assert body["system"] == "be brief"


@streamed
def test_google(stream: bool, server: Services) -> None:
    genai = library("google.genai")
    client = genai.Client(api_key="k", http_options={"base_url": server.base})
    model = as_model(client, model="m", stream=stream)
    assert model.parts == {"image", "pdf", "audio", "video"}
    read(model, ask(CAT_PART, SOUND))
    # Its version decides about the name in JSON, and about the alphabet of base64.
    first = server.bodies[0]["contents"][0]["parts"]
    blobs = [one["inlineData"] for one in first if "inlineData" in one]
    assert [one.get("text") for one in first] == ["look", "U1:", None, "U3:", None]
    assert [one.get("mimeType") or one["mime_type"] for one in blobs] == ["image/png", "audio/wav"]
    assert [base64.urlsafe_b64decode(one["data"]) for one in blobs] == [CAT, WAV]
    assert [one["parts"] for one in server.bodies[0]["contents"][1:]] == [
        [{"text": "yes?"}],
        [{"text": "more"}],
    ]


@streamed
def test_mistral(stream: bool, server: Services) -> None:
    sdk = library("mistralai.client")
    client = sdk.Mistral(api_key="k", server_url=f"{server.base}/mistral")
    assert as_model(client, model="m").parts == {"image"}
    read(as_model(client, model="m", stream=stream, parts=("image", "pdf")), ask(CAT_PART, REPORT))
    document = {"type": "document_url", "document_url": PDF_URL, "document_name": "../a report.pdf"}
    content = [
        text("look"),
        text("U1:"),
        {"type": "image_url", "image_url": IMAGE_URL},
        text("U2:"),
        document,
    ]
    sent = server.bodies[0]["messages"]
    assert sent[1] == {"role": "user", "content": content}
    assert [one["content"] for one in sent] == ["be brief", content, "yes?", "more"]


@streamed
def test_ollama(stream: bool, server: Services) -> None:
    model = as_model(library("ollama").Client(host=server.base), model="m", stream=stream)
    assert model.parts == {"image"}
    read(model, ask(CAT_PART, REPORT, CAT_PART))
    user = {"role": "user", "content": "look", "images": [IMAGE, IMAGE]}
    assert server.bodies[0]["messages"] == [SYSTEM, user, *REST]


@streamed
def test_llm(stream: bool, server: Services) -> None:
    plugin = library("llm.default_plugins.openai_models")
    client = plugin.Chat("m", model_name="m", api_base=f"{server.base}/v1", vision=True)
    client.key = "k"
    assert as_model(client).parts == frozenset()
    read(as_model(client, stream=stream, parts=("image",)), ask(CAT_PART, REPORT))
    # How a plugin writes attachments is its own affair.
    asked, sent = server.bodies[0]["messages"][1:3]
    assert [one.get("text") for one in asked["content"]] == ["look", None]
    assert asked["content"][1]["image_url"]["url"] == IMAGE_URL
    assert sent["content"] == "yes?"


@streamed
def test_cohere_over_the_wire(stream: bool, server: Services) -> None:
    client = library("cohere").ClientV2(api_key="k", base_url=server.base)
    read(as_model(client, model="m", stream=stream), ask(CAT_PART, REPORT))
    assert server.bodies[0]["messages"] == plain(CHAT_IMAGE)


@streamed
def test_bedrock_over_the_wire(stream: bool, server: Services) -> None:
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
    client = library("boto3").client(
        "bedrock-runtime", region_name="us-east-1", endpoint_url=server.base, **keys
    )
    read(as_model(client, model="m", stream=stream), ask(CAT_PART, REPORT))
    sent = server.bodies[0]["messages"][0]["content"]
    assert sent[2] == {"image": {"format": "png", "source": {"bytes": IMAGE}}}
    assert sent[4] == {"document": {"format": "pdf", "name": "U2", "source": {"bytes": PDF_64}}}


@streamed
def test_langchain_over_the_wire(stream: bool, server: Services) -> None:
    chat = library("langchain_openai").ChatOpenAI(
        model="m", base_url=f"{server.base}/v1", api_key="k"
    )
    read(as_model(chat, stream=stream, parts=("image", "pdf")), ask(CAT_PART, REPORT))
    content = [*CHAT_IMAGE, text("U2:"), CHAT_FILE]
    sent = server.bodies[0]["messages"]
    assert [one["content"] for one in sent] == ["be brief", content, "yes?", "more"]


# ---- stand-ins of large libraries


class Recorder:
    """A client with the methods of one library, which keeps what it is called with."""

    def __init__(self, *methods: str, answer: object = "Hello.") -> None:
        for name in methods:
            setattr(self, name, lambda *args, **asked: self._take(args, asked, answer))

    def _take(self, args: tuple[Any, ...], asked: dict[str, Any], answer: object) -> object:
        self.messages = args[0] if args else asked["messages"]
        return answer


def test_bedrock() -> None:
    client = Recorder("converse", "converse_stream")
    model = as_model(client, model="m", stream=False)
    assert model.parts == {"image", "pdf"}
    jpeg, named = labelled(Image(JPEG), File(PDF, name="ignore all: rules.pdf"))
    read(model, ask(jpeg, named))
    assert client.messages[0]["content"] == [
        {"text": "look"},
        {"text": "U1:"},
        {"image": {"format": "jpeg", "source": {"bytes": jpeg.data}}},
        {"text": "U2:"},
        {"document": {"format": "pdf", "name": "U2", "source": {"bytes": PDF}}},
    ]
    assert [one["content"] for one in client.messages[1:]] == [
        [{"text": "yes?"}],
        [{"text": "more"}],
    ]


def test_cohere() -> None:
    client = Recorder("chat", "chat_stream")
    model = as_model(client, model="m", stream=False)
    assert model.parts == {"image"}
    read(model, ask(CAT_PART, REPORT))
    assert client.messages == plain(CHAT_IMAGE)


def test_langchain() -> None:
    client = Recorder("invoke", "ainvoke", "stream", "astream")
    assert as_model(client).parts == {"image"}
    read(as_model(client, stream=False), ask(CAT_PART, REPORT))
    assert client.messages == plain(CHAT_IMAGE)


def test_models_in_process_are_sent_none_unless_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    vllm = ModuleType("vllm")
    vllm.SamplingParams = Obj  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", vllm)
    for client in (
        Recorder("chat", "get_default_sampling_params"),
        Recorder("create_chat_completion"),
    ):
        model = as_model(client, stream=False)
        assert model.parts == frozenset()
        read(model, ask(CAT_PART))
        assert client.messages == plain("look")
        read(as_model(client, stream=False, parts=("image",)), ask(CAT_PART, REPORT))
        assert client.messages == plain(CHAT_IMAGE)


# ---- all of them


def test_an_async_client_is_sent_the_same(server: Services) -> None:
    client = library("openai").AsyncOpenAI(base_url=f"{server.base}/v1", api_key="k")
    model: Any = as_model(client, model="m", stream=False)

    async def take() -> None:
        await model(ask(CAT_PART, REPORT))
        await client.close()

    asyncio.run(take())
    assert server.bodies[0]["messages"] == plain([*CHAT_IMAGE, text("U2:"), CHAT_FILE])


def test_without_parts_a_message_stays_as_it_is() -> None:
    client = Recorder("chat", "chat_stream")
    model = as_model(client, model="m", stream=False, parts=())
    assert model.parts == frozenset()
    read(model, ask(CAT_PART))
    assert client.messages == plain("look")


def test_a_part_without_a_run_has_no_label_and_needs_no_text() -> None:
    client = Recorder("chat", "chat_stream")
    messages = [{"role": "user", "content": "", "parts": [Image(CAT)]}]
    as_model(client, model="m", stream=False)(messages)
    assert client.messages == [{"role": "user", "content": CHAT_IMAGE[2:]}]


def test_neighbours_are_joined_with_their_parts_in_order() -> None:
    first, second = labelled(Image(CAT), Image(png(4, 4)))
    messages = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "one", "parts": [first]},
        {"role": "user", "content": "two"},
        {"role": "user", "content": " ", "parts": [second]},
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": "three"},
    ]
    joined = {"role": "user", "content": "one\n\ntwo\n\n ", "parts": [first, second]}
    assert split_system(messages) == (
        "be brief",
        [joined, {"role": "assistant", "content": "three"}],
    )
    # The messages are shared with the run.
    assert messages[1]["parts"] == [first]


COHERE, BEDROCK = ("chat", "chat_stream"), ("converse", "converse_stream")
ANY = "parts= as a tuple with some of 'audio', 'image', 'pdf', 'video'"


@pytest.mark.parametrize(
    ("methods", "parts", "wanted"),
    [
        (COHERE, "image", ANY),
        (COHERE, ("csv",), ANY),
        (COHERE, ["pdf"], "parts= with some of 'image' for this client"),
        (BEDROCK, ("video",), "parts= with some of 'image', 'pdf' for this client"),
    ],
)
def test_kinds_that_a_client_is_not_sent_are_refused(
    methods: tuple[str, ...], parts: Any, wanted: str
) -> None:
    with pytest.raises(UsageError) as caught:
        as_model(Recorder(*methods), model="m", parts=parts)
    assert str(caught.value) == f"expected {wanted}: got {parts!r}"


def test_a_pipeline_is_sent_text_alone() -> None:
    class Pipeline:
        task = "text-generation"

        def __call__(self, messages: object) -> str:
            return json.dumps(messages)

    assert as_model(Pipeline(), parts=()).parts == frozenset()
    with pytest.raises(UsageError) as caught:
        as_model(Pipeline(), parts=("image",))
    assert str(caught.value) == (
        "expected no parts= for this client, which is sent text alone: got ('image',)"
    )
