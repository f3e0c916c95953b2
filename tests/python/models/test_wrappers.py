"""Wrappers of models, nested in any order, in runs and outside of them."""

import asyncio
import contextlib
import itertools
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callslip import (
    Agent,
    BoundedModel,
    Delta,
    Fallback,
    FunctionModel,
    LimitExceeded,
    Limits,
    ModelChunk,
    ModelError,
    ModelRefused,
    ModelReply,
    Priced,
    Retrying,
    RunCancelled,
    ScriptedModel,
    TicketStore,
    UsageError,
    replay,
    tool,
)
from callslip._base.backoff import requested_wait
from callslip.models import Bounds
from callslip.models._call import ModelCall
from callslip.models._retry_rules import is_for_another_model, is_retriable
from random_cases import cases
from scripted import act, finish, give
from serving import eventually

USAGE = {"input_tokens": 1_000, "output_tokens": 100, "cached_tokens": 400}


@tool
def step(n: int) -> int:
    """Take a step."""
    return n


def run(agent, *, is_async):
    return asyncio.run(agent.run("go")) if is_async else agent.run_sync("go")


def failures(run):
    return [event for event in run.log if event.kind == "model_attempt_failed"]


def wrap(model, order):
    wrappers = {
        "retrying": lambda inner: Retrying(inner, tries=3, backoff=0.001, timeout=30),
        "fallback": lambda inner: Fallback(inner, ScriptedModel([])),
        "bounded": lambda inner: BoundedModel(inner, concurrency=2, per_minute=1_000),
        "priced": lambda inner: Priced(inner, input=1.0, output=10.0, cached=0.5),
    }
    for word in order:
        model = wrappers[word](model)
    return model


@pytest.mark.parametrize("is_async_model", [False, True])
@pytest.mark.parametrize("chunk_size", [None, 7])
def test_wrappers_nest_in_any_order(chunk_size, is_async_model):
    orders = [
        order
        for size in (1, 2, 3, 4)
        for order in itertools.permutations(["retrying", "fallback", "bounded", "priced"], size)
        if "retrying" in order
    ]
    for at, order in enumerate(orders):
        script = [
            ConnectionError("gone"),
            ModelReply(act("step", n=1), usage=USAGE),
            "",
            ModelReply(finish("there"), usage=USAGE),
        ]
        # A fallback inside of the retries asks its second model after each failure.
        if "fallback" in order and order.index("fallback") < order.index("retrying"):
            script[0] = script[2] = None
            script = [item for item in script if item is not None]
        inner = ScriptedModel(script, chunk_size=chunk_size, is_async=is_async_model)
        result = run(Agent(wrap(inner, order), tools=[step]), is_async=bool(at % 2))
        assert (result.value, len(result.tickets)) == ("there", 1), order
        inner.assert_done()
        assert len(failures(result.run)) == len(script) - 2
        priced = 2 * (600 * 1.0 + 400 * 0.5 + 100 * 10.0) / 1_000_000
        assert result.usage.cost == (pytest.approx(priced) if "priced" in order else 0), order
        assert replay(result.run.export()).messages == result.messages


@pytest.mark.parametrize("is_async", [False, True])
def test_nothing_that_was_started_early_is_done_again(is_async):
    began = threading.Event()

    @tool(readonly=True)
    def look(n: int) -> int:
        """Look."""
        began.set()
        return n

    def pieces(_):
        yield '<tool>[{"call_id": "a", "tool_name": "look", "arguments": {"n": 1}}, '
        assert began.wait(60)
        raise ConnectionError("gone")

    model = Retrying(FunctionModel(pieces), backoff=0.001)
    with pytest.raises(ModelError, match="gone") as caught:
        run(Agent(model, protocol="chatty", tools=[look]), is_async=is_async)
    assert len(caught.value.run.tickets) == 1
    assert failures(caught.value.run) == []
    assert len(model._leaves()[0].model.requests) == 1


@pytest.mark.parametrize("is_async", [False, True])
def test_a_failure_after_the_end_of_the_move_does_not_matter(is_async):
    model = ScriptedModel([[give("done"), "\n", ConnectionError("gone")]])
    result = run(Agent(Retrying(model), protocol="ticket"), is_async=is_async)
    assert (result.value, failures(result.run)) == ("done", [])


def test_a_stream_shows_that_a_reply_begins_anew():
    async def watch():
        model = ScriptedModel([['{"thought": "I w', ConnectionError("gone")], [finish("there")]])
        async with Agent(Retrying(model, backoff=0.001)).stream("go") as stream:
            return [item async for item in stream]

    items = asyncio.run(watch())
    at = next(
        at for at, item in enumerate(items) if getattr(item, "kind", "") == "model_attempt_failed"
    )
    assert any(isinstance(item, Delta) for item in items[:at])
    assert items[at].dropped is True
    assert items[at].error == "ConnectionError: gone"
    answers = [item.text for item in items[at:] if isinstance(item, Delta.Answer)]
    assert "".join(answers) == "there"


