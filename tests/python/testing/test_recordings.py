"""Recorded replies, seen by the tests of an application."""

import asyncio
import json
import subprocess
import sys
import textwrap

import pytest

import callslip.agent
import callslip.testing._recorded_model
import callslip.testing._recording

pytest_plugins = ["pytester"]

# By its own name, whether or not the entry point of the package is installed.
PLUGIN = ("-p", "no:callslip", "-p", "callslip.testing._plugin", "-p", "no:cacheprovider")

APP = """
    from callslip import Agent, ScriptedModel, tool

    @tool
    def weather(city: str) -> str:
        "Tell the weather."
        return "4 degrees"

    def make(model, task="How is Oslo?", **options):
        return Agent(model, protocol="react", tools=[weather], **options).run_sync(task)
"""
TEST = """
    from app import make
    from callslip import ScriptedModel
    from callslip.testing import Say

    def script(size=None):
        say = Say("react")
        return ScriptedModel([say.call("weather", city="Oslo"), say.finish("4")], chunk_size=size)

    def test_it(recorded):
        assert make(recorded(script())).value == "4"
"""


@pytest.fixture
def project(pytester, monkeypatch):
    # The plugins of client libraries take long to load.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("CALLSLIP_RECORD", raising=False)
    pytester.makepyfile(app=APP, test_app=TEST)
    pytester.syspathinsert()
    return pytester


def run(project, *options):
    return project.runpytest_inprocess(*PLUGIN, *options)


def recording(project, name="test_it"):
    return project.path / "replies" / "test_app" / f"{name}.json"


def never_called(project):
    """The same test with a model that fails if it is called."""
    calls = "def refuse(messages):\n        raise RuntimeError('called')\n"
    text = TEST.replace("def script", f"{calls}\n    def script").replace("script())", "refuse)")
    project.makepyfile(test_app=text)


def test_a_recording_is_replayed_without_its_model(project):
    run(project, "--callslip=record").assert_outcomes(passed=1)
    never_called(project)

    run(project).assert_outcomes(passed=1)


def test_the_file_holds_each_message_once(project):
    run(project, "--callslip=record").assert_outcomes(passed=1)

    data = json.loads(recording(project).read_text())
    assert data["callslip-replies"] == 1
    first, second = data["calls"]
    assert second["asked"][: len(first["asked"])] == first["asked"]
    assert json.loads("\n".join(second["text"]))["final_answer"] == "4"
    assert {key for call in data["calls"] for _, key in call["asked"]} == set(data["messages"])


def test_a_changed_prompt_fails_with_the_difference_and_the_command(project):
    run(project, "--callslip=record").assert_outcomes(passed=1)
    project.makepyfile(app=APP.replace("Tell the weather", "Measure the weather"))
    never_called(project)

    result = run_apart(project)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*-weather(city: str)  # Tell the weather.",
            "*+weather(city: str)  # Measure the weather.",
            "*call pytest test_app.py::test_it --callslip=rewrite to record anew*",
        ]
    )


def run_apart(project, *options):
    """In a process of its own: a changed module is imported anew."""
    return project.runpytest_subprocess(*PLUGIN, *options, timeout=200)


def test_a_missing_recording_fails(project):
    result = run(project)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*expected recorded replies: got no test_it.json*"])


def test_a_failure_that_a_test_hides_is_raised_at_its_end(project):
    hiding = "try:\n            make(recorded(script()))\n        except Exception: pass"
    project.makepyfile(
        test_app=TEST.replace('assert make(recorded(script())).value == "4"', hiding)
    )

    result = run(project)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*NotRecorded: expected recorded replies*"])


def test_a_reply_that_is_left_over_fails(project):
    run(project, "--callslip=record").assert_outcomes(passed=1)
    project.makepyfile(test_app="def test_it(recorded): recorded()")

    result = run(project)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*got replies left over*"])


def test_a_test_that_fails_records_nothing(project):
    project.makepyfile(test_app=TEST.replace('== "4"', '== "5"'))

    run(project, "--callslip=record").assert_outcomes(failed=1)

    assert not recording(project).exists()


