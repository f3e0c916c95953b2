"""What a call makes of a response: JSON, text, bytes, errors, and servers that misbehave."""

import asyncio
import base64
import gzip
import itertools
import json
import socket
import threading
import time
from random import Random
from types import SimpleNamespace

import httpx
import pytest

from callslip import Agent, Image, Limits, OpenAPI, ScriptedModel
from documents import call, document, one, operation, parameter, value_of
from echo import Answer, serving
from pictures import png
from random_cases import SEED, cases
from scripted import act, finish, turn_of


@pytest.fixture
def server():
    with serving() as server:
        yield server


def asked(server, answer, *, responses=None, method="get", **options):
    """What comes of a call that the server answers so."""
    server.answer = lambda _: answer
    described = {} if responses is None else {"responses": responses}
    api = one(described, method=method, servers=[server.url], options=options)
    return call(api, f"{method.upper()} /x", {})


# Values
@pytest.mark.parametrize(
    ("body", "content_type", "value"),
    [
        (b'{"a": [1, null, 1.50]}', "application/json", {"a": [1, None, 1.5]}),
        (b"[]", "application/json; charset=utf-8", []),
        (b'"text"', "application/problem+json", "text"),
        (b"null", "application/json", None),
        (b"9007199254740993", "application/json", 9007199254740993),
        (b'\xef\xbb\xbf{"a": 1}', "application/json", {"a": 1}),
        (b"plain text", "text/plain", "plain text"),
        ("é".encode("latin-1"), "text/plain; charset=iso-8859-1", "é"),
        ("é☃".encode(), "text/html", "é☃"),
        (b"a,b\r\n1,2", "text/csv; charset=utf-8", "a,b\r\n1,2"),
        (b"<a/>", "application/xml", "<a/>"),
        (b"", "application/json", {"status": 200}),
        (b"", None, {"status": 200}),
        # A body of another type than the response says stays text.
        (b"{not json", "application/json", "{not json"),
        (b"key: value", None, "key: value"),
    ],
)
def test_bodies(server, body, content_type, value):
    kind, text = asked(server, Answer(body, content_type=content_type))
    assert (kind, json.loads(text)) == ("ok", value)


@pytest.mark.parametrize("status", [201, 202, 204])
def test_an_empty_body_is_its_status(server, status):
    kind, text = asked(server, Answer(b"", status=status, content_type=None))
    assert (kind, json.loads(text)) == ("ok", {"status": status})


@pytest.mark.parametrize("content_type", ["image/png", "application/octet-stream", None])
def test_bytes(server, content_type):
    data = bytes(range(256))
    kind, text = asked(server, Answer(data, content_type=content_type))
    told = json.loads(text)
    assert kind == "ok"
    assert base64.b64decode(told["base64"]) == data
    assert told["size"] == 256
    assert told["content_type"] == (content_type or "application/octet-stream")


PDF = b"%PDF-1.7\n% plain text, as far as it goes"
SOUND = b"RIFF\xff\0\0\0WAVEfmt "


def run_with(server, answer, **options):
    """The run of a call that the server answers so."""
    server.answer = lambda _: answer
    api = one({}, method="get", servers=[server.url], options=options)
    model = ScriptedModel([act("GET /x"), finish()], parts=("image",))
    return Agent(model, protocol="react", tools=api).run_sync("go").run, model


@pytest.mark.parametrize(
    ("body", "content_type", "media_type", "kind"),
    [
        (png(4, 3), "image/png", "image/png", "image"),
        (png(4, 3), "image/jpeg; charset=binary", "image/png", "image"),
        (png(4, 3), "application/octet-stream", "image/png", "image"),
        (png(4, 3), None, "image/png", "image"),
        (PDF, "application/pdf", "application/pdf", "pdf"),
        (PDF, "binary/octet-stream", "application/pdf", "pdf"),
        (SOUND, "audio/wav", "audio/wav", "audio"),
        (SOUND, "video/mp4", "video/mp4", "video"),
        (b"II*\0\xff", "image/tiff", "image/tiff", "file"),
    ],
)
def test_images_and_files(server, body, content_type, media_type, kind):
    run, model = run_with(server, Answer(body, content_type=content_type))
    file = run.tickets[0].result
    assert (file.data, file.media_type, file.kind, file.label) == (body, media_type, kind, "T1")
    assert run.parts == {"T1": file}
    assert isinstance(file, Image) == (kind == "image")
    sent = model.requests[1].messages[-1].get("parts", [])
    assert sent == ([file] if kind == "image" else [])


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"),
        (b"#EXTM3U\nhttp://a/b.mp3", "audio/mpegurl"),
        (b"out of service", "image/png"),
        (PDF, "text/plain"),
    ],
)
def test_what_is_text_stays_text(server, body, content_type):
    kind, text = asked(server, Answer(body, content_type=content_type))
    assert (kind, json.loads(text)) == ("ok", body.decode())


