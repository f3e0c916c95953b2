"""Agents whose models write scripts."""

import asyncio
import json
import os
import sys
import threading
import time
from types import ModuleType, SimpleNamespace

import pytest

from callslip import (
    Agent,
    ChattyProtocol,
    CommandRunner,
    IsolationUnavailable,
    Limits,
    ModelError,
    Progress,
    PythonRunner,
    ReactProtocol,
    Role,
    RunnerLost,
    ScriptedModel,
    ScriptLimits,
    TicketProtocol,
    TicketStore,
    ToolError,
    UsageError,
    tool,
)
from callslip.sandbox import _approval, _native, _native_place
from callslip.sandbox._folders import WorkFolder
from scripted import (
    act,
    asked,
    block,
    call,
    finish,
    give,
    load,
    results_of,
    spawn,
    task_of,
    turn_of,
    wait,
    wait_for,
)

NAME = "execute_python_code"
KEPT = "open('f', 'a').write('x'); print(len(open('f').read()))"
LONG = "import time; print('begun', flush=True); time.sleep(60)"


def replies(protocol, *codes, **more):
    """Replies that run scripts one after the other, and end."""
    said = []
    for number, code in enumerate(codes, 1):
        arguments = {"code": code, **more}
        if protocol == "react":
            said.append(act(NAME, **arguments))
        elif protocol == "chatty":
            said.append(block((f"c{number}", NAME, arguments)))
        else:
            said += [call(f"POST /{NAME}", arguments), wait(f"T{number}"), load(f"T{number}")]
    ending = {"react": finish("done"), "chatty": "done", "ticket": give("done")}
    return [*said, ending[protocol]]


def run(agent, how):
    return agent.run_sync("the task") if how == "run_sync" else asyncio.run(agent.run("the task"))


protocols = pytest.mark.parametrize("protocol", ["ticket", "chatty", "react"])
both = pytest.mark.parametrize("how", ["run_sync", "run"])


@protocols
@both
def test_files_stay_for_the_calls_of_one_run(make, protocol, how, monkeypatch):
    runner = make()
    # A ticket's call may outlast the grace; the model then awaits it.
    kind = TicketProtocol(grace=20) if protocol == "ticket" else protocol
    said = replies(protocol, KEPT, KEPT)
    if protocol == "ticket":
        said = [call(f"POST /{NAME}", {"code": KEPT}), call(f"POST /{NAME}", {"code": KEPT})]
        said += [load("T1"), load("T2"), give("done")]
    for _ in range(2):
        result = run(Agent(ScriptedModel(said), protocol=kind, python=runner), how)
        assert result.value == "done"
        told = [ticket.result for ticket in result.tickets]
        assert [one["stdout"] for one in told] == ["1\n", "2\n"]
        assert set(told[0]) == {
            "status",
            "exit_code",
            "stdout",
            "stderr",
            "duration_s",
            "truncated",
        }
        assert "hints" not in told[1]
    assert len(runner._sessions) == 0


def test_a_session_of_this_machine_ends_with_its_run(monkeypatch, tmp_path):
    if not _native.has_sandbox():
        pytest.skip("this machine can't keep scripts apart")
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    folders = []

    def make():
        folder = WorkFolder()
        folders.append(folder.path)
        return folder

    monkeypatch.setattr(_native_place, "WorkFolder", make)
    agent = Agent(ScriptedModel(replies("react", KEPT, KEPT)), protocol="react", python=True)
    agent.run_sync("x")
    assert len(folders) == 1
    assert not folders[0].exists()
    assert list(tmp_path.iterdir()) == []


@both
def test_a_run_that_fails_ends_its_session(external, how):
    def model(messages):
        if turn_of(messages):
            raise OSError("gone")
        return replies("react", KEPT)[0]

    runner = external()
    with pytest.raises(Exception, match="gone"):
        run(Agent(model, protocol="react", python=runner), how)
    assert len(runner._sessions) == 0


@both
def test_a_refused_script_is_told_with_its_code(make, how):
    said = replies("react", " ")
    result = run(Agent(ScriptedModel(said), protocol="react", python=make()), how)
    assert result.run.tickets[0].outcome == "error"
    assert asked(result.run.messages)[2]["content"].startswith("Observation: bad_code: ")


def test_a_failed_script_is_a_result(make):
    said = replies("react", "print(1)\nraise ValueError('no')")
    result = run(Agent(ScriptedModel(said), protocol="react", python=make()), "run_sync")
    told = result.tickets[0].result
    assert (told["status"], told["exit_code"], told["stdout"]) == ("error", 1, "1\n")
    assert told["stderr"].endswith("ValueError: no\n")


