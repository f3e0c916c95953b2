"""Errors as answers: the right status, a message with its hint, and nothing of the server."""

import asyncio
import json

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from callslip import Agent, FunctionModel, Limits, ScriptedModel, StoreError, TicketStore, tool
from callslip import errors as all_errors
from callslip.errors import Busy, CallslipError, DrivenElsewhere, KeyTaken, UnknownRun, UsageError
from callslip.web import error_body, exception_handlers, read_json, status_of
from scripted import act, finish


@tool(needs_approval=True)
def pay(invoice: int, amount: float) -> str:
    """Pay."""
    return "paid"


def failing(messages):
    raise RuntimeError("http://10.0.0.7 refused sk-secret")


class Site:
    """An application of plain Starlette, with routes that only do what they are asked for."""

    def __init__(self, store):
        self.store = store
        script = ScriptedModel([act("pay", invoice=7, amount=1), finish("done")])
        self.agent = Agent(script, tools=[pay], store=store)
        names = ["start", "say", "decide", "fail", "bug", "disk"]
        self.app = Starlette(
            routes=[Route(f"/{name}", getattr(self, name), methods=["POST"]) for name in names],
            exception_handlers=exception_handlers(),
        )

    async def start(self, request):
        given = await read_json(request, most=1000)
        run = self.agent.start(given["task"], key=given.get("key"))
        async for item in run.watch():
            if item.__class__.__name__ == "Waiting":
                break
        return JSONResponse({"run": run.id})

    async def say(self, request):
        given = await read_json(request)
        return JSONResponse({"run": self.agent.start(run=given["run"], say=given["text"]).id})

    async def decide(self, request):
        given = await read_json(request)
        run = self.store.run(given.pop("run"))
        run.approve(given.pop("ticket"), **given)
        return JSONResponse(None)

    async def fail(self, _):
        await Agent(FunctionModel(failing)).run("Go.")

    async def bug(self, _):
        raise ZeroDivisionError("/srv/app/secret.py")

    async def disk(self, _):
        raise StoreError("/srv/runs.sqlite: no space left")


async def told(http, path, body):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = await http.post(path, content=content)
    assert answer.headers["content-type"] == "application/json"
    return answer.status_code, answer.json()


def test_errors_of_the_client_have_their_status_and_the_message():
    async def main():
        site = Site(TicketStore())
        transport = httpx.ASGITransport(site.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
            _, begun = await told(http, "/start", {"task": "Pay.", "key": "k"})
            run = begun["run"]
            call = {"run": run, "ticket": "T1"}
            status, body = await told(http, "/decide", call | {"arguments": {"invoice": "x"}})
            assert (status, [place for place, _ in body["problems"]]) == (
                422,
                ["/amount", "/invoice"],
            )
            assert body["error"].startswith("expected arguments that 'pay' takes: got others")
            for path, sent, due in [
                ("/start", b"{", 422),
                ("/start", b"\xff", 422),
                ("/start", b'{"task": NaN}', 422),
                ("/start", b"[" * 900, 422),
                ("/start", b" " * 2000, 413),
                ("/start", {"task": 5}, 422),
                ("/start", {"task": " "}, 422),
                ("/start", {"task": "Another.", "key": "k"}, 409),
                ("/say", {"run": "none", "text": "x"}, 404),
                ("/say", {"run": "\ud800", "text": "x"}, 422),
                ("/say", {"run": 7, "text": "x"}, 422),
                ("/say", {"run": run, "text": ["\ud800"]}, 422),
                ("/decide", {"run": "none", "ticket": "T1"}, 404),
                ("/decide", call | {"ticket": "T2"}, 404),
                ("/decide", call | {"ticket": "x"}, 404),
                ("/decide", call | {"ticket": 1}, 422),
                ("/decide", call | {"arguments": [1]}, 422),
                ("/decide", call | {"seal": "0" * 64}, 409),
                ("/decide", call, 200),
                ("/decide", call, 409),
            ]:
                status, body = await told(http, path, sent)
                assert status == due, (path, sent, body)
                assert due == 200 or body["error"]
            await site.store.run(run)
            assert (await told(http, "/decide", call))[0] == 409

    asyncio.run(main())


def test_errors_of_the_server_tell_nothing_of_it(caplog):
    async def main():
        site = Site(TicketStore())
        transport = httpx.ASGITransport(site.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
            return [await told(http, f"/{name}", {}) for name in ("fail", "bug", "disk")]

    answers = asyncio.run(main())
    assert [status for status, _ in answers] == [502, 500, 503]
    for _, body in answers:
        assert set(body) <= {"error", "run"}
        assert not any(word in str(body) for word in ("secret", "/srv", "10.0.0.7"))
    for word in ("sk-secret", "secret.py", "no space left"):
        assert word in caplog.text


def test_a_cancelled_run_takes_no_decision():
    store = TicketStore()

    async def main():
        run = Agent(
            ScriptedModel([act("pay", invoice=7, amount=1)]), tools=[pay], store=store
        ).start("x")
        async for item in run.watch():
            if item.__class__.__name__ == "Waiting":
                break
        run.cancel()
        return run

    run = asyncio.run(main())
    for decide in (
        lambda one: one.approve("T1"),
        lambda one: one.deny("T1"),
        lambda one: one.answer("T1"),
    ):
        with pytest.raises(UsageError) as caught:
            decide(store.run(run.id))
        assert status_of(caught.value) == 409


BY_ID = {
    "run": lambda agent: agent.store.run("none"),
    "watch": lambda agent: agent.store.watch("none"),
    "compact": lambda agent: agent.store.compact("none"),
    "owner": lambda agent: agent.store.run(agent.run_sync("x").run.id, owner="ann"),
    "resume": lambda agent: agent.resume_sync("none"),
    "start": lambda agent: asyncio.run(started(agent)),
}


async def started(agent):
    agent.start(run="none", say="x")


@pytest.mark.parametrize("how", BY_ID.values(), ids=BY_ID)
def test_a_run_that_is_not_there_is_the_same_error_everywhere(how):
    agent = Agent(ScriptedModel([finish("done")]), store=TicketStore())
    with pytest.raises(UnknownRun, match="there is no run"):
        how(agent)


def test_every_exception_has_a_status():
    kinds = [getattr(all_errors, name) for name in all_errors.__all__]
    for kind in kinds:
        error = kind("because")
        status, body = status_of(error), error_body(error)
        assert 400 <= status < 600
        is_told = status < 500 or kind is Busy
        assert (body["error"] == "because") == is_told
        # What is not named here is no fault of the client.
        assert (status < 500) == issubclass(kind, UsageError | DrivenElsewhere | KeyTaken) or (
            kind.__name__ == "UnknownRun"
        )
    assert status_of(CallslipError("x")) == status_of(ValueError("x")) == 500


def test_a_run_that_failed_is_named():
    with pytest.raises(CallslipError) as caught:
        Agent(ScriptedModel([]), limits=Limits(turns=0), on_limit="raise").run_sync("x")
    assert error_body(caught.value)["run"] == caught.value.run.id