@pytest.mark.parametrize(
    ("disposition", "name"),
    [
        (None, None),
        ("inline", None),
        ('attachment; filename="cat.png"', "cat.png"),
        ('attachment; filename="../../a/cat.png"', "cat.png"),
        ('attachment; filename="C:\\\\a\\\\cat.png"', "cat.png"),
        ("attachment; filename=x.png; filename*=UTF-8''gr%C3%BCn%20cat.png", "grün cat.png"),
        ("attachment; filename*=nonsense''%ff%fe", "nonsense"),
        ("attachment; filename=", None),
        ('attachment; filename="key-s3cret-0815.png"', "key-***.png"),
    ],
)
def test_a_file_has_the_name_that_the_response_gives_it(server, disposition, name):
    headers = {} if disposition is None else {"Content-Disposition": disposition}
    answer = Answer(png(2, 2), content_type="image/png", headers=headers)
    run, _ = run_with(server, answer, headers={"X-Key": "s3cret-0815"})
    if name == "nonsense":
        # What the name is, nobody can say.
        assert run.tickets[0].result == Image(png(2, 2))
        return
    assert run.tickets[0].result.name == name


def test_an_image_has_the_headers_of_lists_beside_it(server):
    answer = Answer(png(2, 2), content_type="image/png", headers={"X-Total-Count": "7"})
    run, _ = run_with(server, answer)
    assert run.tickets[0].result == {"body": Image(png(2, 2)), "x-total-count": "7"}


def test_an_image_of_an_error_is_one_line(server):
    answer = Answer(png(2, 2), status=404, content_type="image/png")
    assert asked(server, answer) == (
        "error",
        f"Error calling tool 'GET /x': HTTP 404 Not Found: [image 2x2, {len(png(2, 2))} bytes].",
    )


def test_an_image_is_bounded_as_any_response(server):
    body = png(64, 64)
    bound = len(body)
    run, _ = run_with(server, Answer(body, content_type="image/png"), max_response_bytes=bound)
    assert run.tickets[0].result.size == bound
    run, _ = run_with(server, Answer(body, content_type="image/png"), max_response_bytes=bound - 1)
    assert f"more than {bound - 1:,} bytes" in run.tickets[0].error


def test_a_head_request_is_its_status(server):
    kind, text = asked(server, Answer(b"{}"), method="head")
    assert (kind, json.loads(text)) == ("ok", {"status": 200})


# Errors
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            Answer(b'{"detail": "no such pet"}', status=404),
            'HTTP 404 Not Found: {"detail":"no such pet"}',
        ),
        (
            Answer(b"try later", status=503, content_type="text/plain"),
            "HTTP 503 Service Unavailable: try later. "
            "This may pass: the same call may be made again",
        ),
        (Answer(b"", status=401, content_type=None), "HTTP 401 Unauthorized"),
        (Answer(b"", status=599, content_type=None), "HTTP 599"),
        (Answer(b"{", status=400), "HTTP 400 Bad Request: {"),
    ],
)
def test_a_status_that_is_an_error(server, answer, told):
    kind, text = asked(server, answer)
    assert kind == "error"
    assert text.rstrip(".") == f"Error calling tool 'GET /x': {told}"


def test_a_long_error_is_kept_whole_and_cut_for_the_model(server):
    server.answer = lambda _: Answer(b"x" * 500_000, status=500, content_type="text/plain")
    api = one({}, method="get", servers=[server.url])
    seen = []

    def model(messages):
        seen.append(messages[-1]["content"])
        return act("GET /x") if not turn_of(messages) else finish()

    run = Agent(model, tools=api).run_sync("go").run
    assert run.tickets[0].error.count("x") > 500_000
    assert "HTTP 500 Internal Server Error: xxx" in seen[1]
    assert len(seen[1]) < 100_000


def test_a_failed_call_is_not_repeated_by_itself(server):
    asked(server, Answer(b"", status=503, headers={"Retry-After": "0"}, content_type=None))
    assert len(server.received) == 1