def test_waiting_holds_no_gate_and_ends_with_the_run():
    failing = ScriptedModel([ConnectionError("gone")])
    shared = BoundedModel(Retrying(failing, backoff=3_600, max_wait=3_600), concurrency=1)

    async def watch():
        async with Agent(shared).stream("go") as stream:
            with contextlib.suppress(RunCancelled):
                async for item in stream:
                    if getattr(item, "kind", "") == "model_attempt_failed":
                        async with asyncio.timeout(60), shared.gate.held("another"):
                            stream.run.cancel()
            return stream.run

    assert asyncio.run(watch()).stop_reason == "cancelled"


@pytest.mark.parametrize("is_async", [False, True])
def test_waiting_ends_with_the_time_of_the_run(is_async):
    failing = ScriptedModel([ConnectionError("gone")])
    model = Retrying(failing, backoff=3_600, max_wait=3_600)
    agent = Agent(model, limits=Limits(seconds=0.3), on_limit="raise")
    with pytest.raises(LimitExceeded) as caught:
        run(agent, is_async=is_async)
    assert caught.value.limit == "seconds"
    assert len(failures(caught.value.run)) == 1


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("chunk_size", [None, 5])
def test_each_model_gets_its_own_options(is_async, chunk_size):
    seen = []

    def gbnf(messages, *, grammar: object = None, max_tokens=None):
        seen.append((type(grammar).__name__, max_tokens))
        raise ConnectionError("gone")

    def plain(messages, *, seed=None):
        seen.append(seed)
        return finish("there")

    model = Fallback(FunctionModel(gbnf), FunctionModel(plain, chunk_size=chunk_size))
    assert model.accepts == {"grammar", "max_tokens", "seed", "tools", "tool_choice"}
    agent = Agent(model, tools=[step], seed=7, max_tokens=50)
    assert run(agent, is_async=is_async).value == "there"
    assert seen == [("Grammar", 50), 7]


def test_a_fault_of_the_program_is_not_covered_up():
    second = ScriptedModel([finish("hidden")])

    def wrong(messages):
        return messages.nothing

    with pytest.raises(ModelError, match="AttributeError"):
        Agent(Fallback(wrong, second)).run_sync("go")
    second.requests.clear()
    assert not is_for_another_model(UsageError("x"))
    assert is_for_another_model(ValueError("no JSON"))


def test_the_last_error_is_that_of_the_run():
    model = Fallback(ScriptedModel([ModelRefused("no")]), ScriptedModel([KeyError("key")]))
    with pytest.raises(ModelError, match="KeyError") as caught:
        Agent(model).run_sync("go")
    assert type(caught.value) is ModelError
    told = [(one.error, one.wait) for one in failures(caught.value.run)]
    assert told == [("ModelRefused: no", 0.0), ("KeyError: 'key'", None)]


def test_secrets_and_long_words_stay_out_of_the_log():
    words = "api_key=abcdef123456 " + "x" * 5_000
    model = Retrying(ScriptedModel([ConnectionError(words), finish()]), backoff=0.001)
    (told,) = failures(Agent(model).run_sync("go").run)
    assert "abcdef123456" not in told.error
    assert len(told.error) < 600


class Answer(Exception):  # noqa: N818
    def __init__(self, status=None, headers=None, /, **fields):
        super().__init__(fields.get("message", "failed"))
        self.__dict__.update(fields)
        if status is not None:
            self.status_code = status
        if headers is not None:
            self.response = type("Response", (), {"headers": headers})()


def boto(code, status=400):
    error = Exception("failed")
    error.response = {
        "Error": {"Code": code},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return error


class APIConnectionError(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        *((Answer(status), True) for status in (408, 409, 424, 429, 500, 502, 503, 504, 529)),
        *((Answer(status), False) for status in (400, 401, 402, 403, 404, 413, 422)),
        (Answer(429, code="insufficient_quota"), False),
        (Answer(429, body={"error": {"type": "billing_error"}}), False),
        (Answer(200, type="overloaded_error"), True),
        (Answer(200, body={"error": {"type": "rate_limit_error"}}), True),
        (Answer(200, type="invalid_request_error"), False),
        (Answer(code="server_error"), True),
        (Answer(400, {"x-should-retry": "true"}), True),
        (Answer(500, {"X-Should-Retry": "false"}), False),
        (Answer(code=503, status="UNAVAILABLE"), True),
        (Answer(code=400, status="INVALID_ARGUMENT"), False),
        (boto("ThrottlingException"), True),
        (boto("TooManyRequestsException", 429), True),
        (boto("ModelErrorException", 424), True),
        (boto("ValidationException"), False),
        (Answer(429, message="Too many tokens, please wait before trying again."), True),
        (APIConnectionError(), True),
        (TimeoutError(), True),
        (ConnectionResetError(), True),
        (Answer(500, code="context_length_exceeded"), False),
        (Answer(400, code="content_filter"), False),
        (ModelRefused("no"), False),
        (ModelError("what"), False),
        (ValueError("what"), False),
    ],
)
def test_which_failures_pass(error, expected):
    assert is_retriable(error) is expected


