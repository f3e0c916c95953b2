"""What a model is shown of a long transcript: moves stay with their outcomes."""

import asyncio
import copy
import itertools
import json
import pickle
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callslip import (
    Agent,
    Exchange,
    KeepLast,
    Limits,
    ReactProtocol,
    ScriptedModel,
    TicketProtocol,
    UsageError,
    tool,
)
from callslip.history import History
from scripted import act, block, call, call_once, finish, give, spawn, task_of, turn_of, wait_for


def message(role, content):
    return {"role": role, "content": content}


def transcript(count, *, loaded=()):
    """A transcript of so many exchanges, and how its outcomes read without their results."""
    messages = [message("system", "prompt"), message("user", "task")]
    shorts = {}
    for number in range(1, count + 1):
        messages.append(message("assistant", f"reply {number}"))
        if number in loaded:
            shorts[len(messages)] = f"outcome {number}, result dropped"
            messages.append(message("user", f"outcome {number}, result {'x' * 100}"))
        else:
            messages.append(message("user", f"outcome {number}"))
    return messages, shorts.get


def shown(policy, messages, short=lambda position: None):
    return History(policy, short).choose(messages)


def contents(messages):
    return [one["content"] for one in messages]


# Keeping the last.


def test_the_last_exchanges_are_shown_and_the_others_told_of():
    messages, short = transcript(5)
    before = copy.deepcopy(messages)
    assert shown(KeepLast(2), messages, short) == [
        message("system", "prompt"),
        message("user", "task\n\n[3 earlier replies and their outcomes are left out here.]"),
        *messages[-4:],
    ]
    assert messages == before
    messages, short = transcript(3)
    assert contents(shown(KeepLast(2), messages, short))[1] == (
        "task\n\n[1 earlier reply and its outcome are left out here.]"
    )


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_a_transcript_of_which_all_is_shown_is_handed_on_as_it_is(count):
    messages, short = transcript(count, loaded={1, 2, 3})
    assert shown(KeepLast(3), messages, short) is messages
    assert shown(KeepLast(3, characters=10_000), messages, short) is messages
    assert shown(list, messages, short) is messages


def test_loaded_results_are_dropped_before_exchanges():
    messages, short = transcript(4, loaded={1, 2, 3, 4})
    size = sum(len(one) for one in contents(messages[2:]))
    # One character less than there is: results go until the rest is half as long.
    assert contents(shown(KeepLast(9, characters=size - 1), messages, short)) == [
        *contents(messages[:3]),
        "outcome 1, result dropped",
        "reply 2",
        "outcome 2, result dropped",
        "reply 3",
        "outcome 3, result dropped",
        *contents(messages[8:]),
    ]
    assert shown(KeepLast(9, characters=size), messages, short) is messages
    # Exchanges go only where that is not enough. The last one stays as it is.
    assert contents(shown(KeepLast(9, characters=200), messages, short)) == [
        "prompt",
        "task\n\n[3 earlier replies and their outcomes are left out here.]",
        *contents(messages[8:]),
    ]
    assert shown(KeepLast(9, characters=1), messages, short)[2:] == messages[-2:]


def test_a_result_that_is_shorter_than_its_mark_is_not_dropped():
    messages, shorts = transcript(4, loaded={2})
    size = sum(len(one) for one in contents(messages[2:]))
    long_mark = {3: "outcome 1, and a long mark of a result that was dropped", 5: shorts(5)}.get
    assert contents(shown(KeepLast(4, characters=size - 1), messages, long_mark)) == [
        *contents(messages[:5]),
        "outcome 2, result dropped",
        *contents(messages[6:]),
    ]


@pytest.mark.parametrize(("most", "block"), [(1, 1), (2, 1), (3, 1), (4, 2), (20, 10), (21, 10)])
def test_what_is_shown_begins_the_same_for_a_block_of_turns(most, block):
    beginnings = []
    for count in range(most, most + 10 * block):
        messages, short = transcript(count)
        there = shown(KeepLast(most), messages, short)
        assert most - block < len(there) // 2 - 1 <= most
        assert there[-2:] == messages[-2:]
        beginnings.append(contents(there[:3]))
    # The first block is left out with the second turn, and each further one a block later.
    changes = sum(one != other for one, other in itertools.pairwise(beginnings))
    assert changes == (9 if block == 1 else 10)