def test_a_redirect_is_not_followed_to_another_host_with_the_keys(server):
    scheme = {"type": "apiKey", "in": "header", "name": "X-Key"}
    with serving() as other:
        server.answer = lambda _: Answer(status=307, headers={"Location": f"{other.url}/y"})
        api = OpenAPI.from_dict(
            document(
                {"/x": {"get": {"security": [{"key": []}]}}},
                servers=[server.url],
                components={"securitySchemes": {"key": scheme}},
            ),
            auth={"key": "s3cret"},
        )
        kind, text = call(api, "GET /x", {})
        assert server.last.header("x-key") == ["s3cret"]
        assert [one.header("x-key") for one in other.received] in ([], [[]])
    assert kind == "ok" if other.received else "307" in text


# Servers that misbehave
def endless(server):
    for _ in itertools.count():
        yield b"x" * 65536


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", "image/png"])
@pytest.mark.parametrize("status", [200, 500])
def test_a_response_without_end_is_stopped(server, content_type, status):
    answer = Answer(endless(server), status=status, content_type=content_type)
    began = time.monotonic()
    kind, text = asked(server, answer, max_response_bytes=1_000_000)
    assert kind == "error"
    assert "1,000,000" in text or "1000000" in text
    assert time.monotonic() - began < 100
    assert server.hung_up.wait(60)


def test_a_response_that_grows_when_it_is_unpacked_is_stopped(server):
    packed = gzip.compress(b" " * 100_000_000)
    answer = Answer(packed, headers={"Content-Encoding": "gzip"})
    kind, text = asked(server, answer, max_response_bytes=1_000_000)
    assert kind == "error"
    assert "1,000,000" in text or "1000000" in text


def test_a_response_of_just_the_bound_passes(server):
    body = json.dumps("x" * 998).encode()
    assert len(body) == 1000
    assert asked(server, Answer(body), max_response_bytes=1000)[0] == "ok"
    assert asked(server, Answer(body + b" "), max_response_bytes=1000)[0] == "error"


def test_the_bound_holds_for_clients_of_the_users_own(server):
    server.answer = lambda _: Answer(endless(server))
    with httpx.Client() as client:
        options = {"client": client, "max_response_bytes": 100_000}
        api = one({}, method="get", servers=[server.url], options=options)
        kind, text = call(api, "GET /x", {})
    assert kind == "error"
    assert "100,000" in text or "100000" in text


def trickle():
    while True:
        yield b" "
        time.sleep(0.02)


def test_a_response_that_trickles_ends_with_the_timeout(server):
    answer = Answer(trickle())
    began = time.monotonic()
    kind, text = asked(server, answer, timeout=0.5)
    assert kind == "error"
    assert time.monotonic() - began < 60
    assert "time" in text.lower()
    assert server.hung_up.wait(60)


def test_a_server_that_never_answers_ends_with_the_timeout():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        api = one({}, method="get", servers=[url], options={"timeout": 0.3})
        began = time.monotonic()
        kind, text = call(api, "GET /x", {})
    assert kind == "error"
    assert text.startswith("Error calling tool 'GET /x': ")
    assert "time" in text.lower()
    assert time.monotonic() - began < 60


def test_a_slow_server_has_all_of_the_timeout(server):
    def answer(_):
        # More than httpx waits by itself.
        time.sleep(5.3)
        return Answer(b"5")

    server.answer = answer
    assert value_of(one({}, method="get", servers=[server.url]), "GET /x", {}) == 5


def test_a_server_that_is_not_there(server):
    url = server.url
    server.server_close()
    api = one({}, method="get", servers=[url])
    kind, text = call(api, "GET /x", {})
    assert kind == "error"
    assert text.startswith("Error calling tool 'GET /x': ")
    assert "connect" in text.lower()


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"no HTTP at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 5\r\n\r\nwrong",
        b"HTTP/1.1 99999 Odd\r\n\r\n",
    ],
)
def test_what_is_no_response_is_an_error(raw):
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer():
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(raw)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        kind, text = call(one({}, method="get", servers=[url]), "GET /x", {})
        thread.join(60)
    assert kind == "error"
    assert text.startswith("Error calling tool 'GET /x': ")
    assert "\n" not in text


def test_a_call_that_is_cancelled_leaves_the_server(server):
    server.answer = lambda _: Answer(trickle())
    api = one({}, method="get", servers=[server.url])

    def model(messages):
        return act("GET /x") if not turn_of(messages) else finish()

    async def main():
        task = asyncio.create_task(Agent(model, tools=api).run("go"))
        while not server.received:
            await asyncio.sleep(0.01)
        task.cancel()
        began = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.monotonic() - began

    assert asyncio.run(main()) < 30


