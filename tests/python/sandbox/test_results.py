"""Results, limits and what notebooks and models see of them."""

import copy
import dataclasses
import pickle
from pathlib import Path

import pytest

from callslip import (
    Artifact,
    IsolationUnavailable,
    Limits,
    RunnerLost,
    SandboxError,
    ScriptLimits,
    ScriptRefused,
    ScriptResult,
)
from callslip._base.json import to_json
from callslip.errors import CallslipError
from callslip.sandbox import Isolation
from callslip.sandbox._display import show_artifact
from callslip.sandbox._folders import ArtifactFolder
from callslip.sandbox._result import safe_path
from callslip.sandbox._text import LabelledText, prompt_lines, strip_control_codes, strip_invisible

PNG = b"\x89PNG\r\n\x1a\n"


def result(**fields):
    given = {"status": "ok", "exit_code": 0, "stdout": "", "stderr": "", **fields}
    return ScriptResult(isolation=Isolation("isolated"), **given)


def artifact(tmp_path, name, content, mime):
    file = tmp_path / name
    file.write_bytes(content)
    return Artifact(path=name, size=len(content), sha256="0" * 64, mime=mime, file=file)


def with_artifact():
    """A result with a file that lasts as long as it."""
    folder = ArtifactFolder(None)
    file = folder.put("a.png", PNG)
    about = {"path": "a.png", "size": len(PNG), "sha256": "0" * 64, "mime": "image/png"}
    return result(artifacts=(Artifact(**about, file=file, _folder=folder),))


def test_a_model_is_told_the_rest_only_where_there_is_some(tmp_path):
    plain = result(stdout="1\n", duration_ms=1234.5)
    assert plain.for_model() == {
        "status": "ok",
        "exit_code": 0,
        "truncated": False,
        "duration_s": 1.234,
        "stderr": "",
        "stdout": "1\n",
    }
    image = artifact(tmp_path, "a.png", PNG, "image/png")
    more = result(
        status="killed",
        exit_code=None,
        signal=11,
        stderr_truncated=True,
        artifacts=(image,),
        hints=("mind it",),
    ).for_model()
    assert more["signal"] == 11
    assert more["truncated"] is True
    assert more["artifacts"] == [{"path": "a.png", "size": 8, "mime": "image/png"}]
    assert more["hints"] == ["mind it"]
    assert str(tmp_path) not in str(more)


@pytest.mark.parametrize("letter", ["x", "\0\\", '"', "é", "\U0001f600"])
def test_a_model_sees_the_end_of_an_error_after_any_amount_of_output(tmp_path, letter):
    image = artifact(tmp_path, "a.png", PNG, "image/png")
    told = result(
        status="error",
        exit_code=1,
        stdout="begin" + letter * 65_000 + "end",
        stderr=letter * 65_000 + "\nValueError: no",
        hints=("mind it",),
        artifacts=(image,) * 2000,
    ).for_model()
    assert len(to_json(told).encode()) < Limits().result_bytes
    assert list(told) == [
        "status",
        "exit_code",
        "hints",
        "artifacts",
        "truncated",
        "duration_s",
        "stderr",
        "stdout",
    ]
    assert told["stderr"].endswith("ValueError: no")
    assert told["stdout"].startswith("begin")
    assert told["stdout"].endswith("end")
    assert "characters left out" in told["stdout"]
    assert told["truncated"] is True
    assert told["artifacts"][-1].endswith(" more")


def test_a_model_is_told_within_a_smaller_bound_too():
    told = result(stdout="x" * 9000, stderr="y" * 9000)._for_model_within(4096)
    assert 3000 < len(to_json(told)) < 4096
    assert told["stderr"].count("y") > 500


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, dataclasses.replace])
def test_the_files_of_a_copy_are_there_as_long_as_it_is(copied):
    first = with_artifact()
    second = copied(first)
    del first
    (kept,) = second.artifacts
    assert kept.read_bytes() == PNG
    folder = kept.file.parent
    del second, kept
    assert not folder.exists()


