"""Keys and passwords reach the server and nothing else: no prompt, no log, no store, no error."""

import asyncio
import base64
import contextlib
import gc
import json
import logging
import socket
import traceback
from urllib.parse import quote

import httpx
import httpx2
import pytest

from callslip import Agent, Limits, OpenAPI, TicketStore, UsageError
from documents import call, document, operation, parameter
from echo import Answer, echo, serving
from scripted import act, block, finish, give, load, output, turn_of, wait
from tool_calls import kind_and_text

SECRET = "Canary4711"
USER = "ada"
BASIC = base64.b64encode(f"{USER}:{SECRET}".encode()).decode()

SCHEMES = {
    "inHeader": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "inQuery": {"type": "apiKey", "in": "query", "name": "key"},
    "inCookie": {"type": "apiKey", "in": "cookie", "name": "session"},
    "bearer": {"type": "http", "scheme": "bearer"},
    "basic": {"type": "http", "scheme": "basic"},
    "oauth": {
        "type": "oauth2",
        "flows": {"clientCredentials": {"tokenUrl": "http://t.test", "scopes": {}}},
    },
    "openId": {"type": "openIdConnect", "openIdConnectUrl": "http://o.test"},
}


async def _token():
    return SECRET


AUTH = {
    "inHeader": SECRET,
    "inQuery": SECRET,
    "inCookie": SECRET,
    "bearer": SECRET,
    "basic": (USER, SECRET),
    "oauth": lambda: SECRET,
    "openId": _token,
}
SENT = {
    "inHeader": ("x-key", SECRET),
    "inQuery": None,
    "inCookie": ("cookie", f"session={SECRET}"),
    "bearer": ("authorization", f"Bearer {SECRET}"),
    "basic": ("authorization", f"Basic {BASIC}"),
    "oauth": ("authorization", f"Bearer {SECRET}"),
    "openId": ("authorization", f"Bearer {SECRET}"),
}


class Records(logging.Handler):
    """Every record of every logger, as text with its traceback."""

    def __init__(self):
        super().__init__(logging.DEBUG)
        self.texts = []
        self.setFormatter(logging.Formatter("%(name)s %(message)s"))

    def emit(self, record):
        self.texts.append(self.format(record))
        # What a handler of another form would write down: arguments and extra fields.
        self.texts.append(repr(record.__dict__))


@contextlib.contextmanager
def listening():
    """All that is logged, at DEBUG, whatever a logger's own level says."""
    handler = Records()
    loggers = [
        logging.getLogger(),
        *(logging.getLogger(name) for name in list(logging.root.manager.loggerDict)),
    ]
    before = [(logger, logger.level, logger.disabled) for logger in loggers]
    logging.getLogger().addHandler(handler)
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
        logger.disabled = False
    try:
        yield handler.texts
    finally:
        logging.getLogger().removeHandler(handler)
        for logger, level, disabled in before:
            logger.setLevel(level)
            logger.disabled = disabled


def shop(url, scheme, **options):
    """A document whose operation needs a key of this scheme."""
    described_operation = operation(parameter("page", "query"), security=[{scheme: []}])
    given = document(
        {"/x": {"get": described_operation}},
        servers=[url],
        components={"securitySchemes": {scheme: SCHEMES[scheme]}},
    )
    return OpenAPI.from_dict(given, auth={scheme: AUTH[scheme]}, **options)


REPLIES = {
    "ticket": [
        output(type="CALL", route="GET /x", payload={"page": "2"}, description="d"),
        wait("T1"),
        load("T1"),
        give("done"),
    ],
    "chatty": [block(("a", "GET /x", {"page": "2"})), "done"],
    "react": [act("GET /x", page="2"), finish()],
}


async def _awaited(function):
    value = function()
    return await value if hasattr(value, "__await__") else value


def left_by(api, protocol, path, client=None):
    """Everything that a run leaves behind or shows on its way, by where it was found."""
    shown = {"api": f"{api!r} {api}", "tools": repr(list(api.tools.values()))}
    shown["specs"] = "".join(tool._spec() for tool in api.as_tools())
    shown["plan"] = repr(api.request("GET /x", {"page": "2"}))
    prompts, events = [], []

    def model(messages):
        prompts.append(json.dumps(messages[:]))
        return REPLIES[protocol][turn_of(messages)]

    async def watch(store):
        async with contextlib.AsyncExitStack() as clients:
            if client is not None:
                end = client.aclose if hasattr(client, "aclose") else client.close
                clients.push_async_callback(_awaited, end)
            return await watched(store)

    async def watched(store):
        agent = Agent(model, protocol=protocol, tools=api, store=store, limits=Limits(turns=8))
        shown["agent"] = f"{agent!r} {agent}"
        async with agent.stream("go") as stream:
            async for event in stream:
                events.append(repr(event))
            return stream.run

    with listening() as texts, TicketStore(path) as store:
        run = asyncio.run(watch(store))
        gc.collect()
        shown["export"] = run.export()
        shown["log"] = repr(run.log)
        shown["tickets"] = repr(run.tickets)
        for file in path.parent.iterdir():
            shown[f"file {file.name}"] = file.read_bytes().decode("latin-1")
    shown["prompts"] = "".join(prompts)
    shown["events"] = "".join(events)
    shown["logs"] = "\n".join(texts)
    return run, shown


