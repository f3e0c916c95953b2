"""Failures that may pass by themselves: the same call may be made again."""

import json

import pytest

from callslip import Agent, OpenAPI, ScriptedModel, replay, tool
from scripted import act, finish

ABOUT = {"title": "t", "version": "1"}
GET = {
    "openapi": "3.1.0",
    "info": ABOUT,
    "servers": [{"url": "https://a.example"}],
    "paths": {"/x": {"get": {}}},
}


class Client:
    """Answers as it is told, then with 1."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.calls = 0

    def request(self, method, url, **options):
        self.calls += 1
        status, headers = 200, {"content-type": "application/json"}
        if self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            status, headers = answer

        class Response:
            status_code = status
            content = b"1"

        Response.headers = headers
        return Response()


BUSY = [
    (429, {"Retry-After": "30"}),
    (503, {"retry-after": "Wed, 21 Oct 2037 07:28:00 GMT"}),
    *[(status, {}) for status in (408, 425, 429, 502, 503, 504)],
    TimeoutError("no answer"),
    ConnectionResetError("reset"),
]


@pytest.mark.parametrize("answer", BUSY, ids=str)
def test_the_same_call_is_made_again(answer):
    client = Client(*[answer] * 4)
    model = ScriptedModel([*[act("GET /x")] * 5, finish()])
    result = Agent(model, tools=OpenAPI(GET, client=client, retries=0)).run_sync("go")
    assert client.calls == 5
    assert [one.outcome for one in result.tickets] == ["error"] * 4 + ["ok"]
    told = result.tickets[0].error
    assert "the same call may be made again" in told
    if isinstance(answer, tuple) and answer[1]:
        after = next(iter(answer[1].values()))
        assert f"retry after {after}" in told
    assert result.run.violations == 0
    assert replay(result.run).export() == result.run.export()


@pytest.mark.parametrize("status", [400, 401, 404, 422, 500])
def test_another_failure_is_not_repeated(status):
    client = Client(*[(status, {})] * 4)
    model = ScriptedModel([act("GET /x"), act("GET /x"), finish()])
    result = Agent(model, tools=OpenAPI(GET, client=client)).run_sync("go")
    assert (client.calls, result.run.violations) == (1, 1)


class StatusError(Exception):
    """As the HTTP clients raise it."""

    def __init__(self, status):
        super().__init__(f"status {status}")
        self.response = type("Response", (), {"status_code": status})


@pytest.mark.parametrize(
    "failure",
    [ConnectionError("refused"), *map(StatusError, (408, 425, 429, 502, 503, 504))],
    ids=str,
)
def test_of_a_tool_of_the_programs_own(failure):
    calls = []

    @tool
    def fetch() -> int:
        """Fetch."""
        calls.append(1)
        if len(calls) < 4:
            raise failure
        return 1

    model = ScriptedModel([*[act("fetch")] * 4, finish()])
    result = Agent(model, tools=[fetch]).run_sync("go")
    assert [one.outcome for one in result.tickets] == ["error", "error", "error", "ok"]


def test_a_call_that_may_have_had_an_effect_says_so():
    about = {**GET, "paths": {"/x": {"post": {}}}}
    api = OpenAPI(about, client=Client(TimeoutError("no answer"), (503, {})))
    calls = [act("POST /x"), act("POST /x"), finish()]
    result = Agent(ScriptedModel(calls), tools=api).run_sync("go")
    assert "Whether it took effect is not known" in result.tickets[0].error
    assert "the same call may be made again" in result.tickets[1].error


def test_polling_an_operation_ends_no_run():
    client = Client()
    model = ScriptedModel([*[act("GET /x")] * 12, finish()])
    api = OpenAPI(GET, client=client, repeatable=["GET /x"])
    result = Agent(model, tools=api).run_sync("go")
    assert (client.calls, result.run.violations) == (12, 0)
    assert json.loads(api.document.spec("GET /x"))["repeatable"] is True


def test_patterns_of_repeatable_must_mean_something():
    with pytest.raises(Exception, match="no operation that fits 'GET /y'"):
        OpenAPI(GET, client=Client(), repeatable=["GET /y"])
