"""Workers are killed and frozen, the database is stopped, the network is cut: nothing is lost."""

import asyncio
import os

import pytest

from callslip import TicketStore
from callslip.fleet import status
from fleets.__main__ import Disturbances
from fleets.crash import FleetCrash
from postgres import Proxy, Server

# `make fleet-crash N=300` does it for longer, with a seed of its own.
SEED = int(os.environ.get("CALLSLIP_FLEET_SEED", "11"))


class Options:
    def __init__(self, kills, stops=0, cuts=0):
        self.kills, self.stops, self.cuts = kills, stops, cuts


@pytest.mark.random_cases
def test_nothing_is_lost_when_workers_are_killed_and_frozen(database):
    test = FleetCrash(database, SEED)
    seen = asyncio.run(test.run(16, freeze=0.3))
    # While all workers are frozen at once, none is killed.
    assert 8 <= seen["killed"] + seen["frozen"] <= 16
    assert seen["runs"] > 16


@pytest.mark.random_cases
@pytest.mark.parametrize("how", ["the database is stopped", "the network is cut"])
def test_nothing_is_lost_when(how):
    is_stopped = how == "the database is stopped"
    with Server(fsync=is_stopped) as server:
        url = server.new_database()
        with Proxy(url) as proxy:
            options = Options(8, **({"stops": 3} if is_stopped else {"cuts": 3}))
            test = FleetCrash(url, SEED, through=url if is_stopped else proxy.url)
            disturb = Disturbances(server, proxy, options).disturb
            seen = asyncio.run(test.run(8, workers=3, freeze=0.2, disturb=disturb))
    assert seen["runs"] > 10


def test_nothing_is_lost_when_a_synchronous_standby_takes_over():
    with Server() as primary, Server(standby_of=primary) as standby:
        primary.require_standby()
        url = primary.new_database()
        with Proxy(url) as proxy:
            with TicketStore(proxy.url) as store:
                assert set(status(store).standbys.values()) == {"sync"}
                assert status(store).is_synchronous

            def disturb(number):
                if number == 2:
                    primary.kill()
                    proxy.drop()
                    standby.promote()
                    proxy.lead_to(standby.url(url.rsplit("/", 1)[1]))
                    proxy.resume()

            test = FleetCrash(proxy.url, SEED)
            seen = asyncio.run(test.run(5, workers=3, freeze=0, disturb=disturb))
            with TicketStore(proxy.url) as store:
                assert not status(store).is_synchronous
    assert seen["runs"] > 10
