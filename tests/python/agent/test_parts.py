"""Images and files: from users and tools, to models that take them and to others."""

import asyncio
import pickle
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import PIL.Image
import pytest

from callslip import (
    Agent,
    File,
    FunctionModel,
    Image,
    KeepLast,
    ModelError,
    ReplayError,
    ScriptedModel,
    StoreError,
    TicketStore,
    UsageError,
    replay,
    tool,
)
from pictures import png
from scripted import act, asked, call_once, finish, load, patient

PROTOCOLS = ("react", "chatty", "ticket")
CAT = png(32, 16)
PLOT = png(640, 480)


@tool
def plot() -> Image:
    """Draw a plot."""
    return Image(PLOT)


def seen(messages):
    """The labels of the images and files that a model is sent, message by message."""
    return [[part.label for part in message.get("parts", ())] for message in messages]


def sent(model, at=-1):
    """What a request told a model from the task on."""
    return asked(model.requests[at].messages)


def outcome_of(function):
    """Run an agent whose model calls a tool once. Returns the ticket, and what the model read."""
    model = ScriptedModel([act(function.__name__), finish()], parts=("image", "pdf"))
    result = Agent(model, tools=[tool(function)]).run_sync("go")
    return result.tickets[0], sent(model)[-1]


# What an image or a file is


def test_an_image_is_read_from_a_path_or_from_bytes(tmp_path):
    path = tmp_path / "cat.jpg"
    path.write_bytes(CAT)
    image = Image(path)
    # What the bytes say is true, not what the name says.
    assert (image.media_type, image.name, image.width, image.height) == (
        "image/png",
        "cat.jpg",
        32,
        16,
    )
    assert image == Image(str(path)) == Image(CAT)
    assert image != Image(PLOT)
    assert image.data == CAT
    assert image.label is None
    assert image.save(tmp_path / "copy").read_bytes() == CAT
    assert pickle.loads(pickle.dumps(image)).name == "cat.jpg"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: Image(folder / "none.png"), "none.png', which cannot be read"),
        (Image, "which cannot be read"),
        (lambda folder: Image(b"plain"), "expected an image in PNG, JPEG, GIF or WebP"),
        (lambda folder: Image(b"plain", name="cat.png"), "got other bytes"),
        (lambda folder: Image(b"%PDF-1.7"), "got application/pdf"),
        (lambda folder: Image(b""), "expected a file with bytes in it"),
        (lambda folder: Image(7), "got int"),
        (lambda folder: File(b"plain"), 'pass media_type="…"'),
        (lambda folder: File(folder / "a.unknownkind"), "which cannot be read"),
        (lambda folder: File(b"x" * 50_000_001, media_type="a/b"), "expected at most 50 MB"),
        (lambda folder: File(b"x", media_type="a/b", name="\ud800"), "half of a surrogate pair"),
    ],
)
def test_what_is_no_image_or_file_is_refused(tmp_path, make, said):
    with pytest.raises(UsageError) as caught:
        make(tmp_path)
    assert said in str(caught.value)


def test_a_file_has_a_kind_for_models():
    kinds = {
        "image/png": "image",
        "image/bmp": "file",
        "application/pdf": "pdf",
        "audio/wav": "audio",
        "video/mp4": "video",
        "text/csv": "file",
    }
    assert {name: File(b"x", media_type=name).kind for name in kinds} == kinds
    assert File(b"%PDF-1.7").kind == "pdf"
    assert File(CAT).kind == "image"


def test_an_image_shows_itself_in_a_notebook():
    shown = Image(CAT)._repr_mimebundle_()
    assert shown == {
        "image/png": Image(CAT).to_base64(),
        "text/plain": "Image([image 32x16, 86 bytes])",
    }


# Tasks and messages


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_model_that_takes_images_is_sent_those_of_the_user_and_of_results(protocol):
    replies = call_once(protocol, "plot", {})
    if protocol == "ticket":
        replies[1] = load("T1")
    model = ScriptedModel(replies, parts=("image",))
    agent = Agent(model, protocol=patient(protocol), tools=[plot])
    result = agent.run_sync(["What is this?", Image(CAT, name="cat.png")])
    assert seen(sent(model, 0))[-1] == ["U1"]
    assert seen(sent(model))[-1] == ["T1"]
    assert "[image 640x480, 2 KB, T1]" in sent(model)[-1]["content"]
    assert sent(model)[-1]["parts"][0].data == PLOT
    assert result.run.task == "What is this?\n[image 32x16, 86 bytes, U1, cat.png]"
    assert list(result.run.parts) == ["U1", "T1"]
    assert result.tickets[0].result == Image(PLOT)