def test_a_result_takes_its_files_to_other_processes(tmp_path):
    first = with_artifact()
    there = pickle.dumps(first)
    del first
    second = pickle.loads(there)
    assert second.artifacts[0].read_bytes() == PNG
    lasting = artifact(tmp_path, "a.png", PNG, "image/png")
    assert pickle.loads(pickle.dumps(lasting)) == lasting


@pytest.mark.parametrize(
    ("status", "told"),
    [("ok", "session ended"), ("cancelled", "session cancelled"), ("timeout", "session failed")],
)
def test_of_a_session_with_a_person_a_model_learns_only_how_it_ended(status, told):
    session = result(status=status, stdout="my name is Ann", hints=("h",))
    assert session.for_model(interactive=True) == {"status": told, "exit_code": 0}


def test_escape_codes_reach_neither_models_nor_people():
    text = (
        "\x1b[31mred\x1b[0m \x1b]0;title\x07\x1b]8;;http://x\x1b\\link\x9b2J\x08\u202eabc\r\nend\rx"
    )
    assert strip_control_codes(text) == "red linkabc\nend\nx"
    assert result(stdout=text).for_model()["stdout"] == "red linkabc\nend\nx"
    assert str(result(stdout=text)) == "red linkabc\nend\nx"
    assert strip_control_codes("\ud800") == "\ufffd"


def test_a_prompt_says_on_each_line_who_asks():
    assert prompt_lines("Name? ") == "[script] Name? "
    assert prompt_lines("\x1b[2Ja\n$ sudo:") == "[script] a\n[script] $ sudo:"
    lines = prompt_lines("x" * 100_000).split("\n")
    assert sum(len(line) for line in lines) == len("[script] ") * len(lines) + 2000


@pytest.mark.parametrize(
    "padding",
    [" " * 60, " " * 71, "\t" * 9, "\u3000" * 40, "e\u0301" * 40, "\u200b" * 500 + "x" * 70],
)
def test_no_line_of_a_terminal_begins_without_who_asks(monkeypatch, padding):
    for columns in (80, 47, 5):
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = prompt_lines(f"Name? {padding}[callslip] may it? [y/N] ").split("\n")
        for line in lines:
            assert line.startswith("[script] ")
            # Tabs and wide letters take more than one column.
            taken = sum(8 if one == "\t" else 2 if one == "\u3000" else 1 for one in line)
            assert taken < max(columns, 30)


def test_output_in_pieces_is_labelled_by_lines():
    labelled = LabelledText("script")
    assert labelled.add("a") == "[script] a"
    assert labelled.add("b\n\nc") == "b\n[script] \n[script] c"
    assert labelled.add("\n") == "\n"
    assert labelled.add("d") == "[script] d"


def test_what_can_t_be_seen_is_not_shown_to_people():
    unseen = "a\u200bb\u200dc\u2060d\ufeffe\xadf\u061cg\u202eh\U000e0041i\u3164j"
    assert strip_invisible(unseen) == "abcdefghij"
    # A model gets the letters that a text in Persian is written with.
    persian = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    assert strip_control_codes(persian) == persian


def test_a_notebook_shows_output_as_text(tmp_path):
    shown = result(stdout="<script>alert(1)</script>", stderr="<b>", hints=("<i>",))
    bundle = shown._repr_mimebundle_()
    html = bundle["text/html"]
    assert "<script>" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "&lt;b&gt;" in html
    assert "&lt;i&gt;" in html
    assert bundle["text/plain"].startswith("<script>")
    assert html == shown._repr_html_()


def test_a_notebook_shows_images_and_never_their_markup(tmp_path):
    svg = b"<svg onload='alert(1)'></svg>"
    image = artifact(tmp_path, "a.svg", svg, "image/svg+xml")
    html = image._repr_mimebundle_()["text/html"]
    assert html.startswith('<img src="data:image/svg+xml;base64,')
    assert "onload" not in html
    html = result(artifacts=(artifact(tmp_path, "a.png", PNG, "image/png"),))._repr_html_()
    assert html.count("<img ") == 1


