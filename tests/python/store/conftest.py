"""What tests of stores share."""

import pytest


@pytest.fixture(scope="module")
def one_database(postgres):
    """A database for all tests of a file."""
    from sql_runs import Database

    url = postgres.new_database()
    one = Database(url)
    yield one
    one.session.close()
    postgres.drop_database(url)


@pytest.fixture
def sql(one_database):
    """A session of an empty database, which calls the SQL functions of a store."""
    yield one_database
    one_database.empty()