def assert_hidden(shown, *secrets):
    for where, text in shown.items():
        for secret in secrets:
            assert secret not in text, f"{where}: …{text[max(0, text.find(secret) - 200) :][:400]}…"


def also(server, scheme):
    """What the server has, so that it is a secret that could have leaked."""
    wanted = SENT[scheme]
    if wanted is None:
        return ("key", SECRET) in server.last.pairs
    return wanted[1] in server.last.header(wanted[0])


WAYS = {
    "fine": lambda received: Answer(b'{"page": 2}'),
    "echoed": echo,
    "refused with an echo": lambda received: Answer(echo(received).body, status=401),
    "an echo as text": lambda received: Answer(
        repr(received).encode(), status=403, content_type="text/plain"
    ),
    "redirected": lambda received: Answer(
        status=302, headers={"Location": f"/y?{received.query}&seen={SECRET}"}
    ),
    "in a header": lambda received: Answer(
        b"{}", headers={"X-Echo": repr(received.headers), "Set-Cookie": f"session={SECRET}"}
    ),
    "broken off": lambda received: Answer(
        iter([b'{"headers": "' + repr(received.headers).encode()]), content_type="application/json"
    ),
}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("way", WAYS)
def test_no_trace_of_a_key(tmp_path, scheme, way):
    protocol = ("ticket", "chatty", "react")[(list(SCHEMES).index(scheme) + len(way)) % 3]
    with serving() as server:
        server.answer = WAYS[way]
        api = shop(server.url, scheme)
        _, shown = left_by(api, protocol, tmp_path / "runs.sqlite")
        assert also(server, scheme)
    assert_hidden(shown, SECRET, BASIC)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_no_trace_of_a_key_where_nobody_answers(tmp_path, scheme):
    with serving() as server:
        url = server.url
    _, shown = left_by(shop(url, scheme), "react", tmp_path / "runs.sqlite")
    assert "Error calling tool 'GET /x'" in shown["prompts"]
    assert_hidden(shown, SECRET, BASIC)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_no_trace_of_a_key_where_the_answer_is_late(tmp_path, scheme):
    with socket.create_server(("127.0.0.1", 0)) as socket_of_nobody:
        url = f"http://127.0.0.1:{socket_of_nobody.getsockname()[1]}"
        api = shop(url, scheme, timeout=0.2)
        _, shown = left_by(api, "chatty", tmp_path / "runs.sqlite")
    assert "Error calling tool 'GET /x'" in shown["prompts"]
    assert_hidden(shown, SECRET, BASIC)


