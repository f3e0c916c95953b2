"""A FastAPI app as tools: in process with its lifespan, and over HTTP; in all three protocols."""

import asyncio
import base64
import contextlib
import gc
import json
import threading
import time

import httpx
import httpx2
import pytest
import uvicorn

from callslip import Agent, OpenAPI
from callslip._core import Outcome
from callslip._threads import pool
from documents import call, value_of
from pets_app import SCHEMES, pets_app
from scripted import act, block, finish, give, load, output, results_of, turn_of, wait

KEY = "s3cret"
AUTH = {name: ("ada", KEY) if name == "basic" else KEY for name in SCHEMES}


@contextlib.contextmanager
def running(app):
    """The app under a real server on loopback: its address."""
    config = uvicorn.Config(app, port=0, log_config=None, access_log=False, ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def address():
    with running(pets_app()) as address:
        yield address


# The same app, reached in every way that there is.
@pytest.fixture(params=["in process", "plain", "httpx", "httpx async", "httpx2", "httpx2 async"])
def api(request):
    if request.param == "in process":
        yield OpenAPI.from_app(pets_app(), auth=AUTH)
        return
    address = request.getfixturevalue("address")
    if request.param == "plain":
        yield OpenAPI.from_url(f"{address}/openapi.json", auth=AUTH)
        return
    document = pets_app().openapi()
    library = httpx2 if request.param.startswith("httpx2") else httpx
    if request.param.endswith("async"):
        client = library.AsyncClient(base_url=address)
        yield OpenAPI.from_dict(document, client=client, auth=AUTH)
        pool.on_loop(client.aclose()).result(10).get()
        return
    with library.Client(base_url=address) as client:
        yield OpenAPI.from_dict(document, client=client, auth=AUTH)


def test_json_goes_both_ways(api):
    number = value_of(api, "POST /pets", {"name": "Bo", "age": 1, "tags": ["a b", "c,d"]})["id"]
    assert value_of(api, "GET /pets/{pet_id}", {"pet_id": number}) == {
        "name": "Bo",
        "age": 1,
        "tags": ["a b", "c,d"],
    }
    assert value_of(api, "GET /pets", {"tag": ["a b", "c,d"], "limit": 1})[0]["name"] == "Bo"
    assert value_of(api, "DELETE /pets/{pet_id}", {"pet_id": number}) == {"status": 204}
    assert call(api, "GET /pets/{pet_id}", {"pet_id": number}) == (
        "error",
        (
            "Error calling tool 'GET /pets/{pet_id}': HTTP 404 Not Found: "
            f'{{"detail":"there is no pet {number}"}}.'
        ),
    )


def test_the_model_gets_what_the_app_says_of_a_wrong_value(api):
    # It is one of which the document says nothing: only the app can tell.
    kind, text = call(api, "POST /strict", {"word": "a", "times": 2})
    head = "Error calling tool 'POST /strict': HTTP 422 Unprocessable "
    assert kind == "error"
    assert text.startswith(head)
    body = json.loads(text[len(head) :].partition(": ")[2].removesuffix("."))
    assert body == {"detail": [{"loc": ["body", "times"], "msg": "must be odd", "type": "odd"}]}
    assert value_of(api, "POST /strict", {"word": "a", "times": 3}) == "aaa"


def test_the_app_parses_an_upload(api):
    arguments = {"photo": "one\r\n", "more": ["two", "é"], "title": "A & B", "year": 1999}
    told = value_of(api, "POST /photos", arguments)
    contents = [base64.b64decode(content) for content in told.pop("contents")]
    assert told == {"title": "A & B", "year": 1999, "names": [True, True, True]}
    assert contents == [b"one\r\n", b"two", "é".encode()]


def test_the_app_parses_a_form(api):
    arguments = {"name": "a+b &=é", "tags": ["x y", "z"]}
    assert value_of(api, "POST /form", arguments) == arguments


def test_bytes_come_back_in_base64(api):
    assert value_of(api, "GET /picture", {}) == {
        "content_type": "image/png",
        "size": 6,
        "base64": base64.b64encode(b"\x89PNG\x00\xff").decode(),
    }


def test_cookies(api):
    assert value_of(api, "GET /taste", {"flavour": "vanilla"}) == "vanilla"
    # One call's cookies are none of the next one's.
    assert value_of(api, "GET /taste", {}) == "none"


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("GET /locked/header", {}, "open: True"),
        ("GET /locked/query", {"page": 7}, "open: True, page 7"),
        ("GET /locked/query", {}, "open: True, page 1"),
        ("GET /locked/cookie", {"flavour": "mint"}, "open: True, mint"),
        ("GET /locked/cookie", {}, "open: True, none"),
        ("GET /locked/bearer", {}, "open: True"),
        ("GET /locked/basic", {}, "open: True, ada"),
    ],
)
def test_keys(api, name, arguments, told):
    assert value_of(api, name, arguments) == told


def test_a_crash_of_the_app_is_an_error_like_any_other(api):
    kind, text = call(api, "GET /crash", {})
    assert kind == "error"
    assert text.startswith("Error calling tool 'GET /crash': HTTP 500 Internal Server Error")


