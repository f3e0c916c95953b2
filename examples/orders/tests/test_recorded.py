"""The desk with the recorded replies of a real model: `pytest --callslip=record` asks it."""

import pytest
from orders.desk import Shop, desk

from callslip import ReactProtocol
from callslip.testing import Called


@pytest.fixture
def model(recorded, pytestconfig):
    if pytestconfig.getoption("callslip") == "replay":
        yield recorded()
        return
    from callslip import LocalModel

    with LocalModel() as local:
        yield recorded(local)


@pytest.mark.parametrize("number", [7, 8])
def test_an_order_is_looked_up(model, number):
    agent = desk(model, ReactProtocol(first_move="call"))
    result = agent.run_sync(f"Look up order number {number}.", deps=Shop(), approve=lambda _: False)
    assert result.tickets == [Called("order", number=number, outcome="ok")]
