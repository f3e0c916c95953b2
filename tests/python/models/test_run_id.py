"""What a callable model is told of its run, and what a function around a model keeps."""

import asyncio
import functools
import uuid
import warnings

import pytest

from callslip import Agent, BoundedModel, Fallback, Retrying, ScriptedModel, TicketStore
from callslip.models._call import ModelCall
from scripted import finish


@pytest.fixture(params=["memory", "file", "postgres"])
def store(request, tmp_path):
    if request.param == "memory":
        yield None
        return
    path = tmp_path / "runs.sqlite"
    with TicketStore(
        request.getfixturevalue("database") if request.param == "postgres" else path
    ) as store:
        yield store


@pytest.fixture(params=["run", "run_sync", "start", "stream_sync"])
def driven(request):
    """Drive a task in one of the ways, and return the run."""

    def drive(agent):
        if request.param == "run_sync":
            return agent.run_sync("go").run
        if request.param == "stream_sync":
            with agent.stream_sync("go") as stream:
                list(stream)
                return stream.run

        async def main():
            if request.param == "run":
                return (await agent.run("go")).run
            return (await agent.start("go")).run

        return asyncio.run(main())

    return drive


def named(seen):
    def model(messages, run_id):
        seen.append(run_id)
        return finish()

    return model


def keyword(seen):
    def model(messages, *, run_id: str | None = None, seed=None):
        seen.append(run_id)
        return finish()

    return model


def async_one(seen):
    async def model(messages, run_id=None):
        seen.append(run_id)
        return finish()

    return model


def streamed(seen):
    def model(messages, run_id=None):
        seen.append(run_id)
        yield from finish()

    return model


class Called:
    def __init__(self, seen):
        self.seen = seen

    def __call__(self, messages, *, run_id=None):
        self.seen.append(run_id)
        return finish()


@pytest.mark.parametrize("make", [named, keyword, async_one, streamed, Called])
def test_a_model_that_names_run_id_is_told_its_run(store, driven, make):
    seen = []
    run = driven(Agent(make(seen), store=store))
    assert seen == [run.id]


@pytest.mark.parametrize(
    "wrap", [Retrying, BoundedModel, lambda model: Fallback(model, ScriptedModel([finish()]))]
)
def test_through_wrappers(driven, wrap):
    seen = []
    run = driven(Agent(wrap(keyword(seen))))
    assert seen == [run.id]


def test_what_stands_in_the_place_of_options_stays():
    seen = []
    agent = Agent(keyword(seen), seed=7)
    assert agent._options == {"seed": 7}
    assert "run_id" in agent._model.accepts
    assert agent.run_sync("go").run.id == seen[0]


class Library:
    """A client whose own parameter has that name."""

    def invoke(self, messages, run_id=None):
        return finish()

    def create(self, messages, run_id: "uuid.UUID | None" = None):
        return finish()

    def ask(self, messages, run_id: str | None = None):
        return finish()


@pytest.mark.parametrize(
    ("model", "is_told"),
    [
        (lambda messages, **options: finish(), False),
        (lambda messages, run_id=None: finish(), True),
        (functools.partial(lambda messages, run_id=None: finish(), run_id="own"), False),
        (Library().invoke, False),
        (Library().create, False),
        (Library().ask, True),
    ],
)
def test_which_models_are_told(model, is_told):
    call = ModelCall(model)
    assert ("run_id" in call.accepts) == is_told
    assert Agent(model).run_sync("go").value == "done"


def test_each_run_is_told_its_own():
    seen = []
    agent = Agent(async_one(seen))

    async def main():
        return await asyncio.gather(*(agent.run(f"{n}") for n in range(20)))

    results = asyncio.run(main())
    assert sorted(seen) == sorted(result.run.id for result in results)


def test_a_model_called_without_a_run():
    seen = []
    call = ModelCall(named(seen))
    assert call([]) == finish()
    assert seen == [None]


inner = ScriptedModel([finish()] * 3, context=2_000)


def test_a_function_with_wraps_keeps_the_context():
    @functools.wraps(inner)
    def model(messages, **options):
        return inner(messages, **options)

    call = Agent(model)._model
    assert (call.context, call.hides_context) == (2_000, False)
    assert call.count_tokens == ModelCall(inner).count_tokens


def test_a_model_object_with_wraps_keeps_the_context():
    class Slotted:
        __slots__ = ()

        @property
        def context(self):
            return 900

        def count_tokens(self, text):
            return len(text)

        def __call__(self, messages):
            return finish()

    slotted = Slotted()

    @functools.wraps(slotted)
    def model(messages):
        return slotted(messages)

    call = Agent(model)._model
    assert (call.context, call.count_tokens("abc")) == (900, 3)


def test_a_function_that_loses_the_context_says_so():
    local = ScriptedModel([finish()], context=700)

    def of_closure(messages):
        return local(messages)

    def of_module(messages):
        return inner(messages)

    for model in (of_closure, of_module):
        with pytest.warns(
            UserWarning, match=f"'.*{model.__name__}' is a function that calls a"
        ) as told:
            Agent(model)
        assert "functools.wraps" in str(told[0].message)
        assert told[0].filename == __file__
        with pytest.warns(UserWarning, match="functools.wraps"):
            Agent(Retrying(model))


def test_a_function_that_states_its_own_is_believed():
    def model(messages):
        return inner(messages)

    model.context = 1_500
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Agent(model)._model.context == 1_500
        Agent(lambda messages: finish())
        Agent(inner)