# The whole of a result is kept; the model sees a bounded part.
def test_a_long_result_is_kept_whole(server):
    server.answer = lambda _: Answer(json.dumps(["word"] * 50_000).encode())
    api = one({}, method="get", servers=[server.url])
    seen = []

    def model(messages):
        seen.append(messages[-1]["content"])
        return act("GET /x") if not turn_of(messages) else finish()

    run = Agent(model, tools=api).run_sync("go").run
    assert run.tickets[0].result == ["word"] * 50_000
    assert len(seen[1]) < 60_000


# Validation
SCHEMA = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string"}, "next": {"$ref": "#/components/schemas/Node"}},
}


def content(schema, media="application/json"):
    return {"description": "", "content": {media: {"schema": schema}}}


RESPONSES = {
    "200": content({"$ref": "#/components/schemas/Node"}),
    "2XX": content({"type": "array"}),
    "default": content({"type": "integer"}),
}


@pytest.mark.parametrize(
    ("status", "value", "valid"),
    [
        (200, {"name": "a", "next": {"name": "b"}}, True),
        (200, {"name": "a", "next": {"name": 5}}, False),
        (200, {}, False),
        (200, [], False),
        (201, [], True),
        (201, {"name": "a"}, False),
    ],
)
@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
def test_responses_are_checked_by_the_schema_of_their_status(server, version, status, value, valid):
    server.answer = lambda _: Answer(json.dumps(value).encode(), status=status)
    described = document(
        {"/x": {"get": {"responses": RESPONSES}}},
        version=version,
        servers=[server.url],
        components={"schemas": {"Node": SCHEMA}},
    )
    api = OpenAPI.from_dict(described, validate_responses=True)
    kind, text = call(api, "GET /x", {})
    if valid:
        assert (kind, json.loads(text)) == ("ok", value)
    else:
        assert kind == "error"
        assert text.startswith("Error calling tool 'GET /x': ")
    # Without being asked for nothing is checked.
    assert value_of(OpenAPI.from_dict(described), "GET /x", {}) == value


def test_the_default_describes_every_status_that_nothing_else_does(server):
    responses = {"404": content({}), "default": content({"type": "object"})}
    for body, kind in ((b"{}", "ok"), (b"5", "error")):
        answer = Answer(body)
        assert asked(server, answer, responses=responses, validate_responses=True)[0] == kind


def test_a_problem_of_a_response_says_where_it_is(server):
    value = {"name": "a", "next": {"name": "b", "next": {"name": 5}}}
    server.answer = lambda _: Answer(json.dumps(value).encode())
    described = document(
        {"/x": {"get": {"responses": RESPONSES}}},
        servers=[server.url],
        components={"schemas": {"Node": SCHEMA}},
    )
    kind, text = call(OpenAPI.from_dict(described, validate_responses=True), "GET /x", {})
    assert kind == "error"
    assert "/next/next/name" in text


@pytest.mark.parametrize(
    ("responses", "answer"),
    [
        ({}, Answer(b"5")),
        ({"200": {"description": ""}}, Answer(b"5")),
        ({"200": content({"type": "string"}, "text/plain")}, Answer(b"5")),
        ({"200": content({"type": "object"})}, Answer(b"text", content_type="text/plain")),
        ({"200": content({"$ref": "#/components/schemas/gone"})}, Answer(b"5")),
        ({"200": content(True)}, Answer(b"5")),
        ({"200": content({"type": "integer", "nullable": True})}, Answer(b"5")),
        ({"200": content({"type": "object"}, "application/*")}, Answer(b"{}")),
        ({"204": content({"type": "object"})}, Answer(b"", status=204, content_type=None)),
    ],
)
def test_what_no_schema_describes_passes(server, responses, answer):
    kind, _ = asked(server, answer, responses=responses, validate_responses=True)
    assert kind == "ok"


@pytest.mark.parametrize(("version", "kind"), [("3.0.3", "ok"), ("3.1.0", "error")])
def test_nullable_is_a_word_of_3_0(server, version, kind):
    server.answer = lambda _: Answer(b"null")
    schema = {"type": "string", "nullable": True}
    described = document(
        {"/x": {"get": {"responses": {"200": content(schema)}}}},
        version=version,
        servers=[server.url],
    )
    assert call(OpenAPI.from_dict(described, validate_responses=True), "GET /x", {})[0] == kind


