"""Images, files, policies and lines of logs that a program makes from values of a wrong type."""

import io
import re
from pathlib import Path

import pytest

from callslip import Agent, File, Image, KeepLast, ScriptedModel, Summarize, UsageError
from callslip.events import read_event

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
READ = "expected the path of a file, or its bytes: got"
TYPE = 'expected a media type, such as "audio/wav": got'


def of_none():
    return []


FILES = [
    (
        lambda: File("https://x.org/a.png?key=1"),
        f"{READ} the URL https://…; pass the bytes that are",
    ),
    (lambda: Image("s3://bucket/a.png"), f"{READ} the URL s3://…; pass the bytes that are there"),
    (
        lambda: Image("data:image/png;base64,AAAA"),
        f"{READ} the URL data:…; pass the bytes that are",
    ),
    (lambda: Image("file:///tmp/a.png"), f"{READ} the URL file://…; pass the path alone"),
    (lambda: Image("~/no such.png"), f"{READ} '~/no such.png', which cannot be read (No such file"),
    (
        lambda: Image(Path("~/no such.png")),
        f"{READ} '~/no such.png', which cannot be read (No such",
    ),
    (lambda: File(""), f"{READ} ''; pass another path, or the bytes"),
    (lambda: File("\0"), f"{READ} '\\x00'; pass another path, or the bytes"),
    (lambda: File("a;b"), f"{READ} 'a;b', which cannot be read (No such file or directory); pass"),
    (lambda: File("/"), f"{READ} '/', which cannot be read (Is a directory); pass each file of"),
    (lambda: File(b""), "expected a file with bytes in it: got none in it; pass another file"),
    (lambda: File("iVBORw0KGgo" * 90), f"{READ} 'iVBORw0KGgo"),
    (
        lambda: File(io.BytesIO(PNG)),
        "expected File(…) of a path or of bytes: got BytesIO; pass what its",
    ),
    (lambda: File(3), "expected File(…) of a path or of bytes: got int; pass the path of the file"),
    (lambda: File(b"abc", media_type=3), "expected media_type to be text: got 3"),
    (lambda: Image(PNG, media_type=3), "expected media_type to be text: got 3"),
    (lambda: File(b"abc", media_type="png"), f"{TYPE} 'png'; pass it as media_type="),
    (lambda: Image(PNG, media_type="image/"), f"{TYPE} 'image/'"),
    (lambda: File(b"abc", media_type=""), f"{TYPE} ''"),
    (lambda: Image(PNG).save(3), "expected path=a path: got 3"),
    (lambda: Image(PNG).save(None), "expected path=a path: got None"),
]


@pytest.mark.parametrize(("make", "words"), FILES, ids=range(len(FILES)))
def test_images_and_files(make, words):
    with pytest.raises(UsageError, match=f"^{re.escape(words)}") as wrong:
        make()
    assert len(str(wrong.value)) < 400


def test_a_path_with_a_tilde_says_what_to_pass():
    with pytest.raises(UsageError, match=r"; pass Path\(…\)\.expanduser\(\)$"):
        Image("~/no such.png")


def test_a_media_type_is_taken_without_parameters():
    recording = File(b"abc", media_type="Audio/WAV; codecs=1")
    assert (recording.media_type, recording.kind) == ("audio/wav", "audio")
    assert Image(b"abc", media_type="IMAGE/PNG").kind == "image"


def test_an_image_is_saved_in_a_folder_that_exists(tmp_path):
    with pytest.raises(UsageError, match=r"; create the folder .*no, or pass another path$"):
        Image(PNG).save(tmp_path / "no" / "x.png")
    with pytest.raises(UsageError, match=r"got the folder .*; pass the path of a file in it$"):
        Image(PNG).save(tmp_path)
    assert Image(PNG).save(tmp_path / "x.png").read_bytes() == PNG


def test_an_image_alone_is_no_task():
    with pytest.raises(UsageError, match="images and files: got Image; pass it in a list$"):
        Agent(ScriptedModel([])).run_sync(Image(PNG))


POLICIES = [
    (
        lambda: Agent(len, history=of_none),
        "expected history to take the exchanges: got a function",
    ),
    (
        lambda: Agent(len, history=lambda a, b: a),
        "expected history to take the exchanges: got a func",
    ),
    (
        lambda: KeepLast(True),
        "expected KeepLast(exchanges=…) to be a whole number from 1, or None for",
    ),
    (lambda: KeepLast(tokens="8000"), "expected KeepLast(tokens=…) to be a whole number from 1"),
    (
        lambda: Summarize(len, after=float("inf")),
        "expected Summarize(after=…) to be a whole number",
    ),
    (lambda: Summarize(len, keep=None), "expected Summarize(keep=…) to be a whole number from 1"),
    (lambda: Summarize("gpt-5"), "expected a callable from messages to text as the model: got str"),
]


@pytest.mark.parametrize(("make", "words"), POLICIES, ids=range(len(POLICIES)))
def test_policies(make, words):
    with pytest.raises(UsageError, match=f"^{re.escape(words)}"):
        make()


LINES = [
    3,
    None,
    "",
    "x",
    "{}",
    "[]",
    "3",
    '{"seq":0,"at":1,"event":{}}',
    '{"seq":0,"at":1,"event":3}',
    '{"seq":0,"at":1,"event":{"unheard_of":{}}}',
    '{"seq":0,"at":1,"event":{"moved":{}}}',
    '{"event":{"noted":{}}}' + " " * 5_000,
]


@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_lines_of_a_log(line):
    with pytest.raises(UsageError, match="^expected the line of an event: got ") as wrong:
        read_event(line)
    assert str(wrong.value).endswith("; pass a line of run.export()")
    assert len(str(wrong.value)) < 400


@pytest.mark.parametrize("children", ["x", None, 1])
def test_what_is_watched(children):
    run = Agent(ScriptedModel(["ok"]), protocol="chatty").run_sync("go").run
    with pytest.raises(UsageError, match="^expected children=True or False: got "):
        run.watch(children=children)