def test_rewrite_forgets_what_was_recorded(project):
    run(project, "--callslip=record").assert_outcomes(passed=1)
    project.makepyfile(
        test_app=TEST.replace('finish("4")', 'finish("5")').replace('== "4"', '== "5"')
    )

    run(project, "--callslip=rewrite").assert_outcomes(passed=1)

    assert len(json.loads(recording(project).read_text())["calls"]) == 2
    assert '\\"5\\"' in recording(project).read_text()


def test_ci_records_nothing_unless_it_is_asked_to(project, monkeypatch):
    monkeypatch.setenv("CI", "true")

    refused = run(project, "--callslip=record")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    assert not recording(project).exists()
    monkeypatch.setenv("CALLSLIP_RECORD", "1")

    run(project, "--callslip=record").assert_outcomes(passed=1)


def test_off_calls_the_model(project):
    run(project, "--callslip=off").assert_outcomes(passed=1)

    assert not recording(project).exists()


def test_a_stream_that_was_stopped_is_cut(project):
    talking = TEST.replace('say.finish("4")]', 'say.finish("4") + " and so on" * 9]')
    project.makepyfile(test_app=talking.replace("script()", "script(4)"))
    run(project, "--callslip=record").assert_outcomes(passed=1)

    calls = json.loads(recording(project).read_text())["calls"]
    assert calls[1]["cut"]
    assert "and so on and so on" not in "\n".join(calls[1]["text"])
    run(project).assert_outcomes(passed=1)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_stream_is_replayed_as_a_stream(project, is_async):
    stream = f"""
        from callslip import Agent, Delta, ScriptedModel
        from callslip.testing import Say

        def test_it(recorded):
            script = [Say("react").finish("four degrees") + "\\n"]
            model = ScriptedModel(script, chunk_size=4, is_async={is_async})
            agent = Agent(recorded(model), protocol="react")
            with agent.stream_sync("How warm is it?") as stream:
                text = "".join(one.text for one in stream if isinstance(one, Delta.Answer))
            assert text == "four degrees"
            assert [one.streamed for one in stream.run.log if one.kind == "model_replied"] == [True]
        """
    project.makepyfile(test_app=stream)
    run(project, "--callslip=record").assert_outcomes(passed=1)
    run(project).assert_outcomes(passed=1)


def test_the_conversation_may_be_compared_alone(project):
    run(project, "--callslip=record").assert_outcomes(passed=1)
    project.makeini("[pytest]\ncallslip_match = conversation")
    project.makepyfile(app=APP.replace("**options)", "instructions='Be brief.')"))

    result = run_apart(project)

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*replayed under another system message*", "test_app.py::test_it"])


SMALL = """
    from app import make
    from callslip import ScriptedModel
    from callslip.testing import Say

    class Small(ScriptedModel):
        needs_examples = True
        value_level = "strict"

    def test_it(recorded):
        say = Say("react")
        script = [say.call("weather", city="Oslo"), say.finish("4")]
        model = recorded(Small(script))
        assert len(make(model).messages) > 6
        assert (model.needs_examples, model.value_level) == (True, "strict")
"""


def test_a_replay_shows_what_the_recorded_model_asks_for(project):
    project.makepyfile(test_app=SMALL)
    run(project, "--callslip=record").assert_outcomes(passed=1)
    project.makepyfile(test_app=SMALL.replace("Small(script)", ""))

    run_apart(project).assert_outcomes(passed=1)


def test_a_recording_that_says_nothing_is_replayed_as_it_was_made(project):
    text = SMALL.replace('        value_level = "strict"\n', "").replace('"strict")', "None)")
    project.makepyfile(test_app=text)
    run(project, "--callslip=record").assert_outcomes(passed=1)
    made = json.loads(recording(project).read_text())
    del made["asks_for"]
    recording(project).write_text(json.dumps(made))
    project.makepyfile(test_app=text.replace("Small(script)", ""))

    run_apart(project).assert_outcomes(passed=1)