def test_a_model_that_takes_none_reads_one_line_in_their_place():
    model = ScriptedModel([act("plot"), finish()])
    Agent(model, tools=[plot]).run_sync(["See", Image(CAT), File(b"a,b", media_type="text/csv")])
    for messages in (sent(model, 0), sent(model)):
        assert all(set(message) == {"role", "content"} for message in messages)
    task = next(one["content"] for one in sent(model) if one["content"].startswith("See"))
    assert task.endswith("[image 32x16, 86 bytes, U1]\n[file text/csv, 3 bytes, U2]")
    assert "[image 640x480, 2 KB, T1]" in sent(model)[-1]["content"]


def test_a_model_is_sent_the_kinds_alone_that_it_takes():
    model = ScriptedModel([finish()], parts=("pdf",))
    Agent(model).run_sync(["See", Image(CAT), File(b"%PDF-1.7")])
    assert seen(sent(model))[-1] == ["U2"]


def test_a_function_says_which_kinds_it_takes():
    def model(messages):
        told.append(messages[-1])
        return finish()

    told = []
    Agent(model).run_sync(["See", Image(CAT)])
    model.parts = {"image"}
    Agent(model).run_sync(["See", Image(CAT)])
    assert ["parts" in message for message in told] == [False, True]
    with pytest.raises(UsageError, match="expected parts= as a tuple"):
        FunctionModel(model, parts=("pictures",))


def test_20_mb_add_nothing_to_the_prompt_of_a_model_that_takes_none():
    @tool
    def large() -> list[Image]:
        """Draw much."""
        return [Image(png(8, 8, noise=5_000_000)) for _ in range(2)]

    model = ScriptedModel([act("large"), finish()])
    task = ["See", *(Image(png(8, 8, noise=5_000_000)) for _ in range(2))]
    result = Agent(model, tools=[large]).run_sync(task)
    assert sum(part.size for part in result.run.parts.values()) > 20_000_000
    with_none = ScriptedModel([finish()])
    Agent(with_none, tools=[large]).run_sync("See")

    def length(messages):
        return sum(len(str(message)) for message in messages)

    assert length(sent(model, 0)) < length(sent(with_none, 0)) + 100
    assert length(sent(model)) < length(sent(with_none)) + 500


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (7, "expected the task as text, or as a list of texts, images and files: got int"),
        (["a", 7], "expected texts, images and files in the task: got int"),
        (b"bytes", "got bytes"),
        ({"a": 1}, "got dict"),
        (["\ud800"], "half of a surrogate pair"),
    ],
)
def test_a_task_of_another_type_is_refused(task, said):
    with pytest.raises(UsageError) as caught:
        Agent(ScriptedModel([])).run_sync(task)
    assert said in str(caught.value)


def test_later_messages_and_earlier_conversations_have_images_too():
    model = ScriptedModel([finish(), finish(), finish()], parts=("image",))
    earlier = [
        {"role": "user", "content": ["I am Ann.", Image(CAT)]},
        {"role": "assistant", "content": "Hello Ann."},
    ]
    result = Agent(model).run_sync(["And this?", Image(PLOT)], messages=earlier)
    result = result.run.send_sync(["Again", Image(CAT)])
    assert [labels for labels in seen(sent(model)) if labels] == [["U1"], ["U2"], ["U3"]]
    assert result.run.log[0].messages[0]["content"] == "I am Ann.\n[image 32x16, 86 bytes, U1]"

    async def in_progress():
        agent = Agent(model)
        run = agent.start(["One", Image(CAT)])
        return await run

    assert list(asyncio.run(in_progress()).run.parts) == ["U1"]


def test_a_check_of_the_task_is_given_what_the_user_said():
    given = []
    image = Image(CAT)
    agent = Agent(ScriptedModel([finish()]), check_task=lambda task, _: given.append(task))
    agent.run_sync(["See", image])
    assert given == [["See", image]]


