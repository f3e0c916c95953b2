"""Small OpenAPI documents, as tests write them."""

import json

from callslip import CallslipError, Context, OpenAPI
from callslip._threads import pool
from callslip.tools._toolbox import Toolbox
from tool_calls import kind_and_text

SERVER = "http://api.test"


def document(paths, *, version="3.1.0", servers=(SERVER,), **further):
    """A document of these path items."""
    return {
        "openapi": version,
        "info": {"title": "T", "version": "1"},
        "servers": [{"url": url} if isinstance(url, str) else url for url in servers],
        "paths": paths,
        **further,
    }


def operation(*parameters, body=None, media="application/json", required=True, **further):
    """An operation with parameters, and a body of this schema."""
    made = {"responses": {"200": {"description": "OK"}}, **further}
    if parameters:
        made["parameters"] = list(parameters)
    if body is not None:
        encoding = made.pop("encoding", None)
        content = {"schema": body} if encoding is None else {"schema": body, "encoding": encoding}
        made["requestBody"] = {"required": required, "content": {media: content}}
    return made


def parameter(name, place, schema=None, **further):
    """A parameter; one of a path is required."""
    made = {"name": name, "in": place, **further}
    if "content" not in further:
        made["schema"] = {"type": "string"} if schema is None else schema
    if place == "path":
        made["required"] = True
    return made


def one(operation, *, path="/x", method="post", options=None, **further):
    """A document with one operation, read."""
    return OpenAPI.from_dict(document({path: {method: operation}}, **further), **(options or {}))


def plan(operation, arguments, *, path="/x", method="post", **further):
    """The request that a call of a document's one operation makes."""
    api = one(operation, path=path, method=method, **further)
    return api.request(f"{method.upper()} {path}", arguments)


def planned(api, name, arguments):
    """The plan of a call, or the words in which it is refused."""
    try:
        return api.request(name, arguments)
    except (CallslipError, ValueError) as error:
        return str(error)


def header(request, name):
    """The values of a header in a plan."""
    return [value for key, value in request.headers if key.lower() == name.lower()]


def call(api, name, arguments):
    """What comes of a call with arguments that are checked first: its kind, and the text kept.

    All calls of all tests run on the loop that `run_sync` uses.
    """
    checked = Toolbox([api]).tool_set.check(name, json.dumps(arguments))
    context = Context(run_id="r", ticket_id="T1", tool=name)
    return kind_and_text(pool.on_loop(api.tools[name].acall(checked, context)).result(60).get())


def value_of(api, name, arguments):
    """The value that a call gives; it must succeed."""
    kind, text = call(api, name, arguments)
    assert kind == "ok", text
    return json.loads(text)
