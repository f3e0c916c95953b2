"""The desk with scripts in the place of a model: in each protocol, with faults."""

import pytest
from orders.desk import TOOLS, Shop, desk

from callslip import LimitExceeded, Limits, ScriptedModel
from callslip.testing import Called, Faults, FaultyTools, codes, faults, no_real_models


@pytest.fixture(autouse=True)
def scripted_only():
    with no_real_models():
        yield


def deny(_ticket):
    return "only the owner refunds"


def test_a_question_about_stock(say, protocol):
    model = ScriptedModel([say.call("stock", item="cup"), say.finish("12 cups")])
    result = desk(model, protocol).run_sync("How many cups?", deps=Shop(), approve=deny)
    assert result.value == "12 cups"
    assert result.tickets == [Called("stock", item="cup", outcome="ok")]
    assert result.tickets[0].result == 12


def test_a_refund_is_the_owner_s(say, protocol):
    shop = Shop()
    model = ScriptedModel([say.call("refund", number=7), say.finish("I may not")])
    result = desk(model, protocol).run_sync("Refund 7.", deps=shop, approve=deny)
    assert result.tickets == [Called("refund", number=7, outcome="denied")]
    assert 7 in shop.orders


@pytest.mark.parametrize("fault", [faults.cut, faults.unknown_tool, faults.duplicate_key])
def test_a_broken_reply_writes_to_nobody(say, protocol, fault):
    shop = Shop()
    mail = say.call("write", to="ann", text="Your cups are on their way.")
    with Faults(ScriptedModel([mail, mail, say.finish("done")]), say, {1: fault}) as model:
        result = desk(model, protocol).run_sync("Write to Ann.", deps=shop, approve=deny)
    assert len(codes(result)) == 1
    assert shop.sent == [("ann", "Your cups are on their way.")]


def test_an_order_is_looked_up_again(say, protocol):
    script = [say.call("order", number=7), say.finish("It is 25 euros.")]
    with FaultyTools({"order": [ConnectionError, "ok"]}, TOOLS) as tools:
        agent = desk(ScriptedModel(script), protocol).replace(tools=tools)
        result = agent.run_sync("Where is order 7?", deps=Shop(), approve=deny)
    # It only reads, so the call was tried again before the model heard of it.
    assert result.tickets == [Called("order", outcome="ok")]
    assert result.tickets[0].attempts == 2


def test_a_mail_is_not_sent_twice(say, protocol):
    script = [say.call("write", to="ann", text="Hello."), say.finish("I can't write now.")]
    with FaultyTools({"write": [ConnectionError]}, TOOLS) as tools:
        agent = desk(ScriptedModel(script), protocol).replace(tools=tools)
        result = agent.run_sync("Write to Ann.", deps=Shop(), approve=deny)
    assert result.tickets == [Called("write", outcome="error")]
    assert result.tickets[0].attempts == 1


def test_the_desk_gives_up_at_its_limit(say, protocol):
    calls = [say.call("order", number=number) for number in (7, 8, 9)]
    agent = desk(ScriptedModel(calls), protocol).replace(limits=Limits(turns=2), on_limit="raise")
    with pytest.raises(LimitExceeded):
        agent.run_sync("All orders?", deps=Shop(), approve=deny)


def test_every_tool_can_be_called(say, protocol):
    agent = desk(ScriptedModel(say.calls_of(TOOLS)), protocol)
    result = agent.run_sync("Try all.", deps=Shop(), approve=lambda _: "not now")
    assert {ticket.tool for ticket in result.tickets} == {tool.name for tool in TOOLS}