def test_a_length_in_tokens_alone_is_a_bound():
    messages, short = transcript(12)

    def count(text):
        return len(text.split())

    # Each exchange has four words.
    def chosen(policy, part):
        return History(policy, short, count=count).choose(part)

    assert chosen(KeepLast(tokens=48), messages) is messages
    beginnings = []
    for exchanges in range(1, 13):
        part = messages[: 2 + 2 * exchanges]
        there = chosen(KeepLast(tokens=16), part)
        assert sum(count(text) for text in contents(there[2:])) <= 16
        assert there[-2:] == part[-2:]
        beginnings.append(contents(there[1:3]))
    assert sum(one != other for one, other in itertools.pairwise(beginnings)) == 3
    # Both bounds hold, and the shorter one decides.
    assert len(chosen(KeepLast(tokens=16, characters=20), messages)) == 4
    assert len(chosen(KeepLast(2, tokens=16), messages)) == 6


def test_tokens_are_counted_by_the_model_and_each_text_once():
    texts = []

    class Counting(ScriptedModel):
        def count_tokens(self, text):
            texts.append(text)
            return 1

    @tool
    def look(turn: int) -> str:
        """Look."""
        return f"seen {turn}"

    replies = [act("look", turn=turn) for turn in range(9)]
    model = Counting([*replies, finish()])
    agent = Agent(model, protocol="react", tools=[look], history=KeepLast(tokens=70))
    assert agent.run_sync("go").value == "done"
    assert len(texts) == len(set(texts)) == 18
    # Each message counts as its text and the marks around it: 1 and 6.
    shown = [len(one.messages) for one in model.requests]
    assert max(shown) == shown[5] == shown[0] + 10
    assert shown[6] < shown[5]


def test_tokens_that_cannot_be_counted_are_estimated():
    assert Exchange(message("assistant", "a" * 9), message("user", "é" * 6)).tokens == 7

    def model(messages):
        return "done"

    def broken(text):
        raise KeyError(text)

    model.count_tokens = broken
    agent = Agent(model, protocol="chatty", history=KeepLast(tokens=1))
    result = agent.run_sync("go")
    with pytest.warns(UserWarning, match="count_tokens of the model failed.*KeyError"):
        result.run.send_sync("more")


@given(
    exchanges=st.lists(st.tuples(st.integers(1, 60), st.booleans()), min_size=1, max_size=40),
    most=st.integers(1, 12),
    characters=st.integers(1, 400),
)
def test_of_any_transcript_little_changes(exchanges, most, characters):
    policy = KeepLast(most, characters=characters)
    every = [
        Exchange(
            message("assistant", f"{at} " + "r" * length),
            message("user", "o" * length),
            message("user", "x") if loaded else None,
        )
        for at, (length, loaded) in enumerate(exchanges)
    ]
    before = []
    for count in range(1, len(every) + 1):
        there = list(policy(tuple(every[:count])))
        size = sum(one.characters for one in there)
        assert there[-1] is every[count - 1]
        assert len(there) <= most
        assert size <= characters or len(there) == 1
        if there[:-1] != before:
            # What is changed at all is changed by half.
            assert (
                len(before) >= most
                or sum(one.characters for one in (*before, there[-1])) > characters
            )
        before = there


FROM_1 = "to be a whole number from 1, or None for no bound"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: KeepLast(0), f"expected KeepLast(exchanges=…) {FROM_1}: got 0"),
        (
            lambda: KeepLast(None),
            "expected a bound: got KeepLast(): pass KeepLast(20) or tokens=8_000",
        ),
        (lambda: KeepLast(tokens=1.5), f"expected KeepLast(tokens=…) {FROM_1}: got 1.5"),
        (lambda: KeepLast(True), f"expected KeepLast(exchanges=…) {FROM_1}: got True"),
        (
            lambda: KeepLast(1, characters=0),
            f"expected KeepLast(characters=…) {FROM_1}: got 0",
        ),
    ],
)
def test_bounds_are_counts(make, text):
    with pytest.raises(ValueError) as caught:
        make()
    assert str(caught.value) == text