@both
@protocols
def test_what_is_no_fault_of_the_script_reaches_the_developer(how, protocol):
    runner = PythonRunner(backend=CommandRunner(["/no/such"]))
    agent = Agent(ScriptedModel(replies(protocol, KEPT)), protocol=protocol, python=runner)
    with pytest.raises(RunnerLost, match="^the runner '/no/such' can't be started") as caught:
        run(agent, how)
    assert caught.value.run.stop_reason == "cancelled"
    assert caught.value.run.tickets[0].tool == NAME


@both
@protocols
@pytest.mark.parametrize("fault", ["on_event", "ask", "deps", "closed"])
def test_a_fault_of_the_program_reaches_the_developer(external, how, protocol, fault):
    def broken(_):
        raise KeyError(fault)

    runner = external(**({} if fault == "closed" else {fault: broken}))
    if fault == "closed":
        runner.close()
    code = "# dependencies = ['pytest']\ninput()" if fault == "deps" else "input()"
    said = replies(protocol, code, **({"interactive": True} if fault == "ask" else {}))
    kind = UsageError if fault == "closed" else KeyError
    with pytest.raises(kind, match=fault):
        run(Agent(ScriptedModel(said), protocol=protocol, python=runner), how)


@both
def test_a_model_is_told_that_the_files_of_a_resumed_run_are_gone(external, how, tmp_path):
    codes = (KEPT, "print(2)", "print(3)")

    def interrupted(messages):
        if turn_of(messages) == 1:
            raise OSError("gone")
        return replies("react", *codes)[turn_of(messages)]

    path = tmp_path / "runs.db"
    with TicketStore(path) as store:
        agent = Agent(interrupted, protocol="react", python=external(), store=store)
        with pytest.raises(ModelError) as caught:
            run(agent, how)
        agent = Agent(
            lambda messages: replies("react", *codes)[turn_of(messages)],
            protocol="react",
            python=external(),
            store=store,
        )
        result = agent.resume_sync(caught.value.run.id)
    hints = [ticket.result.get("hints", []) for ticket in result.tickets]
    assert hints == [[], ["this run was resumed: files that earlier calls left are gone"], []]


@both
def test_so_it_does_from_calls_side_by_side_and_from_runs_below(how):
    runner = PythonRunner(backend=CommandRunner(["/no/such"]))
    calls = block(("a", NAME, {"code": KEPT}), ("b", NAME, {"code": KEPT}))
    with pytest.raises(RunnerLost):
        run(Agent(ScriptedModel([calls]), protocol="chatty", python=runner), how)

    def team(messages):
        if task_of(messages).startswith("Your role"):
            return calls
        return block(spawn("s", "work"), wait_for("$s"))

    with pytest.raises(RunnerLost):
        run(Agent(team, protocol="chatty", python=runner, delegate=True), how)


@both
def test_an_interactive_script_is_answered_where_the_run_is(make, how):
    threads = []

    def ask(request):
        threads.append(threading.current_thread())
        return "Ann"

    code = "name = input('Name? ')\nprint('Hello', name)"
    said = replies("react", code, interactive=True)
    result = run(Agent(ScriptedModel(said), protocol="react", python=make(ask=ask)), how)
    assert result.tickets[0].result == {"status": "session ended", "exit_code": 0}
    assert len(threads) == 1
    if how == "run_sync":
        assert threads == [threading.main_thread()]
    assert "Ann" not in "".join(map(str, result.run.messages))


def test_an_interactive_script_that_fails_is_told_without_its_output(make):
    said = replies("react", "input()\nraise ValueError('secret')", interactive=True)
    agent = Agent(ScriptedModel(said), protocol="react", python=make(ask=lambda _: ""))
    assert agent.run_sync("x").tickets[0].result == {"status": "session failed", "exit_code": 1}


class Kernel:
    _allow_stdin = True

    def __init__(self):
        self.threads = []

    def raw_input(self, prompt):
        self.threads.append(threading.current_thread())
        return "Ann"


@pytest.fixture
def kernel(monkeypatch):
    kernel = Kernel()
    ipython = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=kernel)
    display = ModuleType("IPython.display")
    kernel.shown = []
    display.display = kernel.shown.append
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    return kernel


@both
@pytest.mark.parametrize("limits", [None, Limits(seconds=60)])
def test_a_notebook_is_asked_by_its_own_thread_in_any_case(make, how, limits, kernel):
    calls = [(name, NAME, {"code": "print(input())", "interactive": True}) for name in "ab"]
    agent = Agent(
        ScriptedModel([block(*calls), "done"]), protocol="chatty", python=make(), limits=limits
    )
    result = run(agent, how)
    assert [ticket.result["status"] for ticket in result.tickets] == ["session ended"] * 2
    assert kernel.threads == [threading.main_thread()] * 2


