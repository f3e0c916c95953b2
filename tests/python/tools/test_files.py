"""Parameters annotated with `Image` or `File`, which a model names by their labels."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import Field

from callslip import Agent, Context, File, Image, ScriptedModel, TicketStore, tool
from callslip._core import Outcome
from pictures import png
from scripted import act, block, call_once, finish, patient

CAT = Image(png(32, 16), name="cat.png")
REPORT = File(b"%PDF-1.4", name="report.pdf")
LABEL = 'The label of an image in this conversation, such as "U1" or "T3".'
LABELS = 'Labels of images in this conversation, such as "U1" or "T3".'


@dataclass
class Frame:
    picture: Image
    width: int = 1


def parameter(annotation: Any, doc: str = "", **given: Any) -> dict[str, Any]:
    def look(picture): ...

    look.__annotations__ = {"picture": annotation}
    look.__doc__ = f"Look.\n\nArgs:\n    picture: {doc}\n" if doc else "Look."
    if given:
        look.__defaults__ = (given["default"],)
    return tool(look).parameters


@pytest.mark.parametrize(
    ("annotation", "kind", "told"),
    [
        (Image, {"type": "string"}, LABEL),
        (File, {"type": "string"}, LABEL.replace("image", "image or file")),
        (
            Image | None,
            {"anyOf": [{"type": "string", "description": LABEL}, {"type": "null"}]},
            LABEL,
        ),
        (
            list[Image],
            {"type": "array", "items": {"type": "string", "description": LABEL}},
            LABELS,
        ),
        (
            tuple[Image, ...],
            {"type": "array", "items": {"type": "string", "description": LABEL}},
            LABELS,
        ),
        (Annotated[Image, "The cat."], {"type": "string"}, f"The cat. {LABEL}"),
        (Annotated[Image, Field(description="The cat")], {"type": "string"}, f"The cat. {LABEL}"),
    ],
)
def test_the_model_is_told_to_write_a_label(annotation, kind, told):
    assert parameter(annotation)["properties"]["picture"] == {**kind, "description": told}


def test_the_docstring_stays_and_the_label_is_told_beside_it():
    assert parameter(Image, "What is seen")["properties"]["picture"]["description"] == (
        f"What is seen. {LABEL}"
    )
    optional = parameter(Image, default=None)
    assert "required" not in optional
    assert optional["properties"]["picture"]["description"] == LABEL


def seen(value):
    """What a tool got, by size or type: the object itself would be the same in any case."""
    if isinstance(value, list | tuple):
        return [seen(one) for one in value]
    if isinstance(value, Frame):
        return {"frame": seen(value.picture)}
    return None if value is None else [type(value).__name__, value.data == CAT.data, value.label]


def looked(annotation, written, *, how="sync", task=("Look.", CAT, REPORT)):
    """The result of a call in a run that has these parts, or its error."""

    def look(picture):
        return seen(picture)

    look.__annotations__ = {"picture": annotation}
    agent = Agent(
        ScriptedModel([act("look", picture=written), finish()]),
        protocol="react",
        tools=[tool(look)],
    )
    task = list(task)
    run = (agent.run_sync(task) if how == "sync" else asyncio.run(agent.run(task))).run
    (ticket,) = run.tickets
    assert ticket.arguments == {"picture": written}
    return ticket.result if ticket.outcome == "ok" else ticket.error


GOT = ["Image", True, "U1"]
PDF = ["File", False, "U2"]


@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize(
    ("annotation", "written", "result"),
    [
        (Image, "U1", GOT),
        (Image, " U1 ", GOT),
        (Image, "[image 32x16, 86 bytes, U1, cat.png]", GOT),
        (File, "U1", GOT),
        (File, "U2", PDF),
        (Image | None, "U1", GOT),
        (Image | None, None, None),
        (list[Image], ["U1", "U1"], [GOT, GOT]),
        (list[File], ["U2", "U1"], [PDF, GOT]),
        (tuple[Image, ...], ["U1"], [GOT]),
        (Annotated[Image, Field(description="The cat")], "U1", GOT),
        (Frame, {"picture": "U1"}, {"frame": GOT}),
    ],
)
def test_a_label_becomes_the_image_of_the_run(annotation, written, result, how):
    assert looked(annotation, written, how=how) == result


@pytest.mark.parametrize("annotation", [Image, Annotated[Image, Field(description="The cat")]])
@pytest.mark.parametrize(
    ("written", "got"),
    [
        ("U7", "got 'U7'; the label is U1"),
        ("cat.png", "got 'cat.png'; the label is U1"),
        ("U2", "got 'U2', which is a file of the type application/pdf; the label is U1"),
    ],
)
def test_a_wrong_label_is_an_error_with_the_right_ones(annotation, written, got):
    told = looked(annotation, written)
    head = "Error calling tool 'look': InvalidArguments: 'picture': "
    assert told == f"{head}expected the label of an image of this conversation: {got}."


def test_all_wrong_labels_of_a_list_are_told_with_their_places():
    many = [Image(png(1, 1)) for _ in range(30)]
    told = looked(list[Image], ["U1", "X"], task=["Look.", *many])
    last = ", ".join(f"U{number}" for number in range(11, 31))
    assert told.endswith(f"got 'X'; the last 20 labels are {last}.")
    assert looked(Image, "U1", task=["Look."]).endswith("got 'U1'; it has no images.")


@tool
def crop(image: Image, width: int) -> Image:
    """Crop an image."""
    assert image.height is not None
    return Image(png(width, image.height))


@pytest.mark.parametrize("protocol", ["react", "chatty", "ticket", "native"])
def test_an_image_of_a_result_goes_into_the_next_call(protocol):
    if protocol == "chatty":
        first, second = block(("a", "crop", {"image": "U1", "width": 9})), "$a"
        replies = [first, block(("b", "crop", {"image": second, "width": 5})), "done"]
    else:
        first, *_ = call_once(protocol, "crop", {"image": "U1", "width": 9})
        again, *_, answer = call_once(protocol, "crop", {"image": "T1", "width": 5})
        replies = [first, again, answer]
    agent = Agent(ScriptedModel(replies), protocol=patient(protocol), tools=[crop])
    run = agent.run_sync(["Crop it.", CAT]).run
    first, second = run.tickets
    assert (first.result.width, first.result.label) == (9, "T1")
    assert (second.result.width, second.result.height, second.result.label) == (5, 16, "T2")
    assert sorted(run.parts) == ["T1", "T2", "U1"]


def test_a_direct_call_takes_images_themselves():
    assert crop(CAT, width=3).width == 3
    outcome = crop.call({"image": CAT, "width": 4}, None)
    assert isinstance(outcome, Outcome.Ok)
    assert outcome.parts[0].width == 4
    refused = crop.call({"image": "U1", "width": 4}, None)
    assert isinstance(refused, Outcome.Error)
    assert refused.message.endswith("got 'U1'; it has no images.")
    refused = crop.call({"image": REPORT, "width": 4}, None)
    assert refused.message.endswith("got File; it has no images.")


def test_a_tool_reads_the_parts_of_its_run(tmp_path):
    @tool
    def listed(context: Context) -> dict[str, Any]:
        return {label: file.size for label, file in context.parts.items()}

    store = TicketStore(tmp_path / "runs.db")
    replies = [act("crop", image="U1", width=2), act("listed"), finish()]
    agent = Agent(ScriptedModel(replies), protocol="react", tools=[crop, listed], store=store)
    run = agent.run_sync(["Go.", CAT, REPORT]).run
    assert run.tickets[1].result == {"U1": 86, "U2": 8, "T1": len(png(2, 16))}
    store.close()
    assert Context(run_id="r", ticket_id="T1", tool="t").parts == {}


def test_a_person_approves_the_label():
    asked = []

    def approve(call):
        asked.append(call.call)
        return True

    guarded = tool(needs_approval=True)(crop.__wrapped__)
    replies = [act("crop", image="U1", width=2), finish()]
    agent = Agent(ScriptedModel(replies), protocol="react", tools=[guarded])
    run = agent.run_sync(["Go.", CAT], approve=approve).run
    assert asked == ['crop {"image": "U1", "width": 2}']
    assert run.tickets[0].result.width == 2