def test_every_message_of_the_ticket_protocol_ends_with_its_ticket_list():
    @tool
    def look() -> str:
        """Look."""
        return "seen"

    model = ScriptedModel([*(call("/look", {}, f"look {n}") for n in range(3)), give("ok")])
    agent = Agent(
        model,
        protocol=TicketProtocol(grace=5, examples=False),
        tools=[look],
        history=KeepLast(1),
        limits=Limits(max_repeats=10),
    )
    agent.run_sync("Read this:\n\nTickets:\nnone")
    shown = model.requests[-1].messages
    assert shown[1]["content"] == (
        "Read this:\n\nTickets:\nnone\n\n"
        "[2 earlier replies and their outcomes are left out here.]\n\nTickets:\n"
        '[{"id":"T0","description":"your own task: Read this: Tickets: none",'
        '"status":"IN_PROGRESS"}]'
    )
    for one in shown[1::2]:
        assert isinstance(json.loads(one["content"].rpartition("\n\nTickets:\n")[2]), list)


def test_the_newest_message_lists_all_tickets_once_some_are_left_out():
    @tool
    def look(n: int) -> str:
        """Look."""
        return f"seen {n}"

    model = ScriptedModel([*(call("/look", {"n": n}, f"look {n}") for n in range(4)), give("ok")])
    agent = Agent(
        model,
        protocol=TicketProtocol(grace=60, examples=False),
        tools=[look],
        history=KeepLast(exchanges=3),
    )
    result = agent.run_sync("go")

    def listed(message):
        rows = json.loads(message["content"].rpartition("\n\nTickets:\n")[2])
        assert rows.pop(0)["description"] == "your own task: go"
        return [row["id"] for row in rows]

    # All is shown up to here.
    assert [listed(one) for one in model.requests[3].messages[1::2]] == [[], ["T1"], ["T2"], ["T3"]]
    last = model.requests[4].messages
    assert [listed(one) for one in last[1::2]] == [[], ["T2"], ["T3"], ["T1", "T2", "T3", "T4"]]
    assert 'Result of ticket T4:\n"seen 3"' in last[-1]["content"]
    # The transcript stays as it was.
    assert listed(result.messages[-2]) == ["T4"]


def test_inline_results_are_left_out_to_make_room():
    @tool
    def look(n: int) -> str:
        """Look."""
        return f"seen {n} " + "x" * (0 if n else 1_000)

    model = ScriptedModel([*(call("/look", {"n": n}) for n in range(2)), give("ok")])
    agent = Agent(
        model,
        protocol=TicketProtocol(grace=60, examples=False),
        tools=[look],
        history=KeepLast(9, characters=1_400),
    )
    agent.run_sync("go")
    shown = contents(model.requests[-1].messages)
    assert "left out here to make room; LOAD_TICKET T1 shows it again." in shown[3]
    assert "seen 0" not in shown[3]
    assert "seen 1" in shown[5]


def test_a_task_that_reads_like_a_ticket_list_is_left_whole():
    model = ScriptedModel(["<tool>", "<tool>", "done"])
    agent = Agent(model, protocol="chatty", history=KeepLast(1))
    agent.run_sync("Read this:\n\nTickets:\nnone")
    assert model.requests[-1].messages[1]["content"] == (
        "Read this:\n\nTickets:\nnone\n\n[1 earlier reply and its outcome are left out here.]"
    )


# Policies of one's own.


def test_an_exchange():
    plain = Exchange(message("assistant", "abc"), message("user", "de"))
    assert plain.characters == 5
    assert plain.without_results() is plain
    loaded = Exchange(plain.reply, plain.outcome, message("user", "d"))
    assert loaded.without_results() == Exchange(plain.reply, message("user", "d"))
    assert loaded.without_results().characters == 4


def test_only_results_may_be_dropped_without_a_note():
    messages, short = transcript(2, loaded={1})

    def policy(exchanges):
        return [one.without_results() for one in exchanges]

    assert contents(shown(policy, messages, short)) == [
        *contents(messages[:3]),
        "outcome 1, result dropped",
        *contents(messages[4:]),
    ]


