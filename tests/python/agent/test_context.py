"""Runs that are longer than the context of their model: no policy, and none dies of it."""

import asyncio
import itertools
import re

import pytest

from callslip import (
    Agent,
    BoundedModel,
    Fallback,
    FunctionModel,
    Limits,
    Priced,
    Retrying,
    ScriptedModel,
    TicketProtocol,
    UsageError,
    as_model,
    replay,
    tool,
)
from callslip.models._call import ModelCall
from scripted import act, block, finish, give, load, output, patient

TURNS = 40
TASK = "Look up all pages, and say which crew serves line 7."


@tool
def look_up(page: int) -> str:
    """Look up a page of the handbook."""
    return f"page {page}: {f'line {page} is served by crew {page * 7} every week. ' * 20}"[:538]


def tokens(text):
    return -(-len(text) // 4)


class Reader:
    """A model that looks up pages, refuses what its context does not hold, and counts."""

    def __init__(self, protocol, context, *, known=True, turns=TURNS):
        self.protocol = protocol
        self.size = context
        self.turns = turns
        self.requests = []
        self.counted = []
        if known:
            self.context = context

    def count_tokens(self, text):
        self.counted.append(text)
        return tokens(text)

    def __call__(self, messages):
        request = [f"{one['role']}: {one['content']}" for one in messages]
        if self.size is not None and sum(map(tokens, request)) > self.size:
            raise ValueError("the prompt exceeds the available context size")
        self.requests.append(request)
        page = len(self.requests)
        if page > self.turns:
            return {"ticket": give("crew 49"), "react": finish("crew 49")}.get(
                self.protocol, "crew 49"
            )
        return {
            "ticket": output(
                type="CALL",
                route="/look_up",
                payload={"page": page},
                description=f"Look up page {page}",
            ),
            "react": act("look_up", page=page),
            "chatty": block((f"c{page}", "look_up", {"page": page})),
        }[self.protocol]

    @property
    def sent(self):
        return sum(tokens(text) for request in self.requests for text in request)

    @property
    def shared(self):
        """The tokens that a cache of the last request's prefix does not read again."""
        return sum(
            tokens(text)
            for before, request in itertools.pairwise(self.requests)
            for text, _ in itertools.takewhile(
                lambda pair: pair[0] == pair[1], zip(before, request, strict=False)
            )
        )


def run(model, *, driver="sync", task=TASK, **options):
    options.setdefault("limits", Limits(turns=200))
    agent = Agent(model, protocol=patient(model.protocol), tools=[look_up], **options)
    return agent.run_sync(task) if driver == "sync" else asyncio.run(agent.run(task))


def cuts(result):
    return [event for event in result.run.log if event.kind == "history_shortened"]


# The task of a long run.


@pytest.fixture(scope="module")
def uncut():
    model = Reader("ticket", None, known=False)
    run(model)
    return model.sent


@pytest.mark.parametrize("driver", ["sync", "async"])
@pytest.mark.parametrize("protocol", ["ticket", "react", "chatty"])
def test_a_long_run_fits_costs_less_and_keeps_its_prefix(protocol, driver, uncut):
    model = Reader(protocol, 8_192)
    result = run(model, driver=driver)
    assert result.value == "crew 49"
    assert result.run.turns == TURNS + 1
    assert [one.outcome for one in result.tickets] == ["ok"] * TURNS
    assert model.sent < uncut / 2
    assert model.shared >= 0.8 * model.sent
    assert 2 <= len(cuts(result)) <= 5
    # The last result is there, whole, and the task always is.
    for page, request in enumerate(model.requests[1:], 1):
        assert any(f"page {page}: line {page} is" in text for text in request[-1:])
        # The list of tickets names it as well.
        own = f"your own task: {TASK}"
        assert sum(TASK in text.replace(own, "") for text in request) == 1
        assert [text.split(":")[0] for text in request[-2:]] == ["assistant", "user"]
    # Each text is counted once, and not before it may matter.
    assert len(model.counted) == len(set(model.counted))
    assert replay(result.run.export()).messages == result.messages


@pytest.mark.parametrize("protocol", ["ticket", "react", "chatty"])
def test_loaded_results_are_left_out_before_exchanges(protocol):
    model = Reader(protocol, 10_000)
    first = cuts(run(model))[0]
    if protocol == "ticket":
        assert first.exchanges == 0
        assert first.results > 5
        texts = next(
            request
            for request in model.requests
            if any("LOAD_TICKET T1 shows it again" in text for text in request)
        )
        assert any("LOAD_TICKET T9 shows it again" in text for text in texts)
    else:
        assert first.exchanges == first.results > 5


@pytest.mark.parametrize("protocol", ["ticket", "react", "chatty"])
@pytest.mark.parametrize("context", [1_800, 3_000, 5_000])
def test_a_small_context_is_enough(protocol, context):
    options = {"protocol": TicketProtocol(examples=False)} if protocol == "ticket" else {}
    model = Reader(protocol, context)
    agent = Agent(
        model, tools=[look_up], limits=Limits(turns=200), **{"protocol": protocol, **options}
    )
    result = agent.run_sync(TASK)
    assert result.value == "crew 49"
    assert max(sum(map(tokens, request)) for request in model.requests) <= context


@pytest.mark.parametrize("protocol", ["ticket", "react", "chatty"])
def test_an_unknown_context_is_found_by_its_refusals(protocol):
    model = Reader(protocol, 4_000, known=False)
    result = run(model)
    assert result.value == "crew 49"
    refused = [one for one in cuts(result) if one.error is not None]
    assert len(refused) == 1
    assert len(model.requests) == result.run.turns


def test_nothing_is_counted_and_left_out_far_below_the_context():
    model = Reader("react", 200_000)
    assert cuts(run(model)) == []
    assert model.counted == []
    plain = Reader("react", None, known=False)
    run(plain)
    assert plain.requests == model.requests


def test_a_result_that_alone_is_too_long_is_cut_to_what_fits():
    @tool
    def dump() -> str:
        """Dump."""
        return "x" * 12_000

    replies = iter(
        [
            output(type="CALL", route="/dump", payload={}, description="d"),
            load("T1"),
            give("too long"),
        ]
    )

    def ask(messages):
        assert sum(tokens(one["content"]) for one in messages) <= 3_000
        return next(replies)

    model = FunctionModel(ask, context=3_000)
    agent = Agent(model, protocol=TicketProtocol(examples=False), tools=[dump])
    result = agent.run_sync("go")
    assert result.value == "too long"
    told = model.requests[-1].messages[-1]["content"]
    assert re.search(
        r"\[cut: (\d+) of 12002 bytes are shown; LOAD_TICKET T1 with the offset \1 ", told
    )


def test_the_users_last_message_is_shown_as_long_as_it_is_worked_on():
    model = Reader("chatty", 6_000, turns=3)
    result = run(model)
    model.turns += TURNS
    result = result.run.send_sync("Now look up forty more, and count the crews.")
    assert result.value == "crew 49"
    assert len(cuts(result)) >= 2
    assert cuts(result)[-1].exchanges > 10
    for request in model.requests[4:]:
        assert sum("count the crews" in text for text in request) == 1
        # The list of tickets names it as well.
        own = f"your own task: {TASK}"
        assert sum(TASK in text.replace(own, "") for text in request) == 1
        roles = [text.split(":")[0] for text in request[1:]]
        assert all(one != other for one, other in itertools.pairwise(roles))


def test_a_resumed_run_is_shown_what_it_was_shown(path):
    model = Reader("ticket", 8_192)

    def stops(messages):
        if len(model.requests) == 25:
            raise ConnectionError("gone")
        return model(messages)

    stops.context, stops.count_tokens = model.context, model.count_tokens
    options = {
        "protocol": "ticket",
        "tools": [look_up],
        "limits": Limits(turns=200),
        "store": path,
    }
    with pytest.raises(Exception, match="gone") as caught:
        Agent(stops, **options).run_sync(TASK)
    before = cuts(caught.value)
    caught.value.run._store.compact(caught.value.run.id)
    caught.value.run._store.close()
    agent = Agent(model, **options)
    result = agent.resume_sync(caught.value.run.id)
    agent.store.close()
    assert result.value == "crew 49"
    assert before
    # Nothing is left out anew: the request is that which failed, and its beginning is cached.
    assert model.requests[25][: len(model.requests[24])] == model.requests[24]
    later = cuts(result)
    assert later[0].exchanges >= before[-1].exchanges
    assert model.shared >= 0.8 * model.sent


# The models' own words.


def sized(context, count=None):
    def model(messages):
        return "done"

    if context is not None:
        model.context = context
    if count is not None:
        model.count_tokens = count
    return model


def one(text):
    return 1


def two(text):
    return 2


def test_wrappers_have_the_context_of_their_models():
    for wrap in (
        Retrying,
        Fallback,
        BoundedModel,
        lambda model: Priced(model, input=1, output=1),
        lambda model: Retrying(BoundedModel(Fallback(model))),
    ):
        assert (wrap(sized(900, one)).context, wrap(sized(900, one)).count_tokens) == (900, one)
        call = ModelCall(wrap(sized(900, one)))
        assert (call.context, call.count_tokens) == (900, one)
        assert (wrap(sized(None)).context, wrap(sized(None)).count_tokens) == (None, None)
    # The smallest context, and the count of the model that has it.
    several = Fallback(sized(None, one), sized(900, two), sized(800), sized(1_000, one))
    assert (several.context, several.count_tokens) == (800, one)
    several = Fallback(sized(None, one), sized(900, two), sized(1_000))
    assert (several.context, several.count_tokens) == (900, two)


def test_attributes_that_mean_something_else_are_not_a_context():
    async def later(text):
        return 1

    for context in (None, True, 0, -1, "8k", 8.5, object()):
        model = sized(None)
        model.context = context
        assert ModelCall(model).context is None
    assert ModelCall(sized(None, later)).count_tokens is None
    assert ModelCall(sized(None, 3)).count_tokens is None


def test_the_context_of_a_client_in_this_process():
    class Llama:
        def n_ctx(self):
            return 2_048

        def tokenize(self, text, *, add_bos):
            return [*text]

        def create_chat_completion(self, messages, stream=False, **options):
            return "done"

        def create_completion(self, prompt):
            return "done"

    call = ModelCall(as_model(Llama()))
    assert call.context == 2_048
    assert call.count_tokens("é!") == 3
    assert ModelCall(as_model(Llama(), context=512)).context == 512


def test_options_for_the_context():
    def create(*, model, messages, stream=False, stop=None, **options):
        return "done"

    assert as_model(create, model="m", context=4_096).context == 4_096
    assert ModelCall(as_model(create, model="m")).context is None
    assert FunctionModel(sized(900)).context == 900
    assert FunctionModel(sized(900), context=500).context == 500
    assert ScriptedModel([], context=700).context == 700
    for wrong in (0, True, 1.5, "8k"):
        with pytest.raises(UsageError, match="expected context to be a number of tokens from 1"):
            as_model(create, model="m", context=wrong)
        with pytest.raises(UsageError, match="expected context to be a number of tokens from 1"):
            ScriptedModel([], context=wrong)
