"""Images that scripts leave: they go with the result, so that a model sees its plots."""

import hashlib
import os
import struct

from callslip import Agent, Image, ScriptedModel, TicketStore
from callslip._core import Outcome
from callslip.look._parts import Parts
from callslip.look._text import Texts
from callslip.parts import received
from callslip.sandbox._attached import attached_files
from callslip.sandbox._display import artifact_html
from callslip.sandbox._result import MODEL_BYTES, Artifact, Isolation, ScriptResult
from pictures import png
from scripted import act, finish

MIB = 1 << 20
NAME = "execute_python_code"

PLOT = f"""
import os
os.makedirs("out/plots", exist_ok=True)
open("out/plots/plot.png", "wb").write({png(64, 48)!r})
open("out/data.csv", "w").write("a,b")
open("out/notes.png", "w").write("this is no image")
print("plotted")
"""


def test_a_model_sees_the_plot_that_its_script_saved(make, tmp_path):
    model = ScriptedModel([act(NAME, code=PLOT), finish()], parts=("image",))
    with TicketStore(tmp_path / "runs.db") as store:
        agent = Agent(model, protocol="react", python=make(), store=store)
        run = agent.run_sync("plot").run
        told = run.tickets[0].result
        assert told["stdout"] == "plotted\n"
        rows = {row["path"]: row for row in told["artifacts"]}
        image = rows["plots/plot.png"]["image"]
        assert (image.data, image.label, image.name) == (png(64, 48), "T1.2", "plots/plot.png")
        table = rows["data.csv"]["file"]
        assert (table.data, table.label, table.media_type) == (b"a,b", "T1.1", "text/csv")
        assert "image" not in rows["data.csv"]
        assert "image" not in rows["notes.png"]
        last = model.requests[1].messages[-1]
        assert last["parts"] == [image]
        size = len(png(64, 48))
        assert f'"image":"[image 64x48, {size} bytes, T1.2, plots/plot.png]"' in last["content"]
    with TicketStore(tmp_path / "runs.db") as store:
        assert store.run(run.id).parts["T1.2"].data == png(64, 48)


def test_a_call_outside_of_a_run_has_them_as_well(make):
    tool = make().as_tool()
    outcome = tool.call({"code": PLOT}, None)
    assert isinstance(outcome, Outcome.Ok)
    assert [part.width for part in outcome.parts] == [None, 64]
    outcome = tool.call({"code": "print(1)"}, None)
    assert outcome.parts == []


def test_a_session_with_a_person_shows_the_model_nothing(make):
    tool = make(ask=lambda _: "yes").as_tool()
    outcome = tool.call({"code": PLOT, "interactive": True}, None)
    assert outcome.json == '{"status":"session ended","exit_code":0}'
    assert outcome.parts == []


def artifact(folder, name, content, mime="image/png"):
    file = folder / name
    file.write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    return Artifact(path=name, size=len(content), sha256=digest, mime=mime, file=file)


def padded(size):
    """An image of just this size: PNG readers stop at its end."""
    return png(2, 2).ljust(size, b"\0")


def test_large_images_are_named_and_left_out(tmp_path):
    sizes = [MIB, MIB + 1, MIB, MIB, MIB - 100, 200, 100]
    made = [artifact(tmp_path, f"{at}.png", padded(size)) for at, size in enumerate(sizes)]
    told = attached_files(made)
    left_out = {name: why for name, why in told.items() if isinstance(why, str)}
    assert left_out == {
        "1.png": "not attached: larger than 1 MiB",
        "5.png": "not attached: the images of this call have 4 MiB already",
    }
    assert sum(one.size for one in told.values() if isinstance(one, Image)) == 4 * MIB


def gigapixels():
    """A small file that holds 2.5 billion pixels."""
    header = struct.pack(">II", 50_000, 50_000)
    return png(2, 2).replace(struct.pack(">II", 2, 2), header, 1)


def test_an_image_of_billions_of_pixels_goes_nowhere(tmp_path):
    made = artifact(tmp_path, "huge.png", gigapixels())
    assert attached_files([made]) == {"huge.png": "not attached: more than 64,000,000 pixels"}
    assert "<img" not in artifact_html(made)
    assert "more than 64,000,000 pixels" in artifact_html(made)
    # What a program sends is not handed on either; a user's own image is, but no page shows it.
    assert received(gigapixels(), "image/png") is None
    assert received(png(8000, 1), "image/png").width == 8000
    own = Image(gigapixels())
    assert Parts({"U1": own}, Texts(100, None), images=True)._data(own) is None


def test_only_what_a_script_left_is_attached(tmp_path):
    names = ("changed", "longer", "gone", "link", "pipe")
    made = [artifact(tmp_path, f"{name}.png", png(2, 2)) for name in names]
    changed, longer, gone, link, pipe = (one.file for one in made)
    changed.write_bytes(png(2, 2, b"\1\2\3"))
    with longer.open("ab") as more:
        more.write(b"more")
    for file in (gone, link, pipe):
        file.unlink()
    secret = tmp_path / "secret.png"
    secret.write_bytes(png(2, 2))
    link.symlink_to(secret)
    os.mkfifo(pipe)
    assert attached_files(made) == {
        "changed.png": "not attached: the file was changed meanwhile",
        "longer.png": "not attached: the file was changed meanwhile",
        "gone.png": "not attached: the file is gone",
        "link.png": "not attached: the file is gone",
        "pipe.png": "not attached: the file is gone",
    }


def test_what_is_only_called_an_image_is_not_attached(tmp_path):
    made = [
        artifact(tmp_path, "a.svg", b"<svg/>", "image/svg+xml"),
        artifact(tmp_path, "b.png", b"<html>"),
        artifact(tmp_path, "c.pdf", b"%PDF-1.7", "application/pdf"),
        artifact(tmp_path, "d.png", b""),
        artifact(tmp_path, "e.png", b"%PDF-1.7"),
    ]
    attached = attached_files(made)
    assert {path: (file.kind, file.name) for path, file in attached.items()} == {
        "a.svg": ("file", "a.svg"),
        "c.pdf": ("pdf", "c.pdf"),
    }


def test_a_result_with_many_images_stays_short(tmp_path):
    made = [artifact(tmp_path, f"{'x' * 80}{at}.png", png(2, 2)) for at in range(200)]
    result = ScriptResult(
        status="ok",
        exit_code=0,
        stdout="y" * 100_000,
        stderr="",
        artifacts=tuple(made),
        isolation=Isolation("isolated"),
    )
    told = result._for_model_within(MODEL_BYTES, attached_files(made))
    *rows, last = told["artifacts"]
    assert all(isinstance(row["image"], Image) for row in rows)
    assert last == f"and {200 - len(rows)} more"
    lined = {**told, "artifacts": [{**row, "image": repr(row["image"])} for row in rows]}
    assert len(str(lined)) < MODEL_BYTES
    assert "image" not in result.for_model()["artifacts"][0]