@pytest.mark.parametrize(
    "policy",
    [
        lambda exchanges: None,
        lambda exchanges: "some",
        lambda exchanges: [one.reply for one in exchanges],
        lambda exchanges: exchanges[::-1],
        lambda exchanges: [exchanges[0], exchanges[0]],
        lambda exchanges: [*exchanges, exchanges[-1]],
        lambda exchanges: [Exchange(exchanges[0].reply, exchanges[1].outcome)],
        lambda exchanges: [Exchange(message("assistant", "reply 1"), exchanges[0].outcome)],
        lambda exchanges: [Exchange(exchanges[0].reply, message("user", "outcome 1"))],
    ],
)
def test_a_policy_may_return_only_what_it_was_given(policy):
    messages, short = transcript(2)
    with pytest.raises(UsageError) as caught:
        shown(policy, messages, short)
    assert str(caught.value) == (
        "expected the history policy to return exchanges of its argument, in the same order, each "
        "as it is or its without_results(): got something else"
    )


async def waits(exchanges):
    return exchanges


class Waits:
    async def __call__(self, exchanges):
        return exchanges


@pytest.mark.parametrize(
    ("policy", "got"),
    [
        (3, "int"),
        ("all", "str"),
        (KeepLast, "the class KeepLast"),
        (waits, "an async function"),
        (Waits(), "an async function"),
    ],
)
def test_what_is_no_policy_is_refused_before_any_run(policy, got):
    with pytest.raises(UsageError) as caught:
        Agent(ScriptedModel([]), history=policy)
    assert str(caught.value) == (
        "expected history=KeepLast(…), or a function from all exchanges to those that are shown: "
        f"got {got}"
    )


def fails(exchanges):
    raise KeyError("a fault of its own")


@pytest.mark.parametrize("seconds", [None, 60])
@pytest.mark.parametrize("driver", ["async", "sync"])
@pytest.mark.parametrize("where", ["react", "chatty", "child"])
def test_a_policy_that_fails_is_no_failure_of_the_model(where, driver, seconds, store):
    @tool
    async def look() -> str:
        """Look."""
        return "seen"

    if where == "child":
        script = [block(spawn("a", "part"), wait_for("$a"))]
    else:
        script = call_once(where, "look", {})

    def model(messages):
        if task_of(messages).startswith("Your role"):
            return [block(("c", "look", {})), "in"][turn_of(messages)]
        return script[turn_of(messages)]

    options = {
        "protocol": "chatty" if where == "child" else where,
        "tools": [look],
        "delegate": where == "child",
        "store": store,
        "limits": Limits(seconds=seconds),
    }
    agent = Agent(model, history=fails, **options)
    with pytest.raises(UsageError) as caught:
        if driver == "sync":
            agent.run_sync("go")
        else:
            asyncio.run(agent.run("go"))
    assert str(caught.value) == (
        "the policy of Agent(history=…) failed: KeyError: 'a fault of its own'"
    )
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.run.stop_reason == "cancelled"
    assert pickle.loads(pickle.dumps(caught.value)).args == caught.value.args
    assert {run.stop_reason for run in store.runs()} == {"cancelled"}
    if where != "child":
        mended = Agent(model, history=KeepLast(5), **options)
        assert mended.resume_sync(store.runs()[0].run_id).value == "done"


def test_a_policy_that_returns_something_else_is_no_failure_of_the_model():
    agent = Agent(ScriptedModel(["<tool>", "done"]), protocol="chatty", history=lambda _: None)
    with pytest.raises(UsageError, match="got something else"):
        agent.run_sync("go")


# Whatever the transcript and the policy.


@st.composite
def shapes(draw):
    """How many user messages follow the task and each reply: a question may be asked anew."""
    anew = st.sampled_from([1, 1, 1, 2, 3])
    return draw(anew), draw(st.lists(anew, max_size=8)), draw(st.booleans())