@pytest.mark.parametrize("mime", ["text/html", "application/javascript", 'image/png"><b>'])
def test_of_other_artifacts_a_notebook_shows_the_name(tmp_path, mime):
    page = artifact(tmp_path, "a<b>.html", b"<script>", mime)
    assert page._repr_mimebundle_()["text/html"] == "<p>a&lt;b&gt;.html (8 bytes)</p>"


def test_a_notebook_shows_the_first_rows_of_a_table(tmp_path):
    rows = b"a,<b>\n" + b"1,2\n" * 100
    html = artifact(tmp_path, "a.csv", rows, "text/csv")._repr_mimebundle_()["text/html"]
    assert "<th>&lt;b&gt;</th>" in html
    assert html.count("<tr>") == 21
    assert html.endswith("<p>…</p>")


def test_an_artifact_whose_file_is_gone_is_named(tmp_path):
    gone = artifact(tmp_path, "a.png", PNG, "image/png")
    gone.file.unlink()
    assert gone._repr_mimebundle_()["text/html"] == "<p>a.png (8 bytes): the file is gone</p>"


def test_nothing_is_displayed_outside_of_a_notebook(tmp_path):
    show_artifact(artifact(tmp_path, "a.png", PNG, "image/png"))


def test_a_failed_result_says_how_it_ended():
    assert str(result(status="error", exit_code=2, stderr="no\n")) == "no\nerror, exit code 2"
    assert str(result(status="killed", exit_code=None, signal=9)) == "killed, signal 9"
    assert "killed, signal 9" in result(status="killed", exit_code=None, signal=9)._repr_html_()


@pytest.mark.parametrize("path", ["a", "a.png", "a/b/c.txt", "ä b.txt", ".hidden", "a..b"])
def test_paths_that_stay_below(path):
    assert safe_path(path)


@pytest.mark.parametrize(
    "path",
    ["", ".", "..", "a/../b", "/a", "a//b", "a/", "a\\b", "C:a", "a\0", "a\nb", "a\x1b[0m", "..."],
)
def test_paths_that_may_not(path):
    assert not safe_path(path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"wall_seconds": 0},
            r"^expected ScriptLimits\(wall_seconds=…\) to be more than 0: got 0$",
        ),
        ({"prompts": -1}, r"^expected ScriptLimits\(prompts=…\) to be 0 or more: got -1$"),
        ({"files": 1.5}, r"^expected ScriptLimits\(files=…\) to be a whole number: got 1.5$"),
        ({"cpu_seconds": "1"}, "to be a whole number: got '1'$"),
        ({"wall_seconds": float("inf")}, "to be a number: got inf$"),
        ({"files": 15}, r"^expected ScriptLimits\(files=…\) to be at least 16: got 15 \(with"),
        ({"memory_bytes": 1 << 20}, "to be at least 33554432: got 1048576"),
        ({"disk_bytes": 2**63}, r"to be at most 9223372036854775807$"),
        ({"wall_seconds": 1e300}, r"to be at most 9223372036854775807$"),
        ({"idle_seconds": True}, "to be a number: got True$"),
    ],
)
def test_a_limit_that_is_none_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        ScriptLimits(**options)


def test_a_limit_may_allow_nothing():
    assert ScriptLimits(artifacts=0, artifact_bytes=0, prompts=0).artifacts == 0


def test_exceptions_cross_to_other_processes():
    first = IsolationUnavailable("no", "landlock", 38, "a newer kernel")
    copy = pickle.loads(pickle.dumps(first))
    assert (str(copy), copy.stage, copy.errno, copy.remedy) == (
        "no",
        "landlock",
        38,
        "a newer kernel",
    )
    refused = pickle.loads(pickle.dumps(ScriptRefused("no", "dependency_denied")))
    assert (str(refused), refused.code) == ("no", "dependency_denied")
    assert issubclass(RunnerLost, SandboxError)
    assert issubclass(SandboxError, CallslipError)
    assert not issubclass(ScriptRefused, SandboxError)


def test_a_name_is_enough_to_find_the_copy(tmp_path):
    image = artifact(tmp_path, "a.png", PNG, "image/png")
    assert isinstance(image.file, Path)
    assert "a.png" in repr(image)
