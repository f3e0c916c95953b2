"""Who says which packages scripts may have."""

import asyncio
import os
import pty
import sys
import time

import pytest

from callslip import PythonRunner, ScriptRefused, UsageError
from callslip.sandbox import _native
from callslip.sandbox._answerers import Screen
from callslip.sandbox._approval import PackageApproval

PYTEST = "# dependencies = ['pytest']\nprint('ran')"
TWO = "# dependencies = ['pytest', 'hypothesis>=6']\nprint('ran')"


def run(runner, how, code):
    return runner.run(code) if how == "run" else asyncio.run(runner.arun(code))


both = pytest.mark.parametrize("how", ["run", "arun"])


@both
@pytest.mark.parametrize("deps", [["pytest", "hypothesis"], ["PyTest", "hypothesis>=6"]])
def test_what_is_approved_may_be_had(external, how, deps):
    assert run(external(deps=deps), how, TWO).stdout == "ran\n"


@both
@pytest.mark.parametrize("deps", [[], ["pytest"], ["pytest", "hypothesis>=7"]])
def test_what_is_not_approved_is_denied_by_name(external, how, deps):
    with pytest.raises(
        ScriptRefused, match="^these packages are not approved: hypothesis>=6"
    ) as caught:
        run(external(deps=deps), how, TWO)
    assert caught.value.code == "dependency_denied"


@both
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_function_decides(external, how, kind):
    asked = []

    def decide(requirements):
        asked.append(requirements)
        return requirements == ["pytest"]

    async def decide_async(requirements):
        await asyncio.sleep(0)
        return decide(requirements)

    runner = external(deps=decide if kind == "sync" else decide_async)
    assert run(runner, how, PYTEST).stdout == "ran\n"
    with pytest.raises(ScriptRefused):
        run(runner, how, TWO)
    assert [sorted(names) for names in asked] == [["pytest"], ["hypothesis>=6", "pytest"]]


@both
def test_a_function_that_says_neither_is_a_mistake(external, how):
    words = r"^expected deps\(requirements\) to return True or False: got 'yes'$"
    with pytest.raises(UsageError, match=words):
        run(external(deps=lambda _: "yes"), how, PYTEST)


@both
def test_where_nobody_can_be_asked_packages_are_denied(external, how, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ScriptRefused) as caught:
        run(external(), how, PYTEST)
    assert caught.value.code == "dependency_denied"
    assert str(caught.value) == "these packages are not approved: pytest; do without them"


@pytest.fixture
def terminal(monkeypatch):
    keyboard, line = pty.openpty()
    with os.fdopen(line, "r") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield keyboard
    os.close(keyboard)


def typed_later(keyboard, text, monkeypatch):
    """Type once the question is shown."""
    write = Screen.write

    def write_and_type(self, shown, **more):
        write(self, shown, **more)
        if shown.startswith("[callslip]"):
            os.write(keyboard, text)

    monkeypatch.setattr(Screen, "write", write_and_type)


@both
def test_what_was_typed_before_the_question_approves_nothing(external, how, terminal, monkeypatch):
    os.write(terminal, b"y\ny\n")
    typed_later(terminal, b"n\n", monkeypatch)
    with pytest.raises(ScriptRefused, match="^these packages are not approved: pytest"):
        run(external(), how, PYTEST)


@both
def test_a_person_is_asked_once(external, how, terminal, capsys, monkeypatch):
    typed_later(terminal, b"y\n", monkeypatch)
    runner = external()
    assert run(runner, how, PYTEST).stdout == "ran\n"
    assert run(runner, how, PYTEST).stdout == "ran\n"
    assert capsys.readouterr().out == (
        "[callslip] a script of the model wants to install pytest: may it? [y/N] "
    )


@both
@pytest.mark.parametrize("typed", [b"\n", b"no\n", b"\x04"])
def test_only_a_yes_is_one(external, how, typed, terminal, monkeypatch):
    typed_later(terminal, typed, monkeypatch)
    with pytest.raises(ScriptRefused) as caught:
        run(external(), how, PYTEST)
    assert caught.value.code == "dependency_denied"


def test_a_script_without_packages_asks_nobody(external):
    def decide(requirements):
        raise AssertionError(requirements)

    assert external(deps=decide).run("print(1)").ok


@pytest.mark.parametrize(
    ("deps", "requirement", "is_approved"),
    [
        (["six"], "six[evil]", False),
        (["six"], "six[evil]>=1", False),
        (["six[evil]"], "six[evil]", True),
        (["six"], "six>=1", True),
    ],
)
def test_a_name_approves_none_of_its_extras(deps, requirement, is_approved):
    assert PackageApproval(deps).unapproved([requirement], ["six"]) == (
        [] if is_approved else [requirement]
    )


@both
def test_closing_a_runner_ends_an_approval(external, how):
    async def never(_):
        runner.close()
        await asyncio.sleep(60)

    runner = external(deps=never)
    assert run(runner, how, PYTEST).status == "cancelled"


@both
def test_closing_a_session_ends_an_installation(how, tmp_path, monkeypatch):
    uv = tmp_path / "uv"
    uv.write_text("#!/bin/sh\necho 'Resolved 1 package' >&2\nexec sleep 60\n")
    uv.chmod(0o755)
    monkeypatch.setattr(_native, "find_uv", lambda: str(uv))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    runner = PythonRunner(deps=["six"], on_event=lambda _: session.close())
    session = runner.session()
    code = "# dependencies = ['six']"
    begun = time.monotonic()
    result = session.run(code) if how == "run" else asyncio.run(session.arun(code))
    assert (result.status, result.exit_code) == ("cancelled", None)
    assert time.monotonic() - begun < 40
