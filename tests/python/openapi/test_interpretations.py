"""Whatever a server makes of a path: an operation that is guarded is not reached without asking."""

import random
from typing import ClassVar
from urllib.parse import unquote

import pytest

from callslip import Agent, OpenAPI, ScriptedModel
from random_cases import seeds
from scripted import act, finish

WORDS = ["users", "all", "rules", "protection", "keys", "x"]


class Client:
    """Notes what it is asked for."""

    base_url = ""

    def __init__(self):
        self.sent = []

    def request(self, method, url, **options):
        self.sent.append((method, url, dict(options.get("headers") or {})))

        class Response:
            status_code = 200
            headers: ClassVar[dict[str, str]] = {"content-type": "application/json"}
            content = b"{}"

        return Response()


def document(names, overrides=False):
    paths = {}
    for name in names:
        method, path = name.split()
        places = [part.split("}")[0] for part in path.split("{")[1:]]
        parameters = [
            {"name": one, "in": "path", "required": True, "schema": {"type": "string"}}
            for one in places
        ]
        if overrides:
            header = {
                "name": "X-HTTP-Method-Override",
                "in": "header",
                "schema": {"type": "string"},
            }
            parameters.append(header)
        paths.setdefault(path, {})[method.lower()] = {"parameters": parameters}
    about = {"title": "t", "version": "1"}
    servers = [{"url": "https://api.example"}]
    return {"openapi": "3.1.0", "info": about, "servers": servers, "paths": paths}


def reads(path):
    """What servers of several kinds read."""
    for before in range(3):
        text = path
        for _ in range(before):
            text = unquote(text)
        for cut in (text, text.split("?")[0], text.split("#")[0]):
            for slashed in (cut, cut.replace("\\", "/")):
                yield from _segments(slashed.split("/"), 2 - before)


def _segments(parts, more):
    for times in range(more + 1):
        read = parts
        for _ in range(times):
            read = [unquote(part) for part in read]
        for plain in (read, [part.split(";")[0] for part in read]):
            full = [part.strip().lower() for part in plain if part.strip()]
            settled = []
            for part in full:
                settled = (
                    settled[:-1] if part == ".." else [*settled, part] if part != "." else settled
                )
            for one in (full, settled):
                yield one
                if one and "." in one[-1][1:]:
                    yield [*one[:-1], one[-1].rsplit(".", 1)[0]]


def fits(template, segments):
    """Whether segments are those of a path; and in which of them its own text stands."""
    parts = template.strip("/").split("/")
    if len(parts) != len(segments):
        return None
    said = [not part.startswith("{") for part in parts]
    same = all(
        not own or part == text for own, part, text in zip(said, parts, segments, strict=True)
    )
    return said if same else None


def may_reach(path, own, guarded):
    """Whether some server takes a path for the guarded operation rather than for its own."""
    for segments in reads(path):
        other, mine = fits(guarded, segments), fits(own, segments)
        if other is not None and (
            mine is None or any(b and not a for a, b in zip(mine, other, strict=True))
        ):
            return True
    return False


def templates(chance):
    """A path with placeholders, and one that values may spell."""
    length = chance.randint(1, 4)
    guarded = [chance.choice(WORDS) for _ in range(length)]
    own = [part if chance.random() < 0.5 else f"{{p{at}}}" for at, part in enumerate(guarded)]
    if not any(part.startswith("{") for part in own):
        own[chance.randrange(length)] = "{p9}"
    guarded = [f"{{g{at}}}" if chance.random() < 0.3 else part for at, part in enumerate(guarded)]
    # Sometimes of another length, which a slash in a value makes up for.
    if chance.random() < 0.4:
        guarded.insert(chance.randrange(len(guarded) + 1), chance.choice(WORDS))
    return "/" + "/".join(own), "/" + "/".join(guarded)


def value(chance, guarded):
    """A value that may spell a part of the guarded path."""
    words = [part for part in guarded.split("/") if part and not part.startswith("{")] or ["x"]
    text = chance.choice(["", "a/", "./", "feature/", "x\\"]) + chance.choice([*words, "ann"])
    text += chance.choice(
        ["", "", "/", ";v=1", ".json", "?a", "#a", "%2F", " ", "/" + chance.choice(words)]
    )
    for _ in range(chance.randint(0, 2)):
        at = chance.randrange(len(text))
        text = f"{text[:at]}%{ord(text[at]):02X}{text[at + 1 :]}"
    return text


def call(api, client, name, arguments):
    """Whether somebody was asked, and what was sent."""
    asked = []
    model = ScriptedModel([act(name, **arguments), finish()])
    Agent(model, tools=[api]).run_sync("go", approve=lambda ticket: bool(asked.append(ticket)))
    return bool(asked), client.sent


@pytest.mark.parametrize("seed", seeds(60))
@pytest.mark.parametrize("how", ["approval", "excluded"])
def test_nothing_that_may_be_the_guarded_operation_is_sent_unasked(seed, how):
    chance = random.Random(seed)
    own, guarded = templates(chance)
    names = [f"DELETE {own}", f"DELETE {guarded}"]
    if own == guarded:
        return
    client = Client()
    option = {"needs_approval": [names[1]]} if how == "approval" else {"include": [names[0]]}
    api = OpenAPI(document(names), client=client, **option)
    places = [part.split("}")[0] for part in own.split("{")[1:]]
    arguments = {place: value(chance, guarded) for place in places}
    asked, sent = call(api, client, names[0], arguments)
    for method, url, _ in sent:
        assert method == "DELETE"
        path = url.removeprefix("https://api.example")
        assert asked or not may_reach(path, own, guarded), (names, arguments, url)


@pytest.mark.parametrize("how", ["approval", "excluded"])
@pytest.mark.parametrize(
    ("names", "arguments"),
    [
        (
            [
                "DELETE /branches/{branch}/rules/{rule}",
                "DELETE /branches/{branch}/rules/protection",
            ],
            {"branch": "feature/x", "rule": "protection"},
        ),
        (["DELETE /users/{name}", "DELETE /users/all"], {"name": "all.json"}),
        (["DELETE /users/{name}", "DELETE /users/all"], {"name": "all?x"}),
        (["DELETE /users/{name}", "DELETE /users/{name}/all"], {"name": "./all"}),
        (["POST /users/{name}", "DELETE /users/{name}"], {"X-HTTP-Method-Override": "DELETE"}),
        (["POST /users", "DELETE /users"], {"X-HTTP-Method-Override": "delete"}),
    ],
)
def test_known_ways_to_another_operation(names, arguments, how):
    client = Client()
    option = {"needs_approval": [names[1]]} if how == "approval" else {"include": [names[0]]}
    api = OpenAPI(document(names, overrides=True), client=client, **option)
    if "{name}" in names[0]:
        arguments = {"name": "ann"} | arguments
    asked, sent = call(api, client, names[0], arguments)
    assert (asked, sent) == (how == "approval", [])


def test_other_values_are_sent_unasked():
    names = ["DELETE /branches/{branch}/rules/{rule}", "DELETE /branches/{branch}/rules/protection"]
    client = Client()
    api = OpenAPI(document(names), client=client, needs_approval=[names[1]])
    asked, sent = call(api, client, names[0], {"branch": "feature/x", "rule": "v1.2"})
    assert (asked, [url for _, url, _ in sent]) == (
        False,
        ["https://api.example/branches/feature%2Fx/rules/v1.2"],
    )
