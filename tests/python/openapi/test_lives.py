"""Apps in this process that start late, fail or end badly; and clients of unusual forms."""

import asyncio
import gc
import threading
import time
import weakref
from types import SimpleNamespace

import pytest

from callslip import OpenAPI
from callslip.openapi import _app
from documents import call, document, one
from serving import eventually
from tool_calls import kind_and_text

KEY = "s3cret-4711"


def served(answer, lifespan=None, **options):
    """An app with one operation, that is offered."""

    async def app(scope, receive, send):
        if scope["type"] == "lifespan":
            if lifespan is not None:
                return await lifespan(receive, send)
            raise RuntimeError("no lifespan")
        return await answer(scope, send)

    scheme = {"type": "apiKey", "in": "header", "name": "X-Key"}
    given = document(
        {"/x": {"get": {"security": [{"key": []}]}}},
        components={"securitySchemes": {"key": scheme}},
    )
    return OpenAPI.from_app(app, document=given, auth={"key": KEY}, **options)


async def start(send, status=200):
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def whole(scope, send):
    await start(send)
    await send({"type": "http.response.body", "body": b"[1]"})


# Failures of the app
def test_an_app_that_fails_in_mid_stream_is_an_error(caplog):
    async def answer(scope, send):
        await start(send)
        await send({"type": "http.response.body", "body": b"[1]", "more_body": True})
        raise LookupError("the cursor is gone")

    assert call(served(answer), "GET /x", {}) == (
        "error",
        "Error calling tool 'GET /x': the app failed in the middle of its response.",
    )
    (record,) = [record for record in caplog.records if record.name == "callslip.tools"]
    assert "LookupError: the cursor is gone" in caplog.text
    assert "in answer" in caplog.text
    assert record.getMessage() == "tool 'GET /x' failed"


def test_an_app_that_returns_in_mid_stream_is_an_error():
    async def answer(scope, send):
        await start(send)
        await send({"type": "http.response.body", "body": b"[1]", "more_body": True})

    kind, text = call(served(answer), "GET /x", {})
    assert kind == "error"
    assert "in the middle of its response" in text


@pytest.mark.parametrize(
    ("when", "told"),
    [("before", ("error", "HTTP 500 Internal Server Error.")), ("after", ("ok", "[1]"))],
)
def test_what_an_app_raises_is_in_the_log(caplog, when, told):
    async def answer(scope, send):
        if when == "after":
            await whole(scope, send)
        raise LookupError("the cursor is gone")

    kind, text = call(served(answer), "GET /x", {})
    assert kind == told[0]
    assert text.endswith(told[1])
    assert "LookupError: the cursor is gone" in caplog.text
    assert "in answer" in caplog.text


def test_what_an_app_raises_is_in_the_log_without_secrets(caplog):
    async def answer(scope, send):
        raise LookupError(f"no user for {dict(scope['headers'])}")

    call(served(answer), "GET /x", {})
    assert "LookupError: no user for" in caplog.text
    assert "***" in caplog.text
    assert KEY not in caplog.text


# Lifespans
@pytest.fixture
def unheard(caplog):
    """What asyncio itself complains of."""
    return lambda: [
        record.getMessage() for record in caplog.records if record.name in ("asyncio", "root")
    ]


def test_an_app_may_take_its_time_to_start(unheard):
    may_start = threading.Event()

    async def lifespan(receive, send):
        await receive()
        while not may_start.is_set():
            await asyncio.sleep(0.01)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})

    api = served(whole, lifespan, timeout=2.0)
    assert call(api, "GET /x", {}) == (
        "error",
        "Error calling tool 'GET /x': TimeoutError: no result within 2 seconds. "
        "This may pass: the same call may be made again.",
    )
    # It went on meanwhile.
    may_start.set()
    assert call(api, "GET /x", {}) == ("ok", "[1]")
    api.close()
    gc.collect()
    assert unheard() == []


def test_an_app_that_fails_to_start_when_nobody_waits_any_more(unheard):
    failed = threading.Event()

    async def lifespan(receive, send):
        await receive()
        await asyncio.sleep(0.3)
        await send({"type": "lifespan.startup.failed", "message": "no database"})
        failed.set()

    api = served(whole, lifespan, timeout=0.1)
    assert "TimeoutError" in call(api, "GET /x", {})[1]
    assert failed.wait(60)
    api.close()
    del api
    gc.collect()
    assert unheard() == []