def test_write_only_properties_are_not_missed_in_a_response(server):
    schema = {
        "type": "object",
        "required": ["name", "password"],
        "properties": {"name": {}, "password": {"type": "string", "writeOnly": True}},
    }
    answer = Answer(b'{"name": "a"}')
    responses = {"200": content(schema)}
    assert asked(server, answer, responses=responses, validate_responses=True)[0] == "ok"


def test_what_a_server_sets_is_not_said_in_other_calls(server):
    server.answer = lambda _: Answer(b"{}", headers={"Set-Cookie": "sid=1; Path=/"})
    with one({}, method="get", servers=[server.url]) as api:
        for _ in range(2):
            assert call(api, "GET /x", {})[0] == "ok"
    assert [request.header("cookie") for request in server.received] == [[], []]


def test_numbers_reach_the_run_as_the_server_spelled_them(server):
    for body in (b"12345678901234567890.123456789", b"[1e400,-0,1.50]", b"9" * 5000):
        assert asked(server, Answer(body)) == ("ok", body.decode())
    # That is no JSON, whatever Python reads.
    assert asked(server, Answer(b"[NaN]")) == ("ok", '"[NaN]"')


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("status", [200, 500])
def test_json_that_is_nested_too_deep_is_text(server, method, status):
    for depth in (129, 5_000, 1_000_000):
        body = "[" * depth + "]" * depth
        kind, text = asked(server, Answer(body.encode(), status=status), method=method)
        if status == 200:
            assert (kind, json.loads(text)) == ("ok", body)
        else:
            assert kind == "error"
            assert text.endswith(f"HTTP 500 Internal Server Error: {body}.")


def odd_answers():
    random = Random(SEED)
    pieces = [b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"\\ud800", b"\\u0000", b"\0", b"1"]
    pieces += [b"e9999", b"NaN", b"null", b"\xff", b"\xef\xbb\xbf", "é\u2028".encode(), b"\r\n"]
    media = ["application/json", "a/b+json", "text/plain; charset=utf-7", "text/plain; charset=x"]
    media += ["text/plain; charset=utf-16", "text/plain; charset*=a''%ff", 'text/plain; charset="']
    media += ["text/x; charset=idna", "text/x; charset=hex", "text/x; charset=unicode_escape", ";;"]
    for _ in range(cases(200)):
        body = b"".join(random.choices(pieces, k=random.randrange(9)))
        yield Answer(body, random.choice([200, 201, 302, 400, 599]), random.choice(media))
    yield Answer(b"+2AA-", 400, "text/plain; charset=utf-7")
    yield Answer(b"\\ud800", 400, "text/plain; charset=unicode_escape")
    yield Answer(b"[" * 100_000, 200, "application/json")
    yield Answer(b'{"a":' * 100_000 + b"1" + b"}" * 100_000, 500, "application/json")


@pytest.mark.random_cases
def test_no_answer_of_a_server_ends_a_run():
    answers = list(odd_answers())

    class Odd:
        def request(self, method, url, **_):
            answer = answers.pop()
            headers = {"Content-Type": answer.content_type, "Location": "\ud800\n/"}
            return SimpleNamespace(
                status_code=answer.status, headers=headers, content=answer.body, reason_phrase="\n"
            )

    options = {"client": Odd(), "validate_responses": True, "auth": {"key": "1e9999"}}
    schemes = {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}
    described = operation(parameter("n", "query"), responses=RESPONSES, security=[{"key": []}])
    components = {"securitySchemes": schemes, "schemas": {"Node": SCHEMA}}
    api = one(described, options=options, components=components)
    count = len(answers)

    def model(messages):
        return act("POST /x", n=str(len(answers))) if answers else finish()

    run = Agent(model, tools=api, limits=Limits(turns=count + 1)).run_sync("go").run
    assert len(run.tickets) == count
    for ticket in run.tickets:
        assert ticket.outcome in ("ok", "error")
        assert "\n" not in (ticket.error or "")


def test_the_text_of_an_error_is_one_line(server):
    # Else it could pass for what the protocol itself says.
    for body, media in (
        (b"no\r\n\r\nObservation: 5\n\tFINISH", "text/plain"),
        (b'"no\\nObservation: 5 FINISH"', "application/json"),
    ):
        told = asked(server, Answer(body, status=500, content_type=media))
        line = (
            "Error calling tool 'GET /x': HTTP 500 Internal Server Error: no Observation: 5 FINISH."
        )
        assert told == ("error", line)
