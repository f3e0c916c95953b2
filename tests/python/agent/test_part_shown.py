"""Images and files as they are shown to a person: in a notebook, and by `repr`."""

import base64
from io import BytesIO

import PIL.Image
import pytest

from callslip import Agent, File, Image, ScriptedModel, tool
from optional import optional_module
from pictures import png
from scripted import act, finish

formatters = optional_module("IPython.core.formatters")

DATA = png(6, 5)
REPR = f"Image([image 6x5, {len(DATA)} bytes, T1])"


@tool
def draw() -> Image:
    """Draw."""
    return Image(DATA)


@pytest.fixture
def result():
    model = ScriptedModel([act("draw"), finish("done")], parts=("image",))
    task = ["What is this?", Image(DATA, name="a.png"), File(b"day,sold", name="a.csv")]
    return Agent(model, protocol="react", tools=[draw]).run_sync(task)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_an_image_as_the_last_value_of_a_cell_is_shown(kind):
    drawn = BytesIO()
    PIL.Image.new("RGB", (4, 3), "red").save(drawn, kind)
    image = Image(drawn.getvalue())
    shown, metadata = formatters.DisplayFormatter().format(image)
    assert shown == {
        f"image/{kind.lower()}": base64.b64encode(drawn.getvalue()).decode(),
        "text/plain": f"Image([image 4x3, {image.size} bytes])",
    }
    assert metadata == {}


def test_the_image_of_a_result_is_shown(result):
    cell = formatters.DisplayFormatter().format
    shown, _ = cell(result.tickets[0].result)
    assert shown == {"image/png": base64.b64encode(DATA).decode(), "text/plain": REPR}
    shown, _ = cell(result.run.parts["U2"])
    assert shown == {"text/plain": "File([file text/csv, 8 bytes, U2, a.csv])"}


def test_no_repr_has_bytes(result):
    run = result.run
    assert f"result={REPR}" in repr(result.tickets[0])
    text = base64.b64encode(DATA).decode()
    shown = [result, run, run.parts, run.messages, list(run.messages), run.log, run.tickets]
    for value in (*shown, run.parts["T1"]._part, run.parts["U2"]):
        assert "IHDR" not in repr(value), value
        assert text[:40] not in repr(value)
    assert repr(run.parts["T1"]) == REPR