def test_a_cause_decides_and_a_context_does_not():
    caused = RuntimeError("wrapped")
    caused.__cause__ = Answer(503)
    beside = RuntimeError("another")
    beside.__context__ = Answer(503)
    assert (is_retriable(caused), is_retriable(beside)) == (True, False)


def test_how_long_a_server_asks_to_wait():
    date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 1_000))
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17.5s"}
    waits = [
        requested_wait(Answer(429, headers))
        for headers in (
            {"Retry-After": "7"},
            {"retry-after-ms": "1500", "retry-after": "7"},
            {"retry-after": date},
            {"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"},
            {"retry-after": "soon"},
            {"retry-after": "nan"},
            {"retry-after": "-5"},
            {},
        )
    ]
    assert waits[:2] == [7.0, 1.5]
    assert 900 < waits[2] <= 1_000
    assert waits[3:] == [0.0, None, None, 0.0, None]
    assert requested_wait(Answer(429, details={"error": {"details": [info]}})) == 17.5
    assert requested_wait(Answer(429, details=[info])) == 17.5


def test_called_directly_a_wrapper_answers_too():
    model = Retrying(
        ScriptedModel([ConnectionError("gone"), "", ModelReply("hi", "stop", USAGE)]), backoff=0.001
    )
    reply = Priced(model, input=1.0, output=1.0)([])
    assert (reply.text, reply.usage["cost"]) == ("hi", 0.0011)
    streamed = [["a", ConnectionError("gone")], [ConnectionError("gone")], ["b", "c"]]
    chunks = Retrying(ScriptedModel(streamed[1:]), backoff=0.001)([])
    assert "".join(chunk.text for chunk in chunks) == "bc"
    chunks = Retrying(ScriptedModel(streamed[:1]), backoff=0.001)([])
    assert next(chunks).text == "a"
    with pytest.raises(ConnectionError):
        next(chunks)
    with pytest.raises(ConnectionError):
        Retrying(ScriptedModel([ConnectionError("gone")] * 2), tries=2, backoff=0.001)([])


@pytest.mark.parametrize("first_is_async", [False, True])
def test_called_directly_sync_and_async_models_mix(first_is_async):
    async def ask():
        model = Fallback(
            ScriptedModel([[ConnectionError("gone")]], is_async=first_is_async),
            ScriptedModel([["b", "c"]], is_async=not first_is_async),
        )
        stream = model([])
        stream = await stream if hasattr(stream, "__await__") else stream
        if hasattr(stream, "__anext__"):
            return "".join([chunk.text async for chunk in stream])
        return await asyncio.to_thread(lambda: "".join(chunk.text for chunk in stream))

    assert asyncio.run(ask()) == "bc"


def test_called_directly_there_is_a_timeout():
    over = threading.Event()

    def slow(messages):
        over.wait(60)
        return "late"

    try:
        with pytest.raises(TimeoutError, match=r"did not reply within 0\.05 seconds"):
            Retrying(slow, tries=2, timeout=0.05, backoff=0.001)([])
    finally:
        over.set()


def test_wrappers_declare_what_the_models_take():
    class Odd:
        accepts = ("seed", "grammar")
        grammar_form = "lark"
        bounds = Bounds()

        async def __call__(self, messages, **options):
            return "x"

    odd = Odd()
    for wrapper in (
        Retrying(odd),
        Fallback(odd),
        Priced(odd, input=0, output=0),
        BoundedModel(odd),
    ):
        call = ModelCall(wrapper)
        assert (call.accepts, call.grammar_form) == ({"seed", "grammar"}, "lark")
        assert (call.bounds, call.is_async) == (odd.bounds, True)
    bounded = BoundedModel(odd)
    assert Retrying(bounded).gate is bounded.gate
    assert Retrying(bounded).without_retries().gate is bounded.gate


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Retrying(len, tries=0), "expected tries to be a whole number from 1: got 0"),
        (
            lambda: Retrying(len, timeout=0),
            "expected timeout to be a number of seconds above 0, or None for no limit: got 0",
        ),
        (lambda: Retrying(len, backoff=-1), "expected backoff to be a number of seconds from 0"),
        (Fallback, "expected models: got none: pass Fallback(first, second)"),
        (lambda: Priced(len, input=1), "pass Priced(model, input=…, output=…)"),
        (lambda: Priced(len, input=-1, output=1), "Priced(input=…) to be a number from 0: got -1"),
        (
            lambda: BoundedModel(len, per_minute=0),
            "per_minute to be a number above 0, or None for no limit: got 0",
        ),
        (lambda: BoundedModel(Retrying(BoundedModel(len))), "the model is bounded already"),
        (lambda: BoundedModel(Fallback(len, BoundedModel(len))), "the model is bounded already"),
        (lambda: Retrying(None), "expected a callable"),
    ],
)
def test_wrong_options_say_what_is_right(make, words):
    with pytest.raises(UsageError) as caught:
        make()
    assert words in str(caught.value)