def test_secrets_are_not_written(project, monkeypatch):
    monkeypatch.setenv("SHOP_API_KEY", "tulip-4711-x")
    known = "sk-" + "a" * 24
    task = f"Use tulip-4711-x, {known} and order 77"
    project.makepyfile(test_app=TEST.replace("script())", f'script()), "{task}"'))
    project.makeini("[pytest]\ncallslip_redact = order \\d+")

    run(project, "--callslip=record").assert_outcomes(passed=1)

    text = recording(project).read_text()
    assert "tulip" not in text
    assert known not in text
    assert "order 77" not in text
    assert "[SHOP_API_KEY]" in text
    run(project).assert_outcomes(passed=1)


def test_what_varies_is_scrubbed_on_both_sides(project):
    varying = TEST.replace("script())", "script()), str(__import__('uuid').uuid4())")
    project.makepyfile(test_app=varying)
    project.makeini("[pytest]\ncallslip_scrub = [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12} => ID")
    run(project, "--callslip=record").assert_outcomes(passed=1)

    run(project).assert_outcomes(passed=1)


def test_tests_in_parallel_have_a_file_each(project):
    text = TEST.replace(
        "def test_it(recorded)",
        "@pytest.mark.parametrize('at', ['a/b', 'a b', 'c' * 99])\n    def test_it(recorded, at)",
    )
    project.makepyfile(test_app="import pytest\n" + textwrap.dedent(text))
    run_apart(project, "-p", "xdist", "-n", "2", "--callslip=record").assert_outcomes(passed=3)

    assert len(list(recording(project).parent.iterdir())) == 3
    run_apart(project, "-p", "xdist", "-n", "2").assert_outcomes(passed=3)


def test_a_path_in_the_name_of_a_test_is_no_folder(project):
    text = TEST.replace(
        "def test_it(recorded)",
        "@pytest.mark.parametrize('at', ['a/b', 'a_b', '../../../c'])\n"
        "    def test_it(recorded, at)",
    )
    project.makepyfile(test_app="import pytest\n" + textwrap.dedent(text))
    run(project, "--callslip=record").assert_outcomes(passed=3)

    written = list(project.path.rglob("test_it*"))
    assert {path.parent for path in written} == {recording(project).parent}
    assert len(written) == 3
    run(project).assert_outcomes(passed=3)


def make_recording(path, mode):
    return callslip.testing._recording.Recording(path / "test_it", node="t.py::test_it", mode=mode)


class RateLimitError(Exception):
    status_code = 429
    headers = {"Retry-After": "2"}  # noqa: RUF012


def test_an_exception_is_replayed_with_its_status(tmp_path):
    def failing(messages):
        raise RateLimitError("slow down")

    messages = [{"role": "user", "content": "hello"}]
    recording = make_recording(tmp_path, "record")
    with pytest.raises(RateLimitError):
        recording.model(failing)(messages)
    recording.close()

    with pytest.raises(callslip.testing.RecordedError, match="slow down") as caught:
        make_recording(tmp_path, "replay").model()(messages)
    assert caught.value.status_code == 429
    assert caught.value.headers == {"retry-after": "2.0"}
    assert type(caught.value).__name__ == "RateLimitError"


async def later(messages):
    return "yes"


def test_an_async_model_is_recorded(tmp_path):
    messages = [{"role": "user", "content": "hello"}]
    recording = make_recording(tmp_path, "record")
    assert asyncio.run(recording.model(later)(messages)).text == "yes"
    recording.close()

    replayed = make_recording(tmp_path, "replay").model(later)(messages)
    assert asyncio.run(replayed).text == "yes"


def test_a_recording_of_another_version_is_refused(tmp_path):
    (tmp_path / "test_it.json").write_text('{"callslip-replies": 2}')

    with pytest.raises(callslip.UsageError, match="of version 1 in test_it.json: got 2"):
        make_recording(tmp_path, "replay")


def test_the_plugin_loads_nothing_of_callslip_before_a_fixture_is_used():
    program = (
        "import sys, pytest, callslip.testing._plugin; "
        "print(*sorted(name for name in sys.modules if name.startswith('callslip')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=200
    )

    assert done.stdout.split() == [
        "callslip",
        "callslip._core",
        "callslip.testing",
        "callslip.testing._plugin",
    ]