def test_a_notebook_shows_images_as_they_come(make, kernel):
    code = (
        "import os; os.mkdir('out')\nfor n in ('a.png', 'b.txt'): open('out/' + n, 'w').write('x')"
    )
    agent = Agent(ScriptedModel(replies("react", code)), protocol="react", python=make())
    told = agent.run_sync("x").tickets[0].result
    assert sorted(one["path"] for one in told["artifacts"]) == ["a.png", "b.txt"]
    assert [one.path for one in kernel.shown] == ["a.png"]


def test_who_watches_a_run_sees_its_scripts(make):
    async def main():
        agent = Agent(
            ScriptedModel(replies("react", "print('working')")), protocol="react", python=make()
        )
        async with agent.stream("x") as stream:
            return [event async for event in stream if isinstance(event, Progress)]

    seen = asyncio.run(main())
    assert {(one.tool, one.total) for one in seen} == {(NAME, 60.0)}
    words = [one.message for one in seen]
    assert words[0].startswith("started (")
    assert words[1:] == ["working\n", "ended: ok"]


def begun_file(tmp_path):
    return tmp_path / "begun"


@pytest.mark.parametrize("calls", [1, 2])
def test_cancelling_a_run_ends_its_scripts(make, calls):
    begun = []
    runner = make(on_event=lambda event: begun.append(event) if event.kind == "stdout" else None)
    rows = [(f"c{n}", NAME, {"code": LONG}) for n in range(calls)]
    agent = Agent(ScriptedModel([block(*rows)]), protocol="chatty", python=runner)

    async def main():
        task = asyncio.create_task(agent.run("x"))
        while not begun:
            await asyncio.sleep(0.01)
        since = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.monotonic() - since

    assert asyncio.run(main()) < 30
    assert len(runner._sessions) == 0


@pytest.mark.parametrize("calls", [1, 2])
def test_ctrl_c_ends_the_scripts_of_a_run(make, calls):
    begun = threading.Event()
    ended = []

    def hear(event):
        if event.kind == "stdout":
            begun.set()
        elif event.kind == "finished":
            ended.append(event.data["status"])

    runner = make(on_event=hear)
    rows = [(f"c{n}", NAME, {"code": LONG}) for n in range(calls)]
    agent = Agent(ScriptedModel([block(*rows)]), protocol="chatty", python=runner)

    def interrupt():
        begun.wait(20)
        os.kill(os.getpid(), 2)

    threading.Thread(target=interrupt).start()
    since = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        agent.run_sync("x")
    until = time.monotonic() + 10
    while len(runner._sessions) and time.monotonic() < until:
        time.sleep(0.02)
    assert len(runner._sessions) == 0
    assert time.monotonic() - since < 40


def test_the_time_limit_of_a_run_ends_its_script(make):
    agent = Agent(
        ScriptedModel([act(NAME, code=LONG), finish("late")]),
        protocol="react",
        python=make(),
        limits=Limits(seconds=1),
    )
    since = time.monotonic()
    result = agent.run_sync("x")
    assert (result.value, result.run.stop_reason) == ("late", "limit")
    assert time.monotonic() - since < 40


def spec_of(agent):
    return agent._setup.toolbox.find(NAME)


def test_the_description_says_what_is_in_force(monkeypatch):
    plain = PythonRunner(deps=[], ask=None, limits=ScriptLimits(wall_seconds=5, artifacts=0))
    assert plain.as_tool().description == (
        f"Run a script of Python {sys.version_info[0]}.{sys.version_info[1]} and get what it "
        "prints. Each call is a new process; files in its working directory stay for later calls. "
        "It has no network and sees no files but its own. It may take 5 seconds, 30 of CPU, 1 GiB "
        "of memory and 64 MiB of files; of long output you see the beginning and the end: 16 KiB "
        "of stdout, 8 KiB of stderr. There is the standard library only: no packages. Nobody "
        "answers input(): interactive must be false."
    )
    free = PythonRunner(profile="unconfined", deps=["numpy", "pandas>=2"]).as_tool().description
    assert "network" not in free
    assert "only these: numpy, pandas>=2." in free
    assert "set interactive to true" in free
    assert "out/" in free
    far = PythonRunner(backend=CommandRunner(["x"], about="It has no network.")).as_tool()
    assert "It has no network. It may" in far.description
    # Where nobody is there to be asked, nothing may be declared.
    monkeypatch.setattr(_approval, "find_person", lambda: None)
    assert (
        "There is the standard library only: no packages." in PythonRunner().as_tool().description
    )
    monkeypatch.setattr(_approval, "find_person", object)
    asks = PythonRunner().as_tool().description
    assert "others than the standard library's have to be approved" in asks


def test_only_a_box_makes_scripts_safe_to_repeat():
    effects = {
        runner.as_tool().effect: name
        for name, runner in {
            "auto": PythonRunner(),
            "open": PythonRunner(profile="unconfined"),
        }.items()
    }
    assert effects == {"idempotent": "auto", "once": "open"}
    assert PythonRunner(backend=CommandRunner(["x"])).as_tool().effect == "once"


