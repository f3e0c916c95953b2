"""Options of runners and scripts that have a wrong type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from callslip import Limits, UsageError
from callslip.sandbox import Artifact, CommandRunner, PythonRunner


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"limits": Limits()}, "expected limits=ScriptLimits(…) or None: got Limits("),
        ({"limits": 0}, "expected limits=ScriptLimits(…) or None: got 0"),
        ({"python": 3}, "expected python=a path or None: got 3"),
        ({"artifacts": 3}, "expected artifacts=a path or None: got 3"),
        ({"files": 3}, "expected files as a folder, a URL such as"),
        ({"index": 3}, "expected index to be text: got 3"),
        ({"profile": ["auto"]}, "expected profile='auto' or"),
        ({"ask": lambda: "yes"}, "expected ask to take the question: got a function that can't"),
        ({"on_event": lambda: None}, "expected on_event to take the event: got a function that"),
        ({"deps": lambda: True}, "expected deps to take the list of requirements: got a function"),
    ],
)
def test_of_a_runner(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        PythonRunner(**options)
    assert str(caught.value).startswith(words)


@pytest.mark.parametrize(
    ("command", "options", "words"),
    [
        (3, {}, "expected the command as a list, ['docker', 'run', …]: got 3"),
        ([3], {}, "expected the command as a list, ['docker', 'run', …]: got [3]"),
        ({"docker"}, {}, "expected the command as a list, ['docker', 'run', …]: got {'docker'}"),
        (["true"], {"about": 3}, "expected about to be text: got 3"),
        (["true"], {"env": 3}, "expected env as a dict of texts: got int"),
        (["true"], {"env": {"A": 3}}, "expected env['A'] to be text: got int"),
        (["true"], {"start_seconds": "x"}, "expected start_seconds to be a number of seconds"),
    ],
)
def test_of_a_command(command: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        CommandRunner(command, **options)
    assert str(caught.value).startswith(words)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"interactive": 1}, "expected interactive=True or False: got 1"),
        ({"interactive": True, "answers": 3}, "expected answers as a list of texts: got 3"),
        ({"interactive": True, "answers": [3]}, "expected answers as a list of texts: got [3]"),
        (
            {"interactive": True, "answers": "ab"},
            "expected answers as a list of texts: got 'ab': pass ['ab']",
        ),
    ],
)
def test_of_a_script(options: dict[str, Any], words: str) -> None:
    with PythonRunner() as runner, pytest.raises(UsageError) as caught:
        runner.run("print(1)", **options)
    assert str(caught.value) == words


def test_of_the_files_of_runs(tmp_path: Path) -> None:
    runner = PythonRunner(files=tmp_path)
    with pytest.raises(UsageError, match=r"^expected run=a Run, such as result\.run: got 3$"):
        runner.save_files(3, tmp_path)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="^expected the id of a run to be text: got 3$"):
        runner.delete_files(3)  # type: ignore[arg-type]
    file = Artifact(path="a", size=0, sha256="", mime="text/plain", file=tmp_path)
    with pytest.raises(UsageError, match="^expected directory=a path: got 3$"):
        file.save(3)  # type: ignore[arg-type]


def test_of_a_tool_for_scripts() -> None:
    runner = PythonRunner()
    with pytest.raises(UsageError, match="^expected name to be text: got 3$"):
        runner.as_tool(name=3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="^expected needs_approval to be True or False"):
        runner.as_tool(needs_approval="x")  # type: ignore[arg-type]
