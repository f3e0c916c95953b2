"""Processes die or freeze between any two of their messages to the database: nothing is lost."""

import asyncio
import os

import pytest

from fleets.points import LIVES, Place, every_point

# `make fleet-points` tries all of them, `make seeds` others.
SAMPLE = 20
SEED = int(os.environ.get("CALLSLIP_FLEET_SEED", "11"))


@pytest.fixture
def place(database, tmp_path):
    place = Place(database, tmp_path)
    yield place
    place.close()


@pytest.mark.random_cases
@pytest.mark.parametrize("name", LIVES)
def test_nothing_is_lost_at_any_point(name, place):
    print(f"CALLSLIP_FLEET_SEED={SEED}")
    seen = asyncio.run(every_point(place, LIVES[name], sample=SAMPLE, seed=SEED))
    tried = min(SAMPLE, seen["points"])
    # Some are not reached: a worker looks around more or less often each time.
    assert seen["killed"] + seen["frozen"] + seen["told"] > tried * 3 // 4
    assert seen["runs"] > tried
    if name in ("worker-frozen", "worker-robbed"):
        assert seen["refused"] > 0
