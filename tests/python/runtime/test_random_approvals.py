"""Random runs with decisions, edits and crashes: nothing but what was approved is executed."""

import asyncio
import random
from collections import Counter

import pytest

from callslip import (
    Agent,
    ChattyProtocol,
    Context,
    ScriptedModel,
    TicketProtocol,
    TicketStore,
    UsageError,
    replay,
    tool,
)
from random_cases import seeds
from scripted import act, block, call, finish, give, wait

SEEDS = 400
PROTOCOLS = ["react", ChattyProtocol(), TicketProtocol(grace=0)]


class Ledger:
    """What was decided and what was executed, by ticket."""

    def __init__(self):
        self.approved: dict[str, list] = {}
        self.executed: dict[str, list] = {}
        self.checked = Counter()


def tools_of(chance: random.Random, ledger: Ledger):
    def condition(arguments, context):
        ledger.checked[context.ticket_id] += 1
        amount = arguments["amount"]
        if amount % 5 == 4:
            raise LookupError("no such account")
        return amount > 50 and f"more than {amount - 1}"

    def make(name, **options):
        def pay(amount: int, context: Context) -> str:
            """Pay."""
            ledger.executed.setdefault(context.ticket_id, []).append({"amount": amount})
            return f"paid {amount}"

        return tool(name=name, effect=chance.choice(["once", "idempotent"]), **options)(pay)

    @tool(effect="pure")
    def price() -> int:
        """Look a price up."""
        return chance.randrange(100)

    return [make("always", needs_approval=True), make("some", needs_approval=condition), price]


def replies_of(chance: random.Random, protocol):
    turns = chance.randrange(1, 4)
    name = getattr(protocol, "name", protocol)

    def arguments():
        return {"amount": chance.randrange(100)}

    def one():
        return chance.choice(["always", "some"])

    if name == "react":
        return [*(act(one(), **arguments()) for _ in range(turns)), finish()]
    if name == "ticket":
        replies = []
        for turn in range(turns):
            replies += [call(f"/{one()}", arguments()), wait(f"T{turn + 1}")]
        return [*replies, give("done")]
    blocks = []
    for turn in range(turns):
        calls = [(f"c{turn}_{n}", one(), arguments()) for n in range(chance.randrange(1, 4))]
        if chance.random() < 0.5:
            calls.insert(0, (f"p{turn}", "price", {}))
            calls.append((f"r{turn}", one(), {"amount": f"$p{turn}"}))
        blocks.append(block(*calls))
    return [*blocks, "done"]


def decide(chance: random.Random, ledger: Ledger, run, ticket):
    """Decide as a person may, or leave it; with wrong decisions before and late ones after."""
    before = ticket.arguments
    if chance.random() < 0.2:
        with pytest.raises(UsageError, match="'amount'"):
            run.approve(ticket.id, arguments={"amount": chance.choice(["x", None, [1]])})
    choice = chance.choice(["approve", "edit", "deny", "leave"])
    if choice == "leave":
        return
    if choice == "deny":
        run.deny(ticket.id)
    else:
        final = before if choice == "approve" else {"amount": chance.randrange(1000, 2000)}
        # Before the decision: the call may be made in another thread at once.
        ledger.approved.setdefault(ticket.id, []).append(final)
        if choice == "approve":
            run.approve(ticket.id)
        else:
            run.approve(ticket.id, arguments=final)
    with pytest.raises(UsageError, match="already"):
        chance.choice([run.approve, run.deny])(ticket.id)


def before_the_end(run):
    """The log of a run that was cancelled as a crash in its place leaves it."""
    if run.stop_reason != "cancelled":
        return run.export()
    ends = [
        event.kind == "run_finished" or getattr(event, "outcome", "") in ("cancelled", "not_begun")
        for event in run.log
    ]
    lines = run.export().splitlines(keepends=True)
    return "".join(lines[: [*ends, True].index(True)])


async def attempt(chance, ledger, store, agent, run_id):
    """Work on a run until it ends, or crashes at some event. Returns its log."""
    crash_at = chance.choice([None, None, *range(3, 25)])

    working = asyncio.ensure_future(agent.resume(run_id) if run_id else agent.run("go"))
    while not store.runs():
        await asyncio.sleep(0.001)
    run = store.run(store.runs()[0].run_id)
    while run._driver is None and not working.done():
        await asyncio.sleep(0.001)
        run = store.run(run.id)
    polls = 0
    while not working.done():
        for ticket in run.awaiting_approval:
            decide(chance, ledger, run, ticket)
        if crash_at is not None and len(run.log) >= crash_at:
            working.cancel()
            await asyncio.wait([working])
            return before_the_end(run), None
        polls += 1
        # A loop that never waits may keep the threads of tools from running for seconds.
        await asyncio.sleep(0 if polls % 4 else 0.001)
    return run.export(), working.result()


def check(ledger: Ledger, run, tools):
    effects = {one.name: one.effect for one in tools}
    for ticket in run.tickets:
        if ticket.tool == "price":
            continue
        executed = ledger.executed.get(ticket.id, [])
        allowed = list(ledger.approved.get(ticket.id, []))
        events = [e for e in run.log if e.kind == "approval_checked"]
        free = [e for e in events if e.ticket_id == ticket.id]
        if free and not free[0].needs_approval:
            amount = ticket.arguments["amount"]
            assert amount <= 50
            assert amount % 5 != 4
            allowed.append(ticket.arguments)
        assert all(one in allowed for one in executed), (ticket, executed, allowed)
        if effects[ticket.tool] == "once":
            assert len(executed) <= 1
        if ticket.outcome == "ok":
            assert executed[-1] == ticket.arguments
        if ticket.outcome == "denied":
            assert executed == []


@pytest.mark.random_cases
@pytest.mark.parametrize("part", range(4))
def test_only_what_was_approved_is_executed(part):
    for seed in seeds(SEEDS)[part::4]:
        chance = random.Random(seed)
        protocol = chance.choice(PROTOCOLS)
        replies = replies_of(chance, protocol)
        asyncio.run(asyncio.wait_for(one_run(seed, chance, protocol, replies), 60))


async def one_run(seed, chance, protocol, replies):
    ledger = Ledger()
    tools = tools_of(chance, ledger)
    run_id, log, result = None, None, None
    for _ in range(12):
        with TicketStore() as store:
            if log:
                run_id = store.import_run(log, trust=True)
                if chance.random() < 0.5:
                    # At rest, by somebody who has only the store.
                    for ticket in store.tickets(awaiting_approval=True):
                        decide(chance, ledger, store.run(run_id), ticket)
            answered = 0 if not log else sum('"model_replied"' in one for one in log.split("\n"))
            agent = Agent(
                ScriptedModel(replies[answered:]), protocol=protocol, tools=tools, store=store
            )
            log, result = await attempt(chance, ledger, store, agent, run_id)
            if result is not None:
                check(ledger, result.run, tools)
                assert replay(log).export() == log
                assert result.value == "done", seed
                return
    replayed = replay(log)
    check(ledger, replayed, tools)