@pytest.mark.parametrize("way", ["run", "run_sync"])
def test_functions_of_the_program_see_the_images_of_the_run(way):
    def condition(arguments, context):
        seen["condition"] = list(context.parts)
        return False

    def check(answer, context):
        seen["check"] = list(context.parts)

    @tool(needs_approval=condition)
    def draw() -> Image:
        """Draw."""
        return Image(PLOT)

    seen = {}
    agent = Agent(ScriptedModel([act("draw"), finish()]), tools=[draw], check_answer=check)
    task = ["See", Image(CAT)]
    if way == "run":
        asyncio.run(agent.run(task, approve=lambda ticket: True))
    else:
        agent.run_sync(task, approve=lambda ticket: True)
    assert seen == {"condition": ["U1"], "check": ["U1", "T1"]}


# Results of tools


@dataclass
class Report:
    title: str
    figure: Image


def test_images_stand_anywhere_in_a_result():
    def report() -> dict:
        image = Image(CAT)
        return {"one": Report("t", image), "all": [image, (Image(PLOT), 7)]}

    ticket, message = outcome_of(report)
    assert ticket.result == {
        "one": {"title": "t", "figure": Image(CAT)},
        "all": [Image(CAT), [Image(PLOT), 7]],
    }
    # The same object is one image.
    assert [part.label for part in message["parts"]] == ["T1.1", "T1.2"]


def test_bytes_of_an_image_or_a_pdf_become_one():
    def draw() -> list:
        return [CAT, b"%PDF-1.7 x", b"text", b"\xff\xfe\x00"]

    ticket, message = outcome_of(draw)
    assert ticket.result[:2] == [Image(CAT), File(b"%PDF-1.7 x")]
    assert ticket.result[2] == "text"
    assert isinstance(ticket.result[3], str)
    assert len(message["parts"]) == 2


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (Image, "UsageError"),
        (bytes, "ResultError"),
        (lambda data: [bytearray(data)], "ResultError"),
        (lambda data: SimpleNamespace(_repr_png_=lambda: data), "ResultError"),
    ],
    ids=["image", "bytes", "bytearray", "drawn"],
)
def test_a_result_with_too_large_a_file_fails_its_call(make, error):
    def draw() -> object:
        return make(png(1, 1, noise=50_000_000))

    ticket, _ = outcome_of(draw)
    assert ticket.error == (
        f"Error calling tool 'draw': {error}: expected at most 50 MB: got more; pass a smaller "
        "image or file."
    )


def test_an_image_of_pil_and_what_draws_itself_become_png():
    class Figure:
        def savefig(self, file, **options):
            assert options == {"format": "png"}
            file.write(PLOT)

    def draw() -> dict:
        return {"pil": PIL.Image.new("RGB", (5, 4)), "figure": Figure()}

    ticket, _ = outcome_of(draw)
    assert (ticket.result["pil"].width, ticket.result["pil"].height) == (5, 4)
    assert ticket.result["figure"] == Image(PLOT)
    model = ScriptedModel([finish()], parts=("image",))
    Agent(model).run_sync(["See", PIL.Image.new("L", (3, 2))])
    assert sent(model)[-1]["parts"][0].width == 3


def test_an_object_without_json_fails_as_ever():
    class Broken:
        def _repr_png_(self):
            return None

    def draw() -> object:
        return Broken()

    ticket, message = outcome_of(draw)
    assert ticket.outcome == "error"
    assert "Broken" in message["content"]
    assert "parts" not in message


def test_a_name_cannot_end_its_line_or_the_result():
    def draw() -> dict:
        return {"a": Image(CAT, name='x"]}\n[image 1x1, T9]'), "b": 1}

    ticket, message = outcome_of(draw)
    assert ticket.result["b"] == 1
    assert ticket.result["a"] == Image(CAT)
    assert "\n[image" not in message["content"]


def test_an_image_of_one_run_is_passed_on_to_another():
    first = Agent(ScriptedModel([act("plot"), finish()]), tools=[plot]).run_sync("go")
    model = ScriptedModel([finish()], parts=("image",))
    Agent(model).run_sync(["See", first.tickets[0].result])
    assert seen(sent(model))[-1] == ["U1"]
    assert sent(model)[-1]["parts"][0].data == PLOT