def test_keys_are_no_parameters(api):
    for name in ("header", "query", "cookie", "bearer", "basic"):
        properties = api.tools[f"GET /locked/{name}"].parameters["properties"]
        assert not {"X-Api-Key", "api_key", "session", "Authorization"} & set(properties)


# Keys
def test_without_a_key_the_error_says_which_is_missing():
    api = OpenAPI.from_app(pets_app())
    kind, text = call(api, "GET /locked/header", {})
    assert kind == "error"
    # Nothing is guessed: the app answers for itself, or the missing scheme is named.
    assert "headerKey" in text or "HTTP 40" in text
    assert value_of(api, "GET /pets", {})


@pytest.mark.parametrize("of", [lambda: KEY, lambda: _later(KEY)])
def test_keys_from_callables_are_asked_for_each_call(of):
    asked = []

    def token():
        asked.append(1)
        return of()

    api = OpenAPI.from_app(pets_app(), auth={"bearer": token})
    assert asked == []
    assert value_of(api, "GET /locked/bearer", {}) == "open: True"
    assert value_of(api, "GET /locked/bearer", {}) == "open: True"
    assert len(asked) == 2
    value_of(api, "GET /pets", {})
    assert len(asked) == 2


async def _later(value):
    await asyncio.sleep(0)
    return value


def test_a_callable_that_fails_is_an_error_of_the_call():
    def token():
        raise RuntimeError("the vault is closed")

    api = OpenAPI.from_app(pets_app(), auth={"bearer": token})
    kind, text = call(api, "GET /locked/bearer", {})
    assert kind == "error"
    assert "the vault is closed" in text


# In process
def test_the_lifespan_begins_and_ends():
    events = []
    api = OpenAPI.from_app(pets_app(events))
    assert events == []

    async def main():
        for _ in range(2):
            outcome = await api.tools["GET /opened"].acall({}, None)
            assert json.loads(outcome.json) == {"opened": "by the lifespan"}

    asyncio.run(main())
    assert events[0] == "startup"
    assert events.count("startup") == 1 + events[:-1].count("shutdown")
    asyncio.run(main())
    assert events.count("startup") - events.count("shutdown") in (0, 1)


def test_state_of_the_lifespan_lives_from_call_to_call():
    agent_saw = []
    events = []
    api = OpenAPI.from_app(pets_app(events))

    def model(messages):
        agent_saw.append(messages[-1]["content"])
        turn = turn_of(messages)
        if turn == 0:
            return act("POST /pets", name="Bo", age=2)
        return act("GET /pets/{pet_id}", pet_id=2) if turn == 1 else finish()

    Agent(model, tools=api).run_sync("add one, look at it")
    assert '"Bo"' in agent_saw[-1]
    assert events[0] == "startup"


def test_an_app_without_an_openapi_method_is_asked_for_its_document():
    inner = pets_app()

    async def plain(scope, receive, send):
        await inner(scope, receive, send)

    api = OpenAPI.from_app(plain)
    assert list(api.tools) == list(OpenAPI.from_app(pets_app()).tools)
    assert value_of(api, "GET /opened", {}) == {"opened": "by the lifespan"}


def test_an_app_without_lifespan_and_one_whose_startup_fails():
    document = {
        "openapi": "3.1.0",
        "info": {"title": "T", "version": "1"},
        "paths": {"/a": {"get": {}}},
    }

    async def answer(send, body):
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def without(scope, receive, send):
        assert scope["type"] == "http"
        await answer(send, json.dumps(document if "openapi" in scope["path"] else [1]).encode())

    assert value_of(OpenAPI.from_app(without), "GET /a", {}) == [1]

    async def failing(scope, receive, send):
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.failed", "message": "no database"})
        else:
            await answer(send, json.dumps(document).encode())

    failing.openapi = lambda: document
    kind, text = call(OpenAPI.from_app(failing), "GET /a", {})
    assert kind == "error"
    assert "no database" in text or "startup" in text


def test_calls_at_once_in_process():
    api = OpenAPI.from_app(pets_app())

    async def main():
        tool = api.tools["GET /pets/{pet_id}"]
        return await asyncio.gather(*(tool.acall({"pet_id": 1}, None) for _ in range(20)))

    assert all(isinstance(outcome, Outcome.Ok) for outcome in asyncio.run(main()))


def streaming(chunks):
    """An app that answers with these chunks, and says how it ended."""
    from fastapi import FastAPI
    from starlette.responses import StreamingResponse

    app, ended = FastAPI(), []

    async def body():
        try:
            async for chunk in chunks():
                yield chunk
        finally:
            ended.append(True)

    @app.get("/stream")
    async def stream():
        return StreamingResponse(body(), media_type="text/plain")

    return app, ended