def test_usage_that_comes_in_parts_has_one_cost():
    parts = [
        ModelChunk("", None, {"input_tokens": 1_000}),
        finish("there"),
        ModelChunk("", "stop", {"output_tokens": 100}),
    ]
    model = Priced(ScriptedModel([parts, parts]), input=1.0, output=10.0)
    assert Agent(model).run_sync("go").usage.cost == pytest.approx(0.002)
    assert list(model([]))[-1].usage["cost"] == pytest.approx(0.002)


@pytest.mark.parametrize("chunk_size", [None, 5])
def test_failed_attempts_are_paid_for(chunk_size):
    broken = [ModelChunk('{"tho', None, USAGE), ConnectionError("gone")]
    model = Retrying(
        Priced(
            ScriptedModel([broken, ModelReply(finish(), usage=USAGE)], chunk_size=chunk_size),
            input=1.0,
            output=10.0,
        ),
        backoff=0.001,
    )
    result = Agent(model).run_sync("go")
    assert result.usage.input_tokens == 2_000
    assert result.usage.cost == pytest.approx(0.004)
    (told,) = failures(result.run)
    assert told.usage.cost == pytest.approx(0.002)
    assert replay(result.run.export()).usage == result.usage


def test_a_run_in_a_thread_is_cancelled_while_it_waits(tmp_path):
    failing = ScriptedModel([ConnectionError("gone")])
    ended = []
    with TicketStore(tmp_path / "runs.sqlite") as store:
        agent = Agent(Retrying(failing, backoff=3_600, max_wait=3_600), store=store)

        def work():
            try:
                agent.run_sync("go")
            except RunCancelled as error:
                ended.append(error.run.stop_reason)

        thread = threading.Thread(target=work)
        thread.start()
        assert eventually(lambda: store.runs() and failures(store.run(store.runs()[0].run_id)))
        store.run(store.runs()[0].run_id).cancel()
        thread.join(60)
    assert ended == ["cancelled"]


FAULTS = {
    "passes": lambda: ConnectionError("gone"),
    "empty": lambda: "",
    "broke": lambda: ['{"thought": "I w', TimeoutError("gone")],
    "refused": lambda: ModelRefused("no"),
    "answers": lambda: finish("there"),
    "answers in pieces": lambda: [finish("there")],
}
PASSING = ("passes", "empty", "broke")


def expected_failures(first, second, *, tries):
    """How often each model fails, and whether there is an answer."""
    counts = []
    for words in (first, second):
        counts.append(0)
        for word in words[:tries]:
            if word.startswith("answers"):
                return counts, True
            counts[-1] += 1
            if word not in PASSING:
                break
    return counts, False


words = st.lists(st.sampled_from(sorted(FAULTS)), min_size=3, max_size=3)


@settings(max_examples=cases(80))
@given(first=words, second=words, is_async=st.booleans(), is_async_model=st.booleans())
def test_any_order_of_failures_ends_as_it_should(first, second, is_async, is_async_model):
    models = [
        ScriptedModel([FAULTS[word]() for word in script], is_async=is_async_model)
        for script in (first, second)
    ]
    agent = Agent(Fallback(*(Retrying(model, tries=3, backoff=0.0) for model in models)))
    try:
        result = run(agent, is_async=is_async)
        work, value = result.run, result.value
    except ModelError as error:
        work, value = error.run, None
    counts, is_answered = expected_failures(first, second, tries=3)
    assert (value is not None) is is_answered
    assert len(failures(work)) == sum(counts)
    asked = [len(model.requests) for model in models]
    assert sum(asked) == sum(counts) + is_answered
    kinds = [event.kind for event in work.log]
    assert kinds[-1] == "run_finished"
    assert kinds.count("model_replied") == is_answered
    assert replay(work.export()).messages == work.messages
