"""Runs as server-sent events: nothing is lost or doubled, and there is an end."""

import asyncio
import gc
import json
import weakref

import pytest
from starlette.requests import Request
from starlette.responses import StreamingResponse

from callslip import (
    Agent,
    FunctionModel,
    ScriptedModel,
    StoreError,
    TicketStore,
    UsageError,
    Waiting,
    tool,
)
from callslip.runs._watch import RunWatch
from callslip.web import event_response, event_stream
from scripted import act, delegate, finish, give, wait


@tool(needs_approval=True)
def pay(invoice: int) -> str:
    """Pay."""
    return f"paid {invoice}"


def agent_of(store, *replies):
    script = replies or (act("pay", invoice=7), finish("paid"))
    return Agent(ScriptedModel(script, chunk_size=5), tools=[pay], store=store, name="bank")


def read(chunks):
    """The messages of a stream, each as `(id, data)`; `None` for an id that is not sent."""
    found = []
    for message in b"".join(chunks).decode().split("\n\n"):
        fields = dict(line.partition(": ")[::2] for line in message.split("\n"))
        if "data" in fields:
            data = json.loads(fields["data"], parse_constant=pytest.fail)
            assert data["kind"] == fields["event"]
            found.append((int(fields["id"]) if "id" in fields else None, data))
    return found


async def all_of(stream):
    return read([chunk async for chunk in stream])


def request(*, method="GET", query="", last=None):
    headers = [] if last is None else [(b"last-event-id", last.encode())]
    scope = {"type": "http", "method": method, "path": "/", "headers": headers}
    return Request(scope | {"query_string": query.encode()})


async def waits(run):
    async for item in run.watch():
        if isinstance(item, Waiting):
            return


def test_a_client_that_connects_again_anywhere_gets_the_rest_once(store):
    async def live():
        run = agent_of(store).start("Pay.")
        first = asyncio.create_task(all_of(event_stream(run)))
        await waits(run)
        run.approve("T1")
        await run
        return run.id, await first

    run_id, seen = asyncio.run(live())
    run = store.run(run_id)
    ids = [one for one, _ in seen if one is not None]
    assert ids == list(range(run.seq + 1))
    kinds = [data["kind"] for _, data in seen]
    assert {"delta", "waiting"} <= set(kinds)
    assert seen[-1] == (
        None,
        {"kind": "end", "run_id": run_id, "reason": "finished", "error": None},
    )
    assert kinds.count("end") == 1
    assert not {"setup", "instructions"} & set(seen[0][1])
    for after in ids:
        rest = asyncio.run(all_of(event_stream(run, after=after)))
        assert [one for one, _ in rest if one is not None] == ids[after + 1 :]
        assert rest[-1] == seen[-1]


def test_a_client_that_has_everything_is_told_not_to_ask_again():
    run = agent_of(TicketStore(), finish("done")).run_sync("Go.").run
    last = str(run.seq)
    assert event_response(request(last=last), run).status_code == 204
    assert event_response(request(query=f"after={last}"), run).status_code == 204
    # The address is that of the first request; the header is of this one.
    both = event_response(request(query=f"after={last}", last="0"), run)
    assert isinstance(both, StreamingResponse)
    rest = asyncio.run(all_of(both.body_iterator))
    assert [one for one, _ in rest] == [*range(1, run.seq + 1), None]
    assert event_response(request(method="HEAD"), run).body == b""
    for wrong in ("x", "-1", "٣", "9" * 30, str(run.seq + 1)):
        with pytest.raises(UsageError):
            event_response(request(last=wrong), run)


def test_the_next_turn_is_behind_the_last_one(store):
    agent = agent_of(store, finish("one"), finish("two"))

    async def main():
        run = agent.start("Go.")
        await run
        seq = run.seq
        next_run = agent.start(run=run.id, say="More.")
        answer = event_response(request(query=f"after={seq}"), next_run)
        return seq, await all_of(answer.body_iterator)

    seq, seen = asyncio.run(main())
    assert seen[0][0] == seq + 1
    assert seen[0][1]["kind"] == "user_said"
    assert seen[-1][1]["kind"] == "end"


def failing(messages):
    raise RuntimeError("no")


@pytest.mark.parametrize("how", ["failed", "cancelled"])
def test_a_run_without_an_answer_has_an_end_too(how):
    async def main():
        if how == "failed":
            run = Agent(FunctionModel(failing), store=TicketStore()).start("Go.")
        else:
            run = agent_of(TicketStore()).start("Pay.")
        stream = asyncio.create_task(all_of(event_stream(run)))
        if how == "cancelled":
            await waits(run)
            run.cancel()
        return await stream

    (_, end) = asyncio.run(main())[-1]
    reason = {"failed": "model_error", "cancelled": "cancelled"}[how]
    assert (end["kind"], end["reason"]) == ("end", reason)
    assert end["error"]


async def leave(path):
    """Leave a run that waits in the file of a store, as a server that is stopped."""
    with TicketStore(path) as store:
        run = agent_of(store).start("Pay.")
        await waits(run)
        return run.id, run.seq


