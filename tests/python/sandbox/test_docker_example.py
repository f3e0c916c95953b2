"""The example with Docker, without Docker: tests have no engine.

A program named `docker` takes its place. It starts what would run in the container, here and
without any wall, so what is tested is the command line and what both sides say to each other.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from callslip import Agent, ScriptedModel, ScriptLimits
from scripted import act, finish

EXAMPLE = Path(__file__).parents[3] / "examples" / "docker_runner.py"

DOCKER = """#!{python}
import json, os, sys
arguments = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(json.dumps(arguments) + "\\n")
source, target, mode = arguments[arguments.index("--volume") + 1].rsplit(":", 2)
command = arguments[arguments.index("an-image") + 1 :]
assert command[0] == "python" and mode == "ro"
# By its whole path, from which it knows itself: there need be no `python` here.
os.execv({python!r}, [{python!r}, *[source if part == target else part for part in command[1:]]])
"""


@pytest.fixture
def example(tmp_path, monkeypatch):
    docker = tmp_path / "docker"
    docker.write_text(DOCKER.format(python=sys.executable, log=str(tmp_path / "log")))
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    spec = importlib.util.spec_from_file_location("docker_runner", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_script_runs_as_in_a_container(example):
    with example.docker_runner("an-image") as runner:
        assert runner.run("print(6 * 7)").stdout == "42\n"


def test_a_session_is_one_container(example, tmp_path):
    with example.docker_runner("an-image") as runner, runner.session() as session:
        session.run("open('f', 'w').write('x')")
        assert session.run("print(open('f').read())").stdout == "x\n"
    assert len((tmp_path / "log").read_text().splitlines()) == 1


def test_an_agent_may_have_it(example):
    with example.docker_runner("an-image") as runner:
        model = ScriptedModel([act("execute_python_code", code="print(1)"), finish("done")])
        agent = Agent(model, protocol="react", python=runner)
        assert "It has no network." in agent.system_prompt
        assert agent.run_sync("x").tickets[0].result["stdout"] == "1\n"


def test_the_container_is_shut_off(example):
    command = example.docker_command("an-image", ScriptLimits())
    joined = " ".join(command)
    for option in (
        "--network none",
        "--read-only",
        "--cap-drop ALL",
        "--security-opt no-new-privileges",
        "--user 65534:65534",
        "--pids-limit 72",
        "--memory 1140850688b",
    ):
        assert option in joined
    assert "--privileged" not in joined
    assert command[-5:] == ["an-image", "python", "-I", "-u", "/serve.py"]


def test_the_example_runs(example):
    done = subprocess.run(
        [sys.executable, EXAMPLE, "--image", "an-image"],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.stderr == ""
    assert done.stdout.startswith("ok 10 in ")