def test_the_tool_is_called_by_hand_too(external):
    one = external().as_tool(name="python", description="Run it.", needs_approval=True)
    assert (one.name, one.description, one.needs_approval) == ("python", "Run it.", True)
    assert one("print(1)")["stdout"] == "1\n"
    spec = json.loads(one._spec())
    assert spec["kind"] == "script"
    assert spec["parameters"]["required"] == ["code"]


@pytest.fixture
def box(monkeypatch):
    """Says whether this machine has a box."""

    def say(there):
        why = {"stage": "landlock", "errno": 38, "message": "it is not there", "remedy": "a kernel"}
        found = {"isolated": None if there else why, "restricted": None if there else why}
        monkeypatch.setattr(_native, "probe_profiles", lambda: found)

    return say


def offers(agent):
    return NAME in agent.system_prompt


@protocols
def test_by_itself_it_is_not_offered(box, protocol):
    box(True)
    assert not offers(Agent(ScriptedModel([]), protocol=protocol))
    assert not offers(Agent(ScriptedModel([]), protocol=protocol, python=False))


@protocols
def test_it_is_offered_where_it_is_asked_for(box, protocol):
    box(True)
    model = ScriptedModel([])
    assert offers(Agent(model, protocol=protocol, python=True))
    assert offers(Agent(model, protocol=protocol, python=PythonRunner(profile="unconfined")))
    box(False)
    with pytest.raises(IsolationUnavailable) as caught:
        Agent(model, protocol=protocol, python=True)
    assert str(caught.value) == (
        "scripts can't be kept apart here: landlock: it is not there; a kernel"
    )
    assert (caught.value.stage, caught.value.errno, caught.value.remedy) == (
        "landlock",
        38,
        "a kernel",
    )


def test_a_tool_of_that_name_stays_the_programs_own(box):
    box(True)

    @tool
    def execute_python_code(code: str) -> str:
        """Mine."""
        return code

    agent = Agent(ScriptedModel([]), protocol="chatty", tools=[execute_python_code])
    assert agent.python is None
    assert "Mine." in agent.system_prompt
    with pytest.raises(ToolError, match=f"'{NAME}' is one of the runtime's own: use tool"):
        Agent(ScriptedModel([]), protocol="chatty", tools=[execute_python_code], python=True)


def test_one_tool_for_scripts_is_enough(box):
    box(True)
    own = PythonRunner().as_tool(name="python")
    agent = Agent(ScriptedModel([]), protocol="chatty", tools=[own])
    assert agent.python is None
    assert NAME not in agent.system_prompt
    assert "`python` runs Python" in agent.system_prompt


def test_what_is_no_runner_is_refused():
    with pytest.raises(
        UsageError,
        match="^expected python=True, False or a PythonRunner: got str; pass PythonRunner",
    ):
        Agent(ScriptedModel([]), python="3.12")


def test_agents_of_a_role_have_it_too(box, external):
    box(True)
    runner = external()
    agent = Agent(
        ScriptedModel([]),
        protocol="chatty",
        python=runner,
        roles={"Coder": Role(limits=Limits(turns=3)), "Talker": Role(protocol="react")},
    )
    assert agent._for_role("Coder").python is runner
    assert agent._for_role("Talker").python is runner
    off = Agent(ScriptedModel([]), protocol="chatty", python=False, roles={"Coder": Role()})
    assert off._for_role("Coder").python is None


def test_agents_below_have_sessions_of_their_own(external):
    calls = block(("c", NAME, {"code": KEPT}))

    def team(messages):
        if task_of(messages).startswith("Your role"):
            return calls if turn_of(messages) == 0 else str(results_of(messages[-1])["c"]["stdout"])
        rows = [spawn("s", "one"), spawn("t", "two"), wait_for("$s", "$t")]
        return block(*rows) if turn_of(messages) == 0 else "done"

    result = Agent(team, protocol="chatty", python=external(), delegate=True).run_sync("x")
    assert [row["result"] for row in result.tickets[2].result] == ["1", "1"]


def test_the_prompt_of_chatty_has_a_section_of_its_own(box):
    box(True)
    prompt = Agent(ScriptedModel([]), protocol="chatty", python=True).system_prompt
    assert f"`{NAME}` runs Python where no other tool will do" in prompt
    named = PythonRunner().as_tool(name="python")
    tagged = ChattyProtocol(tool_tag="call")
    prompt = tagged.system_prompt([named])
    assert '<call>\n[{"call_id": "sum", "tool_name": "python", "arguments"' in prompt
    assert NAME not in prompt
    assert tagged.lint([named]) == []
    assert "`python` runs Python" not in ReactProtocol().system_prompt([named])
