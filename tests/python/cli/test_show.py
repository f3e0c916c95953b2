"""`callslip show`: a run as text."""

import json
from pathlib import Path

import pytest

from callslip import Agent, ScriptedModel, TicketStore, tool
from scripted import act, finish

LOGS = sorted((Path(__file__).parents[2] / "data" / "logs").rglob("*.jsonl"))
HOSTILE = "Weather?\n\x1b[2J\u202erun over"


@tool
def weather(city: str) -> str:
    """Get the weather."""
    return f"4 degrees\x1b[1m in {city}\n" + "long " * 500


@pytest.fixture
def file(tmp_path):
    """A store with a run that has a violation, and then one with a run below it."""
    path = tmp_path / "runs.sqlite"
    script = [act("weather", city="Os\x1blo"), act("nope"), finish("4\ndegrees")]
    with TicketStore(path) as store:
        met = Agent(ScriptedModel(script), tools=[weather], store=store, name="met")
        first = met.run_sync(HOSTILE).run.id
        part = Agent(ScriptedModel([finish("half")])).as_tool()
        script = [act("agent", task="A part."), finish("whole")]
        outer = Agent(ScriptedModel(script), tools=[part], store=store)
        second = outer.run_sync("All.").run.id
    return path, first, second


def test_a_run_is_shown_with_its_turns_and_nothing_acts_on_the_terminal(file, call):
    path, first, _ = file
    out = call("show", path, first[:10]).out
    lines = out.splitlines()
    assert lines[:2] == [f"run {first}: finished", "agent met, protocol react"]
    assert lines[3].startswith("3 turns, 1 ticket, 1 violation, ")
    assert lines[4:7] == ["task", "  Weather?", "  \\u001b[2J\\u202erun over"]
    assert "      4 degrees\\u001b[1m in Os\\u001blo" in lines
    assert "  violation unknown_tool: unknown tool 'nope'" in lines
    assert any(
        line.startswith("    hint: nothing was done. Use another tool only if") for line in lines
    )
    assert lines[-3:] == ["answer", "  4", "  degrees"]
    assert all(line.isprintable() for line in lines)
    assert "more characters" in out


def test_the_latest_run_is_shown_with_the_run_below_it(file, call, tmp_path):
    path, _, second = file
    shown = call("show", path).out
    lines = shown.splitlines()
    assert lines[0] == f"run {second}: finished"
    assert f"      run {second}.T1: finished" in lines
    assert lines.index("        half") < lines.index("  whole")

    log = tmp_path / "log.jsonl"
    log.write_text(call("export", path).out, "utf-8")
    assert call("show", log).out == shown
    assert call("show", log, second).out == shown


def test_one_turn_is_shown_whole(file, call):
    path, first, _ = file
    lines = call("show", path, first, "--turn", "1").out.splitlines()
    assert lines[0].startswith("turn 1")
    assert "      " + "long " * 500 in lines
    assert {"  reply", "  next message"} <= set(lines)
    assert call("show", path, first, "--turn", 2, "--json").out.count('"unknown_tool"') > 0
    assert "from 1 to 3: got 4" in call("show", path, first, "--turn", 4, status=2).err


def test_messages_are_those_of_the_run(file, call):
    path, first, _ = file
    shown = json.loads(call("show", path, first, "--messages", "--json").out)
    text = call("show", path, first, "--messages", "--turn", 2).out
    with TicketStore(path) as store:
        messages = store.run(first).messages
        expected = [{"role": one["role"], "content": one["content"]} for one in messages]
    assert shown == expected
    assert [line for line in text.splitlines() if line[0] != " "] == ["assistant:", "user:"]


def test_the_json_is_that_of_the_trace(file, call):
    path, first, _ = file
    shown = json.loads(call("show", path, first, "--json").out)
    with TicketStore(path) as store:
        assert shown == json.loads(json.dumps(store.run(first).trace().to_dict()))


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_run_of_every_version_is_shown(path, call):
    lines = call("show", path).out.splitlines()
    assert lines[0].startswith("run ")
    assert any(line.startswith("turn 1") for line in lines)
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("words", [["x"], ["--turn", "9"]])
def test_what_is_not_there_is_an_error(file, call, words):
    assert call("show", file[0], *words, status=2).err.startswith("callslip: ")


def test_the_beginning_of_an_id_is_that_of_a_run_and_not_of_those_below_it(call, tmp_path):
    path = tmp_path / "runs.sqlite"
    with TicketStore(path) as store:
        helper = Agent(ScriptedModel([finish("7")]), name="helper")
        script = [act("ask", task="How many?"), finish("7")]
        boss = Agent(ScriptedModel(script), tools=[helper.as_tool(name="ask")], store=store)
        run = boss.run_sync("Ask.").run
    assert call("show", path, run.id[:6]).out.startswith(f"run {run.id}: ")
    below = call("show", path, f"{run.id[:6]}", status=0).out
    assert below == call("show", path, run.id).out
    assert call("show", path, f"{run.id}.").out.startswith(f"run {run.id}.T1: ")
    log = tmp_path / "log.jsonl"
    log.write_text(call("export", path).out, "utf-8")
    assert call("show", log, run.id[:6]).out.startswith(f"run {run.id}: ")


def test_an_empty_store_has_no_run_to_show(tmp_path, call):
    path = tmp_path / "runs.sqlite"
    TicketStore(path).close()
    assert "there is no run" in call("show", path, status=2).err


def test_a_run_is_written_as_a_page(file, call, tmp_path):
    path, first, _ = file
    page = tmp_path / "trace.html"
    assert call("show", path, first, "--html", page).out == f"{page}\n"
    html = page.read_text("utf-8")
    with TicketStore(path) as store:
        assert html == store.run(first).to_html()


@pytest.mark.parametrize("opens", [True, False])
def test_a_page_is_opened_in_the_browser(file, call, monkeypatch, opens):
    path, first, _ = file
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or opens)
    done = call("show", path, first, "--open", status=0 if opens else 2)
    (url,) = opened
    assert url == Path(done.out.strip()).as_uri()
    assert Path(done.out.strip()).read_text("utf-8").startswith("<!doctype html>")
    assert ("no browser can be opened here" in done.err) is not opens


def test_a_page_has_no_other_options(file, call, tmp_path):
    path, first, _ = file
    err = call("show", path, first, "--html", tmp_path / "x", "--json", status=2).err
    assert "expected --html alone" in err