def test_a_run_that_is_deleted_has_an_end_too(path):
    run_id, _ = asyncio.run(leave(path))

    async def main(store):
        stream = event_stream(store.run(run_id))
        seen = []
        async for chunk in stream:
            seen.append(chunk)
            if b"event: waiting" in chunk:
                await asyncio.to_thread(store.delete, run_id)
        return read(seen)

    with TicketStore(path) as store:
        (_, end) = asyncio.run(main(store))[-1]
    assert (end["kind"], end["reason"]) == ("end", None)
    assert "it was deleted" in end["error"]


def test_a_run_that_waits_stays_open_and_its_connection_is_kept():
    async def main():
        run = agent_of(TicketStore()).start("Pay.")
        await waits(run)
        chunks = []
        stream = event_stream(run, silence=0.01)
        async for chunk in stream:
            chunks.append(chunk)
            if chunks.count(b": \n\n") == 2 and run.waiting:
                run.approve("T1")
        return read(chunks)

    seen = asyncio.run(main())
    (waiting,) = [data for _, data in seen if data["kind"] == "waiting"]
    (ticket,) = waiting["tickets"]
    assert (ticket["ticket_id"], ticket["ticket_kind"]) == ("T1", "tool_call")
    assert (ticket["tool"], ticket["arguments"]) == ("pay", {"invoice": 7})
    assert len(ticket["seal"]) == 64
    assert seen[-1][1]["reason"] == "finished"


def test_a_stream_goes_on_after_a_restart(path):
    run_id, seq = asyncio.run(leave(path))

    async def after():
        with TicketStore(path) as store:
            answer = event_response(request(last=str(seq)), store.run(run_id))
            stream = asyncio.create_task(all_of(answer.body_iterator))
            store.run(run_id).approve("T1")
            agent = agent_of(store, finish("paid"))
            await agent.resume(run_id)
            return await stream, store.run(run_id).seq

    seen, last = asyncio.run(after())
    assert [one for one, _ in seen if one is not None] == list(range(seq + 1, last + 1))
    assert seen[-1][1]["reason"] == "finished"


def test_a_stream_that_breaks_off_has_no_end_so_browsers_ask_again(monkeypatch, caplog):
    async def lost(_):
        raise StoreError("this store is closed: /srv/runs.sqlite")

    async def main():
        run = agent_of(TicketStore()).start("Pay.")
        await waits(run)
        monkeypatch.setattr(RunWatch, "__anext__", lost)
        return await all_of(event_stream(run))

    assert asyncio.run(main()) == []
    assert "is broken off" in caplog.text


def test_a_client_that_leaves_frees_its_watch(monkeypatch):
    watches = []

    class Seen(RunWatch):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            watches.append(weakref.ref(self))

    monkeypatch.setattr("callslip.runs._run.RunWatch", Seen)

    async def main():
        run = agent_of(TicketStore()).start("Pay.")
        await waits(run)
        has_begun, sent = asyncio.Event(), []

        async def receive():
            await has_begun.wait()
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)
            if b"waiting" in message.get("body", b""):
                has_begun.set()

        answer = event_response(request(), run)
        scope = {"type": "http", "asgi": {"spec_version": "2.3"}}
        await asyncio.wait_for(answer(scope, receive, send), 60)
        del answer
        await asyncio.sleep(0)
        gc.collect()
        assert [one() for one in watches] == [None] * 2
        assert not run.finished
        run.approve("T1")
        await run

    asyncio.run(main())


def test_events_of_child_runs_have_no_id():
    script = [delegate("part"), give("half"), wait("T1"), give("whole")]
    agent = Agent(ScriptedModel(script), protocol="ticket", delegate=True, store=TicketStore())

    async def main():
        run = agent.start("Go.")
        return run.id, await all_of(event_stream(run, children=True))

    run_id, seen = asyncio.run(main())
    own = [one for one, data in seen if data.get("run_id") == run_id and "seq" in data]
    below = [one for one, data in seen if data.get("run_id") != run_id and "seq" in data]
    assert own == list(range(len(own)))
    assert below
    assert set(below) == {None}


def test_wrong_options_are_refused_before_anything_is_sent():
    run = agent_of(TicketStore(), finish("done")).run_sync("Go.").run
    for wrong in ({"after": -2}, {"after": 99}, {"silence": 0}, {"children": "yes"}):
        with pytest.raises(UsageError):
            event_stream(run, **wrong)
    with pytest.raises(UsageError, match="expected run=store.run"):
        event_response(request(), "a run")


def test_a_task_with_line_breaks_is_one_message():
    task = "a\r\nevent: end\rdata: {}\n\nid: 7\u2028\u0085"
    run = agent_of(TicketStore(), finish(task)).run_sync(task).run
    seen = asyncio.run(all_of(event_stream(run)))
    assert seen[0][1]["task"] == task
    assert [data["kind"] for _, data in seen].count("end") == 1
