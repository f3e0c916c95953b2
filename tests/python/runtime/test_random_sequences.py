"""Runs are started, cancelled, talked to, decided on and resumed in any order: each act has its
effect once, and no run is left open.

Threads act on each other's runs, in memory, in a file whose processes end in the middle, and in a
database that several processes use. Real calls are counted beside the store. `make seeds` plays
thousands; `SEED=…` repeats one.
"""

import pytest

from fleets.nursery import Nursery
from random_cases import seeds
from sequences import play

pytestmark = pytest.mark.random_cases


@pytest.fixture(scope="module")
def nursery():
    with Nursery() as nursery:
        yield nursery


@pytest.mark.parametrize("part", range(2))
def test_in_memory(part):
    for seed in seeds(30)[part::2]:
        assert play.memory(seed) == [], f"seed {seed}"


def test_in_a_file_of_processes_that_end_in_the_middle(nursery, tmp_path):
    for seed in seeds(8):
        assert play.file(seed, nursery, tmp_path) == [], f"seed {seed}"


def test_in_a_database_of_several_processes(nursery, tmp_path, postgres):
    for seed in seeds(3):
        url = postgres.new_database()
        assert play.shared(seed, nursery, tmp_path, url) == [], f"seed {seed}"
        postgres.drop_database(url)