def test_an_app_that_answers_without_end_is_stopped():
    given = []

    async def chunks():
        while True:
            given.append(1)
            yield b"x" * 10_000
            await asyncio.sleep(0)

    app, ended = streaming(chunks)
    api = OpenAPI.from_app(app, max_response_bytes=100_000, timeout=5.0)
    kind, text = call(api, "GET /stream", {})
    assert kind == "error"
    assert "100,000" in text
    assert len(given) < 50
    # Nobody closes the generator: it ends with what refers to it.
    waited = time.monotonic()
    while not ended and time.monotonic() - waited < 60:
        gc.collect()
        time.sleep(0.01)
    assert ended == [True]


def test_an_app_that_never_answers_ends_with_the_timeout():
    async def chunks():
        yield b"x"
        await asyncio.sleep(60)

    app, ended = streaming(chunks)
    began = time.monotonic()
    kind, text = call(OpenAPI.from_app(app, timeout=1.5), "GET /stream", {})
    assert kind == "error"
    assert "1.5 seconds" in text
    assert time.monotonic() - began < 30
    assert ended == [True]


# Agents
def test_an_agent_in_the_ticket_protocol(api):
    replies = [
        output(
            type="CALL",
            route="POST /pets",
            payload={"name": "Mi", "age": 4},
            description="add a pet",
        ),
        wait("T1"),
        load("T1"),
        output(type="CALL", route="GET /pets/77", payload={}, description="look"),
        wait("T2"),
        load("T2"),
        give("done"),
    ]
    seen = []

    def model(messages):
        seen.append(messages[-1]["content"])
        return replies[turn_of(messages)]

    result = Agent(model, protocol="ticket", tools=api).run_sync("add Mi")
    assert result.value == "done"
    first, second = result.run.tickets
    assert first.tool == "POST /pets"
    assert set(first.result) == {"id"}
    assert second.outcome == "error"
    assert "HTTP 404 Not Found" in second.error
    assert any('"id"' in text for text in seen)
    assert any("HTTP 404" in text for text in seen)


def test_an_agent_in_the_chatty_protocol(api):
    def model(messages):
        if turn_of(messages) == 0:
            return block(
                ("a", "POST /pets", {"name": "taken", "age": 4}),
                ("b", "GET /pets", {"limit": 1}),
                ("c", "POST /strict", {"word": "a", "times": 2}),
            )
        results = results_of(messages[-1])
        assert "HTTP 409 Conflict" in results["a"]
        assert len(results["b"]) == 1
        assert "HTTP 422" in results["c"]
        assert "must be odd" in results["c"]
        return "done"

    result = Agent(model, protocol="chatty", tools=api).run_sync("add a pet")
    assert result.value == "done"
    assert result.run.violations == 0


def test_an_agent_in_the_react_protocol(api):
    seen = []

    def extra(text: str) -> str:
        """Say it louder."""
        return text.upper()

    def model(messages):
        seen.append(messages[-1]["content"])
        calls = [
            act("POST /strict", word="a", times=2),
            act("POST /strict", word="a", times="3"),
            act("extra", text="aaa"),
        ]
        turn = turn_of(messages)
        return calls[turn] if turn < 3 else finish("AAA")

    result = Agent(model, protocol="react", tools=[extra, api]).run_sync("shout")
    assert result.value == "AAA"
    assert "HTTP 422" in seen[1]
    assert "must be odd" in seen[1]
    assert seen[2:] == ["Observation: aaa", "Observation: AAA"]


@pytest.mark.parametrize("protocol", ["ticket", "chatty", "react"])
def test_prompts_show_the_operations(protocol):
    prompts = []

    def model(messages):
        prompts.append(messages[0]["content"])
        return {"ticket": give(1), "chatty": "1", "react": finish()}[protocol]

    Agent(model, protocol=protocol, tools=OpenAPI.from_app(pets_app())).run_sync("go")
    for name in ("/pets/{pet_id}", "/photos", "/locked/basic"):
        assert name in prompts[0]


@pytest.mark.parametrize("protocol", ["ticket", "chatty", "react"])
def test_arguments_are_checked_before_anything_is_sent(protocol):
    name, arguments = "POST /pets", {"nmae": "Bo", "age": -1}
    seen = []

    def model(messages):
        seen.append(messages[-1]["content"])
        if turn_of(messages):
            return {"ticket": give(1), "chatty": "1", "react": finish()}[protocol]
        if protocol == "ticket":
            return output(type="CALL", route=name, payload=arguments, description="d")
        return block(("a", name, arguments)) if protocol == "chatty" else act(name, **arguments)

    api = OpenAPI.from_app(pets_app())
    run = Agent(model, protocol=protocol, tools=api).run_sync("go").run
    assert run.violations == 1
    assert run.tickets == []
    for word in ("nmae", "name", "age"):
        assert word in seen[1]


def test_an_operation_id_names_its_operation_in_every_protocol():
    def model(messages):
        return act("add_pet_pets_post", name="Bo", age=1) if not turn_of(messages) else finish()

    api = OpenAPI.from_app(pets_app())
    run = Agent(model, protocol="react", tools=api).run_sync("go").run
    assert [(one.tool, one.outcome) for one in run.tickets] == [("POST /pets", "ok")]
