"""The command that serves a gateway, its options, and the runs in a store."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from contextlib import contextmanager

import httpx
import pytest

from callslip import ScriptedModel, TicketStore, UsageError, WithTools
from callslip.cli import main
from callslip.gateway import gateway, serve
from gateways import USER, WEATHER, act, chat, finish

CALL = act("get_weather", city="Oslo")
TOKEN = "a-token-that-is-long-enough-for-this"

MODULE = """
def model(messages):
    return {reply!r}
"""


@contextmanager
def command(folder, *options, reply=CALL, **environment):
    """The output and the address of `callslip serve` in another process."""
    (folder / "served.py").write_text(MODULE.format(reply=reply))
    words = [sys.executable, "-m", "callslip", "serve", "served:model", "--port", "0", *options]
    process = subprocess.Popen(
        words,
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        lines = [process.stdout.readline() for _ in range(4)]
        yield "".join(lines), lines[2].partition("=")[2].strip(), process
    finally:
        process.terminate()
        process.communicate(timeout=60)


def ask(address, **options):
    body = {"model": "m", "messages": [USER], "tools": [WEATHER]}
    return httpx.post(f"{address}/v1/chat/completions", json=body, timeout=60, **options)


def test_the_command_serves_a_model_of_a_module(tmp_path):
    with command(tmp_path) as (said, address, process):
        assert re.fullmatch(
            r"serving model \(grammar: none\)\n"
            r"export OPENAI_BASE_URL=http://127.0.0.1:\d+/v1\n"
            r"export ANTHROPIC_BASE_URL=http://127.0.0.1:\d+\n"
            r"the key of clients \(OPENAI_API_KEY, ANTHROPIC_API_KEY\): any text\n",
            said,
        )
        assert ask(address).status_code == 200
        assert httpx.get(f"{address}/health").json() == {"status": "ok"}
        line = process.stderr.readline()
        assert re.fullmatch(
            r"[\d:]{8} get_weather · 0\+0 tokens, 0 cached · attempts: 1 · [\d.]+ s\n", line
        )


def test_a_missing_token_file_is_created_for_its_owner_alone(tmp_path):
    file = tmp_path / "token"
    with command(tmp_path, "--token-file", str(file)) as (said, address, _):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        token = file.read_text().strip()
        assert token not in said
        assert ask(address).status_code == 401
        assert ask(address, headers={"x-api-key": token}).status_code == 200


def test_the_token_may_be_in_the_environment(tmp_path):
    with command(tmp_path, CALLSLIP_TOKEN=TOKEN) as (_, address, _process):
        assert ask(address).status_code == 401
        headers = {"Authorization": f"Bearer {TOKEN}"}
        assert ask(address, headers=headers).status_code == 200


def test_each_request_with_tools_is_a_run_of_the_store(tmp_path):
    path = tmp_path / "runs.sqlite"
    with TicketStore(path) as store:
        sent = chat(["no json", CALL], tools=[WEATHER], options={"store": store})
        assert sent.status == 200
        (stored,) = store.runs()
        run = store.run(stored.run_id)
        assert run.stop_reason is not None
        assert run.violations == 1
        page = run.to_html()
        assert "no json" in page
        assert "get_weather" in page


def test_the_command_keeps_runs(tmp_path, capsys):
    path = tmp_path / "runs.sqlite"
    with command(tmp_path, "--store", str(path)) as (_, address, _process):
        assert ask(address).status_code == 200
    assert main(["runs", str(path)]) == 0
    assert "gateway" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "due"),
    [
        (["no.gguf"], "no.gguf, which is not there"),
        (["http://127.0.0.1:1/v1"], "expected --model"),
        (["local", "--model", "x"], "leave it out"),
        (["nothing"], "a .gguf file, an address, a service or module:name"),
        (["local", "--host", "0.0.0.0"], "expected token= and hosts= for a gateway on 0.0.0.0"),
        (["local", "--slots", "0"], "slots"),
    ],
)
def test_wrong_words_are_refused(words, due, capsys, monkeypatch):
    monkeypatch.delenv("CALLSLIP_TOKEN", raising=False)
    assert main(["serve", *words]) == 2
    assert due in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "due"),
    [
        ({"slots": 0}, "slots"),
        ({"queue": -1}, "queue"),
        ({"stream": "x"}, "expected stream='live' or 'whole'"),
        ({"protocol": "ticket"}, "expected protocol='react', 'chatty' or 'native'"),
        ({"token": "short"}, "32 characters"),
        ({"hosts": "x"}, "hosts"),
        ({"store": "runs.sqlite"}, "a TicketStore"),
        ({"max_violations": -1}, "max_violations"),
    ],
)
def test_wrong_options_are_refused(options, due):
    with pytest.raises(UsageError, match=re.escape(due)):
        gateway(ScriptedModel([]), **options)


def test_wrong_models_are_refused():
    with pytest.raises(UsageError, match="got an empty dict"):
        gateway({})
    with pytest.raises(UsageError, match="expected a callable"):
        gateway({"a": 1})
    with pytest.raises(UsageError, match="expected port"):
        serve(ScriptedModel([]), port=-1)


def test_a_wrapped_model_keeps_its_own_options():
    model = WithTools(ScriptedModel(["no", CALL]), max_violations=0)
    assert chat(model, tools=[WEATHER]).status == 422
    model = WithTools(ScriptedModel(["no", finish("ok")]), max_violations=1)
    assert chat(model, tools=[WEATHER], options={"max_violations": 0}).status == 200