@pytest.mark.parametrize("library", [httpx, httpx2])
@pytest.mark.parametrize("kind", ["Client", "AsyncClient"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_no_trace_of_a_key_with_a_client_of_the_users_own(tmp_path, scheme, kind, library):
    with serving() as server:
        # Clients log the headers of a response too.
        server.answer = lambda received: Answer(
            echo(received).body, headers={"X-Echo": repr(received)}
        )
        client = getattr(library, kind)()
        api = shop(server.url, scheme, client=client)
        _, shown = left_by(api, "ticket", tmp_path / "runs.sqlite", client)
        assert also(server, scheme)
    # What hides it is no silence.
    assert f"GET {server.url}/x?page=2" in shown["logs"]
    assert_hidden(shown, SECRET, BASIC)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_exceptions_of_a_client_carry_no_key(tmp_path, scheme):
    class Client:
        def request(self, method, url, *, headers, content, **_):
            raise RuntimeError(f"can't {method} {url} with {headers!r} and {content!r}")

    api = shop("http://api.test", scheme, client=Client())
    run, shown = left_by(api, "react", tmp_path / "runs.sqlite")
    assert "RuntimeError" in run.tickets[0].error
    assert "can't GET http://api.test/x" in run.tickets[0].error
    assert_hidden(shown, SECRET, BASIC)


def test_exceptions_of_a_callable_for_a_key_carry_none(tmp_path):
    def token():
        raise ValueError("the vault is closed")

    given = document(
        {"/x": {"get": operation(parameter("page", "query"), security=[{"b": []}])}},
        components={"securitySchemes": {"b": SCHEMES["bearer"]}},
    )
    run, _ = left_by(OpenAPI.from_dict(given, auth={"b": token}), "react", tmp_path / "a.sqlite")
    assert "the vault is closed" in run.tickets[0].error


# Characters that are written in other ways in a URL, in JSON or in a header.
@pytest.mark.parametrize("scheme", ["inHeader", "inQuery", "inCookie", "bearer", "basic"])
def test_no_trace_of_a_key_in_another_writing(tmp_path, monkeypatch, scheme):
    odd = 'Can"ary/47 11+=&%'
    monkeypatch.setitem(AUTH, scheme, (USER, odd) if scheme == "basic" else odd)
    with serving() as server:
        api = shop(server.url, scheme)
        _, shown = left_by(api, "react", tmp_path / "runs.sqlite")
    written = {
        odd,
        quote(odd, safe=""),
        quote(odd, safe="/"),
        quote(odd).replace("%20", "+"),
        json.dumps(odd)[1:-1],
        json.dumps(json.dumps(odd)[1:-1])[1:-1],
        base64.b64encode(f"{USER}:{odd}".encode()).decode(),
    }
    assert_hidden(shown, *written)


def test_a_key_is_hidden_in_what_is_read_as_it_is_elsewhere(tmp_path):
    # Only the key goes: what stands around it is told.
    with serving() as server:
        api = shop(server.url, "inHeader")
        run, shown = left_by(api, "react", tmp_path / "runs.sqlite")
    told = run.tickets[0].result
    assert told["method"] == "GET"
    assert told["target"] == "/x?page=2"
    (value,) = [value for name, value in told["headers"] if name.lower() == "x-key"]
    assert value
    assert_hidden(shown, SECRET)


def test_a_plan_has_no_key_and_a_request_has(tmp_path):
    for scheme in SCHEMES:
        with serving() as server:
            api = shop(server.url, scheme)
            request = api.request("GET /x", {"page": "2"})
            assert request.url == f"{server.url}/x?page=2"
            names = {name.lower() for name, _ in request.headers}
            assert not names & {"authorization", "cookie", "x-key"}


def test_errors_at_construction_carry_no_key():
    given = document({"/x": {"get": {}}})
    for auth in ({"nothing": SECRET}, {"nothing": (USER, SECRET)}):
        with pytest.raises(Exception, match="nothing") as caught:
            OpenAPI.from_dict(given, auth=auth)
        assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("value", [f"{SECRET}\r\nX-Admin: 1", f"{SECRET}\nb", f"{SECRET}\0"])
@pytest.mark.parametrize("scheme", ["inHeader", "inCookie", "bearer"])
def test_a_key_cannot_end_its_line(tmp_path, monkeypatch, scheme, value):
    monkeypatch.setitem(AUTH, scheme, value)
    with serving() as server:
        with pytest.raises(UsageError, match=f"auth\\['{scheme}'\\]") as caught:
            shop(server.url, scheme)
        assert SECRET not in "".join(traceback.format_exception(caught.value))
        monkeypatch.setitem(AUTH, scheme, lambda: value)
        run, shown = left_by(shop(server.url, scheme), "react", tmp_path / "runs.sqlite")
        assert server.received == []
    assert run.tickets[0].outcome == "error"
    assert_hidden(shown, SECRET)


@pytest.mark.parametrize("scheme", ["inHeader", "inQuery", "inCookie", "bearer", "oauth", "digest"])
def test_a_password_goes_nowhere_but_into_basic(tmp_path, monkeypatch, scheme):
    monkeypatch.setitem(SCHEMES, "digest", {"type": "http", "scheme": "digest"})
    monkeypatch.setitem(AUTH, scheme, (USER, SECRET))
    with serving() as server:
        run, shown = left_by(shop(server.url, scheme), "react", tmp_path / "runs.sqlite")
        assert server.received == []
    assert run.tickets[0].error == (
        f"Error calling tool 'GET /x': '{scheme}' can't be sent: its security scheme takes a key "
        "or token, not user and password."
    )
    assert_hidden(shown, SECRET)


# What the document says of security
def placed(security, *, auth=None, whole=None):
    """The headers that carry a key, of a call of an operation with these requirements."""
    schemes = ("inHeader", "bearer")
    given = document(
        {"/x": {"get": {} if security is None else {"security": security}}},
        components={"securitySchemes": {name: SCHEMES[name] for name in schemes}},
    )
    if whole is not None:
        given["security"] = whole
    auth = {name: AUTH[name] for name in schemes} if auth is None else auth
    with serving() as server:
        call(OpenAPI.from_dict(given, auth=auth, server=server.url), "GET /x", {})
        return {"x-key", "authorization"} & {name.lower() for name, _ in server.last.headers}


def test_requirements():
    either = [{"inHeader": []}, {"bearer": []}]
    assert placed([{"inHeader": [], "bearer": []}]) == {"x-key", "authorization"}
    assert placed(either) == {"x-key"}
    # The first that can be met.
    assert placed(either, auth={"bearer": SECRET}) == {"authorization"}
    assert placed([{"bearer": []}], whole=[{"inHeader": []}]) == {"authorization"}
    assert placed(None, whole=[{"inHeader": []}]) == {"x-key"}
    assert placed([], whole=[{"inHeader": []}]) == set()
    # Where the document says of nothing how it is secured, what is given is sent.
    assert placed(None, auth={"bearer": SECRET}) == {"authorization"}
    assert placed(None) == {"x-key", "authorization"}
    # Where no key is needed one that is there is sent all the same.
    assert placed([{}, {"bearer": []}]) == {"authorization"}


def test_a_key_is_hidden_also_where_an_operation_without_keys_tells_it(tmp_path):
    given = document(
        {
            "/x": {"get": {"security": [{"inHeader": []}, {"oauth": []}]}},
            "/open": {"get": {"security": []}},
        },
        components={"securitySchemes": {name: SCHEMES[name] for name in ("inHeader", "oauth")}},
    )
    for auth in ({"inHeader": SECRET}, {"oauth": lambda: SECRET}):
        with serving() as server:
            api = OpenAPI.from_dict(given, auth=auth, server=server.url)
            assert call(api, "GET /x", {})[0] == "ok"
            server.answer = lambda _: Answer(json.dumps({"config": f"key={SECRET}"}).encode())
            kind, text = call(api, "GET /open", {})
            assert server.last.header("x-key") == server.last.header("authorization") == []
        assert kind == "ok"
        assert SECRET not in text


def test_a_number_that_holds_a_key_is_hidden_in_a_run():
    with serving() as server:
        server.answer = lambda _: Answer(b'{"id": 4711042, "of": [471]}')
        given = document(
            {"/x": {"get": {"security": [{"inHeader": []}]}}},
            servers=[server.url],
            components={"securitySchemes": {"inHeader": SCHEMES["inHeader"]}},
        )
        api = OpenAPI.from_dict(given, auth={"inHeader": "4711"})
        assert call(api, "GET /x", {}) == ("ok", '{"id":"***042","of":[471]}')
        run = Agent(lambda m: act("GET /x") if not turn_of(m) else finish(), tools=api)
        assert run.run_sync("go").run.tickets[0].result == {"id": "***042", "of": [471]}


def test_tokens_that_were_given_once_stay_hidden():
    tokens = [f"token-{number}" for number in range(3)]
    given = document(
        {"/x": {"get": {"security": [{"oauth": []}]}}},
        components={"securitySchemes": {"oauth": SCHEMES["oauth"]}},
    )
    giving = iter(tokens)
    with serving() as server:
        server.answer = lambda _: Answer(json.dumps(tokens).encode())
        api = OpenAPI.from_dict(given, auth={"oauth": lambda: next(giving)}, server=server.url)
        assert call(api, "GET /x", {}) == ("ok", '["***","token-1","token-2"]')
        assert call(api, "GET /x", {}) == ("ok", '["***","***","token-2"]')
        assert call(api, "GET /x", {}) == ("ok", '["***","***","***"]')


def test_a_token_that_was_given_to_a_call_meanwhile_is_hidden():
    given = document(
        {"/x": {"get": {"security": [{"oauth": []}]}}},
        components={"securitySchemes": {"oauth": SCHEMES["oauth"]}},
    )
    giving = iter(["token-1", "token-2"])
    both = asyncio.Barrier(2)

    class Client:
        async def request(self, *_, **__):
            await both.wait()
            return httpx.Response(200, json=["token-1", "token-2"])

    async def main():
        api = OpenAPI.from_dict(given, auth={"oauth": lambda: next(giving)}, client=Client())
        return await asyncio.gather(*(api.tools["GET /x"].acall({}, None) for _ in range(2)))

    outcomes = [kind_and_text(outcome) for outcome in asyncio.run(main())]
    assert outcomes == [("ok", '["***","***"]')] * 2
