"""Commands, called in this process."""

import pytest

from callslip.cli import main


@pytest.fixture
def call(capsys):
    """Calls a command and returns its output and its errors."""

    def command(*words, status=0):
        assert main([str(word) for word in words]) == status
        return capsys.readouterr()

    return command
