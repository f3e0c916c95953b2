"""Turns, events and streams show the same narration, thoughts and answers."""

import asyncio
import json

import pytest

from callslip import Agent, Delta, ScriptedModel, TicketStore, replay, tool
from callslip.events import AnswerOffered, Moved, Violated
from scripted import block, delegate, give, patient

THOUGHT = 'So: "7.5",\nperhaps é€😀.'


@tool
def rate(code: str) -> float:
    """Look up a rate."""
    return 7.5


def react(thought, **fields):
    return json.dumps({"thought": thought, **fields})


def ticket(thoughts, **move):
    return f"<thoughts>\n{thoughts}\n</thoughts>\n<output>\n{json.dumps(move)}\n</output>"


def chatty(thoughts, text):
    return f"<think>\n{thoughts}\n</think>\n\n{text}"


def replies(protocol):
    """A refused call, a call and an answer, each with thoughts, and in chatty with narration."""
    scripts = {
        "react": [
            react("Try é.", action="ratee", args={}),
            react(THOUGHT, action="rate", args={"code": "NOK"}),
            react("Done.", action="FINISH", final_answer='It is "7.5".', task_successful=True),
        ],
        "ticket": [
            ticket("Try é.", type="CALL", route="ratee", payload={}, description="d"),
            ticket(THOUGHT, type="CALL", route="rate", payload={"code": "NOK"}, description="d"),
            ticket("Done.", type="RETURN", value='It is "7.5".'),
        ],
        "chatty": [
            chatty("Try é.", "I shall look. " + block(("a", "ratee", {}))),
            chatty(THOUGHT, "I look\nagain. " + block(("b", "rate", {"code": "NOK"}))),
            chatty("Done.", 'It is "7.5".'),
        ],
    }
    return scripts[protocol]


def said(protocol):
    """Thoughts, narration and answer of each turn."""
    narration = ["I shall look.", "I look\nagain.", None]
    return [
        (thoughts, narration[turn] if protocol == "chatty" else None, answer)
        for turn, (thoughts, answer) in enumerate(
            [("Try é.", None), (THOUGHT, None), ("Done.", 'It is "7.5".')]
        )
    ]


def in_events(events):
    return [
        (event.thoughts, event.narration, event.answer)
        for event in events
        if isinstance(event, Moved | Violated)
    ]


def in_turns(trace):
    return [(turn.thoughts, turn.narration, turn.answer) for turn in trace.turns]


def started(protocol, chunk_size, store, **options):
    model = ScriptedModel(replies(protocol), chunk_size=chunk_size)
    return Agent(model, tools=[rate], protocol=patient(protocol), store=store, **options)


@pytest.mark.parametrize("chunk_size", [None, 3])
@pytest.mark.parametrize("protocol", ["react", "chatty", "ticket"])
def test_turns_and_events_have_what_the_model_said(protocol, chunk_size, tmp_path):
    with TicketStore(tmp_path / "runs.sqlite") as store:
        run = started(protocol, chunk_size, store).run_sync("convert").run
        live, events, exported = run.trace(), run.log, run.export()
    expected = said(protocol)
    assert in_turns(live) == expected
    assert in_events(events) == expected
    with TicketStore(tmp_path / "runs.sqlite") as store:
        again = store.run(run.id)
        assert again.trace() == live
        assert in_events(again.events(after=events[1].seq)) == expected
    replayed = replay(exported)
    assert in_turns(replayed.trace()) == expected
    assert replayed.export() == exported
    # Reasoning in chatty is no repair.
    assert {code for turn in live.turns for code in turn.repairs} <= {"args_object"}


@pytest.mark.parametrize("chunk_size", [1, 1000])
@pytest.mark.parametrize("protocol", ["react", "chatty", "ticket"])
def test_a_stream_shows_the_texts_of_the_log(protocol, chunk_size):
    async def streamed():
        shown = {}
        async with started(protocol, chunk_size, None).stream("convert") as run:
            async for item in run:
                if isinstance(item, Delta.Thoughts | Delta.Text | Delta.Answer):
                    key = (item.turn, type(item).__name__)
                    shown[key] = shown.get(key, "") + item.text
            return shown, in_events(run.run.log)

    shown, events = asyncio.run(streamed())
    for turn, (thoughts, narration, answer) in enumerate(events, 1):
        assert shown.get((turn, "Thoughts")) == thoughts
        text = shown.get((turn, "Text")) or shown.get((turn, "Answer"))
        # The end of an answer may be held back until the reply is known to be whole.
        assert (narration or answer or "").startswith(text or "")
        assert bool(text) == bool(narration or answer)


@pytest.mark.parametrize("protocol", ["react", "chatty", "ticket"])
def test_a_checked_answer_keeps_its_texts(protocol):
    def check(answer, context):
        return None

    result = started(protocol, None, None, check_answer=check).run_sync("convert")
    (offered,) = [event for event in result.run.log if isinstance(event, AnswerOffered)]
    assert (offered.thoughts, offered.narration, offered.answer) == said(protocol)[-1]
    assert in_events(result.run.log) == said(protocol)
    assert in_turns(replay(result.run.export()).trace()) == said(protocol)


def test_a_log_without_these_places_replays():
    run = started("react", None, None).run_sync("convert").run
    older = []
    for line in run.export().splitlines():
        record = json.loads(line)
        ((kind, event),) = record["event"].items()
        if kind in ("moved", "violated"):
            event = {
                name: one for name, one in event.items() if name in ("turn", "move", "violation")
            }
        older.append(json.dumps({**record, "event": {kind: event}}))
    replayed = replay("\n".join(older))
    assert in_turns(replayed.trace()) == [(None, None, None)] * 2 + [(None, None, 'It is "7.5".')]


def test_a_page_says_nothing_of_a_reply_with_a_secret():
    secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    script = [
        react(f"My half is {secret}.", action="rate", args={"code": "NOK"}),
        react("Plain.", action="FINISH", final_answer="done", task_successful=True),
    ]
    page = Agent(ScriptedModel(script), tools=[rate]).run_sync("convert").run.to_html()
    assert "My half" not in page.split("<h4>Reply</h4>")[0]
    assert "sk-proj-abcdef" not in page
    assert "Plain." in page


def test_a_cancelled_child_run_is_a_cancelled_ticket():
    def reply(messages):
        if "part" in messages[-1]["content"] and len(messages) == 2:
            raise AssertionError
        return give("whole") if "T1" in messages[-1]["content"] else delegate("do part")

    async def cancelled():
        asked = asyncio.Event()

        async def model(messages):
            if "part" in messages[-1]["content"] and len(messages) == 2:
                asked.set()
                await asyncio.Event().wait()
            return reply(messages)

        run = Agent(model, protocol=patient("ticket")).start("all")
        await asked.wait()
        run.children[0].cancel()
        return (await run).run

    run = asyncio.run(cancelled())
    (delegated,) = run.tickets
    assert (delegated.outcome, run.stop_reason) == ("cancelled", "finished")
    assert "RunCancelled" in delegated.error
    (shown,) = run.trace().tickets
    assert shown.outcome == "cancelled"
    assert [ticket.outcome for ticket in replay(run.export()).tickets] == ["cancelled"]