@given(shapes(), st.data())
def test_moves_alternate_and_stay_with_their_outcomes(shape, data):
    opening, replies, replied = shape
    messages = [message("system", "prompt"), message("user", "task")]
    messages += [message("user", f"anew 0.{at}") for at in range(1, opening)]
    outcomes, shorts, texts = {}, {}, {}
    for number, outcome in enumerate(replies, 1):
        messages.append(message("assistant", f"{number}"))
        whole, dropped = [], []
        for at in range(outcome):
            whole.append(f"outcome {number}.{at}")
            dropped.append(whole[-1])
            if data.draw(st.booleans()):
                dropped[-1] = texts[len(messages)] = f"short {number}.{at}"
            messages.append(message("user", whole[-1]))
        outcomes[f"{number}"] = "\n\n".join(whole)
        shorts[f"{number}"] = "\n\n".join(dropped)
    if replied:
        messages.append(message("assistant", "newest"))
    before = copy.deepcopy(messages)
    choice = {f"{n}": data.draw(st.sampled_from("kds")) for n in range(1, len(replies) + 1)}

    def policy(exchanges):
        assert [one.reply["content"] for one in exchanges] == list(choice)
        kept = [one for one in exchanges if choice[one.reply["content"]] != "d"]
        return [
            one.without_results() if choice[one.reply["content"]] == "s" else one for one in kept
        ]

    history = History(policy, texts.get)
    result = history.choose(messages)
    assert messages == before
    left_out = list(choice.values()).count("d")
    if not left_out and not any(
        choice[number] == "s" and outcomes[number] != shorts[number] for number in choice
    ):
        assert result is messages
        return
    assert [one["role"] for one in result] == [
        "system",
        *(["user", "assistant"] * len(result))[: len(result) - 1],
    ]
    assert result[0] == messages[0]
    task = "\n\n".join(contents(messages[1 : 1 + opening]))
    first = result[1]["content"]
    assert first.startswith(task)
    assert (first == task) == (not left_out)
    if left_out > 1:
        assert first.endswith(
            f"\n\n[{left_out} earlier replies and their outcomes are left out here.]"
        )
    told = contents(result[2:])
    if replied:
        assert told.pop() == "newest"
    expected = []
    for number, chosen in choice.items():
        if chosen != "d":
            expected += [number, (outcomes if chosen == "k" else shorts)[number]]
    assert told == expected


@given(shapes(), st.integers(1, 4))
def test_a_transcript_that_grows_is_read_once(shape, count):
    opening, replies, replied = shape
    messages = [message("system", "prompt"), *[message("user", "task")] * opening]
    for number, outcome in enumerate(replies):
        messages.append(message("assistant", f"{number}"))
        messages += [message("user", f"{number}.{at}") for at in range(outcome)]
    if replied:
        messages.append(message("assistant", "newest"))
    asked = []
    history = History(KeepLast(count), asked.append)
    for length in range(2, len(messages) + 1):
        part = messages[:length]
        assert history.choose(part) == shown(KeepLast(count), part)
    assert asked == sorted(set(asked))


def test_a_question_that_was_asked_anew_at_a_time_limit():
    @tool
    def look() -> int:
        """Look."""
        return 1

    def model(messages):
        turn = turn_of(messages)
        if turn < 3:
            return json.dumps({"thought": "t", "action": "look", "args": "{}"})
        if messages[-1]["content"].startswith("Observation"):
            time.sleep(2.5)
        return json.dumps(
            {"thought": "t", "action": "FINISH", "final_answer": "x", "task_successful": True}
        )

    protocol = ReactProtocol(examples=False)
    agent = Agent(model, protocol=protocol, tools=[look], limits=Limits(seconds=2))
    messages = agent.run_sync("task").messages
    assert [one["role"] for one in messages[-3:]] == ["user", "user", "assistant"]
    assert shown(KeepLast(1), messages) == [
        messages[0],
        message("user", "task\n\n[2 earlier replies and their outcomes are left out here.]"),
        messages[-4],
        message("user", f"{messages[-3]['content']}\n\n{messages[-2]['content']}"),
        messages[-1],
    ]


def test_long_transcripts_cost_no_more_than_what_is_shown():
    messages, short = transcript(20_000)
    history = History(KeepLast(5), short)
    history.choose(messages)
    reads = []

    class Watched(list):
        def __getitem__(self, at):
            reads.append(at)
            return super().__getitem__(at)

        def __iter__(self):
            raise AssertionError

    watched = Watched([*messages, message("assistant", "reply"), message("user", "outcome")])
    assert len(history.choose(watched)) == 12
    assert reads == [40_002, 40_003]