def test_an_app_that_is_ended_before_it_has_started(unheard):
    async def lifespan(receive, send):
        await receive()
        await asyncio.sleep(60)

    async def main():
        api = served(whole, lifespan)
        waiting = asyncio.create_task(api.tools["GET /x"].acall({}, None))
        here = asyncio.get_running_loop()
        while not (lives := [life for life in _app._lives if life._loop is here]):
            await asyncio.sleep(0.01)
        (life,) = lives
        await asyncio.sleep(0.05)
        life._task.cancel()
        return kind_and_text(await waiting)

    assert asyncio.run(main()) == (
        "error",
        "Error calling tool 'GET /x': the app did not start: it was ended before.",
    )
    gc.collect()
    assert unheard() == []


@pytest.mark.parametrize("ends", ["aclose", "loop"])
@pytest.mark.parametrize("raises", [True, False])
def test_what_an_app_says_of_a_bad_end_is_in_the_log(caplog, unheard, ends, raises):
    async def lifespan(receive, send):
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        if raises:
            raise LookupError(f"the pool is gone: {KEY}")
        await send({"type": "lifespan.shutdown.failed", "message": f"the pool is gone: {KEY}"})

    async def main():
        api = served(whole, lifespan)
        assert kind_and_text(await api.tools["GET /x"].acall({}, None)) == ("ok", "[1]")
        if ends == "aclose":
            await api.aclose()

    asyncio.run(main())
    gc.collect()
    assert "Error: the pool is gone: ***" in caplog.text
    assert KEY not in caplog.text
    assert unheard() == []


def test_loops_are_not_kept():
    api = served(whole, one_life)
    loops = []

    async def main():
        loops.append(weakref.ref(asyncio.get_running_loop()))
        assert kind_and_text(await api.tools["GET /x"].acall({}, None)) == ("ok", "[1]")

    for _ in range(5):
        asyncio.run(main())
    # A collection of another thread has ours do nothing.
    assert eventually(lambda: gc.collect() >= 0 and not any(loop() for loop in loops[:-1]))
    api.close()
    assert eventually(lambda: gc.collect() >= 0 and loops[-1]() is None)


async def one_life(receive, send):
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await send({"type": "lifespan.shutdown.complete"})


# Clients of the user's own
def response(body=b"[1]"):
    headers = {"Content-Type": "application/json"}
    return SimpleNamespace(status_code=200, headers=headers, content=body)


GOES_ON = threading.Event()
"""Set by the loop while a call is under way: what holds it up waits in vain."""


def goes_on_during(api):
    """What comes of a call that waits for the loop to go on."""
    GOES_ON.clear()

    async def main():
        call = asyncio.create_task(api.tools["GET /x"].acall({}, None))
        # It has begun before the loop comes here again.
        await asyncio.sleep(0.05)
        GOES_ON.set()
        return kind_and_text(await call)

    return asyncio.run(main())


def test_an_app_that_nobody_closes_ends_with_its_tools():
    ended = threading.Event()

    async def life(receive, send):
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        ended.set()

    api = served(whole, life)
    assert call(api, "GET /x", {}) == ("ok", "[1]")
    del api
    gc.collect()
    assert ended.wait(60)


def test_a_sync_client_without_streams_has_a_thread():
    class Client:
        end = "an attribute of its own"

        def request(self, method, url, **_):
            assert GOES_ON.wait(60)
            return response()

    assert goes_on_during(one({}, method="get", options={"client": Client()})) == ("ok", "[1]")


def test_a_function_for_a_key_has_a_thread_and_ends_with_the_timeout():
    def token():
        assert GOES_ON.wait(60)
        return KEY

    scheme = {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}
    options = {"client": SimpleNamespace(request=lambda *_, **__: response())}
    given = {"security": [{"key": []}]}
    further = {"method": "get", "components": {"securitySchemes": scheme}}
    options["auth"] = {"key": token}
    assert goes_on_during(one(given, options=options, **further)) == ("ok", "[1]")
    GOES_ON.clear()
    api = one(given, options={**options, "timeout": 0.1}, **further)
    began = time.monotonic()
    assert "TimeoutError: no result within 0.1 seconds" in call(api, "GET /x", {})[1]
    assert time.monotonic() - began < 30
    GOES_ON.set()


def test_wrappers_of_async_clients():
    class Streamed:
        status_code, headers = 200, {"Content-Type": "application/json"}

        async def __aenter__(self):
            return self

        async def __aexit__(self, *_):
            return None

        async def aiter_bytes(self):
            for part in (b"[", b"1]"):
                await asyncio.sleep(0)
                yield part

    async def later():
        await asyncio.sleep(0)
        return response()

    clients = [
        SimpleNamespace(request=lambda *_, **__: later()),
        SimpleNamespace(request=print, stream=lambda *_, **__: Streamed()),
    ]
    for client in clients:
        api = one({}, method="get", options={"client": client})
        assert call(api, "GET /x", {}) == ("ok", "[1]")