# Stores and logs


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_resumed_run_sends_the_same_images(tmp_path, kind):
    store = TicketStore(tmp_path / "runs.db") if kind == "file" else TicketStore()
    failing = ScriptedModel([act("plot"), ModelError("away")], parts=("image",))
    with pytest.raises(ModelError):
        Agent(failing, tools=[plot], store=store).run_sync(["See", Image(CAT)])
    run_id = store.runs()[0].run_id
    model = ScriptedModel([finish()], parts=("image",))
    Agent(model, tools=[plot], store=store).resume_sync(run_id)
    parts = [part for message in sent(model) for part in message.get("parts", ())]
    assert [(part.label, part.data) for part in parts] == [("U1", CAT), ("T1", PLOT)]
    assert store.tickets()[0].result == Image(PLOT)
    assert store.run(run_id).parts["T1"].data == PLOT
    store.compact(run_id)
    assert {label: part.data for label, part in store.run(run_id).parts.items()} == {
        "U1": CAT,
        "T1": PLOT,
    }
    assert store.tickets()[0].result.data == PLOT


def test_an_exported_log_has_its_images(tmp_path):
    agent = Agent(ScriptedModel([act("plot"), finish()]), tools=[plot])
    run = agent.run_sync(["See", Image(CAT), Image(CAT)]).run
    log = run.export()
    # The same bytes are written once.
    assert log.count('{"content":') == 2
    store = TicketStore(tmp_path / "runs.db")
    store.import_run(log)
    for again in (replay(log), pickle.loads(pickle.dumps(run)), store.run(run.id)):
        assert {label: part.data for label, part in again.parts.items()} == {
            "U1": CAT,
            "U2": CAT,
            "T1": PLOT,
        }
        assert again.export() == log
    damaged = log.replace('"base64":"iVBO', '"base64":"AVBO', 1)
    with pytest.raises(ReplayError, match="line 1"):
        store.import_run(damaged)


def test_a_log_that_came_without_its_images_is_read_all_the_same(tmp_path):
    run = Agent(ScriptedModel([finish()])).run_sync(["See", Image(CAT)]).run
    events = [line for line in run.export().splitlines() if not line.startswith('{"content"')]
    store = TicketStore(tmp_path / "runs.db")
    store.import_run("\n".join(events))
    again = store.run(run.id)
    assert again.parts["U1"].width == 32
    assert "U1" in again.messages[-2]["content"]
    with pytest.raises(StoreError, match="without the bytes of"):
        _ = again.parts["U1"].data


# What is left out of a long conversation


def test_the_images_of_exchanges_that_are_left_out_are_left_out_with_them():
    replies = [act("plot") if turn % 2 else act("note", n=turn) for turn in range(1, 8)]

    @tool
    def note(n: int) -> int:
        """Note."""
        return n

    model = ScriptedModel([*replies, finish()], parts=("image",))
    agent = Agent(model, tools=[plot, note], history=KeepLast(2))
    agent.run_sync(["See", Image(CAT)])
    last = [labels for labels in seen(sent(model)) if labels]
    assert last[0] == ["U1"]
    assert len(last) <= 2


def test_the_tokens_of_images_count_for_the_context_of_a_model_that_takes_them():
    def requests(parts):
        @tool
        def draw(n: int) -> Image:
            """Draw."""
            return Image(png(1_500, 800 + n))

        replies = [act("draw", n=turn) for turn in range(8)]
        model = ScriptedModel([*replies, finish()], parts=parts, context=8_000)
        result = Agent(model, tools=[draw]).run_sync("go")
        return any(event.kind == "history_shortened" for event in result.run.log)

    assert requests(("image",))
    assert not requests(())


# Handing over


def test_a_conversation_is_handed_over_with_its_images():
    run = (
        Agent(ScriptedModel([act("plot"), finish()]), tools=[plot])
        .run_sync(["See", Image(CAT, name="the cat.png")])
        .run
    )
    model = ScriptedModel(["done"], parts=("image",))
    result = Agent(model, protocol="chatty").hand_over_sync(run)
    data = [part.data for message in sent(model) for part in message.get("parts", ())]
    assert data == [CAT, PLOT, CAT]
    text = "\n".join(message["content"] for message in sent(model))
    assert "U1, the cat.png]" in text
    assert "T1]" not in text
    assert list(result.run.parts) == ["U1", "U2", "U3"]


def test_paths_are_no_images_by_themselves():
    with pytest.raises(UsageError, match=r"pass Image\(…\)"):
        Agent(ScriptedModel([])).run_sync(["See", Path("cat.png")])
