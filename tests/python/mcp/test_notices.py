"""Log messages of MCP servers, and the roots they are told."""

import logging
from pathlib import Path

import pytest

from callslip import UsageError
from callslip.mcp import MCPServer
from serving import eventually, result, stdio


def records(caplog):
    return [
        (one.levelno, one.getMessage()) for one in caplog.records if "library" in one.getMessage()
    ]


def test_log_messages_of_a_server_are_logged_with_level_and_name(era, caplog):
    caplog.set_level(logging.DEBUG, "callslip.mcp")
    levels = {
        "debug": logging.DEBUG,
        "notice": logging.INFO,
        "warning": logging.WARNING,
        "emergency": logging.CRITICAL,
    }
    with stdio("library", name="library", log_level="debug") as server:
        for level in levels:
            result(server, "log", level=level, words=f"some\n{level}")
        result(server, "log_data")
        expected = [
            *((number, f"library [desk]: some {level}") for level, number in levels.items()),
            (logging.ERROR, 'library: {"shelf":3,"missing":["Emma"]}'),
        ]
        assert eventually(lambda: records(caplog) == expected), records(caplog)


def test_a_newer_server_logs_from_the_level_that_is_requested(caplog):
    caplog.set_level(logging.DEBUG, "callslip.mcp")
    with stdio("library", name="library", log_level="error") as server:
        result(server, "log", level="warning", words="less")
        result(server, "log", level="error", words="enough")
        assert eventually(lambda: records(caplog))
    with stdio("library", name="library") as server:
        result(server, "log", level="emergency", words="unasked")
    assert records(caplog) == [(logging.ERROR, "library [desk]: enough")]


def test_secrets_in_log_messages_are_redacted(caplog):
    caplog.set_level(logging.DEBUG, "callslip.mcp")
    env = {"KEY": "hunter2hunter2"}
    with stdio("library", name="library", log_level="info", env=env) as server:
        result(server, "log", level="info", words="it is hunter2hunter2")
        assert eventually(lambda: records(caplog))
    assert records(caplog) == [(logging.INFO, "library [desk]: it is ***")]


def test_a_level_is_one_of_the_protocols():
    with pytest.raises(UsageError) as raised:
        MCPServer.stdio("python", log_level="INFO")
    assert str(raised.value) == (
        "expected log_level as one of debug, info, notice, warning, error, critical, alert, "
        "emergency: got 'INFO'"
    )


def test_a_server_is_told_the_roots(era, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    roots = [tmp_path / "a b", "here", "file:///srv/data"]
    with stdio("library", roots=roots) as server:
        told = result(server, "folders")
    assert told == {
        "result": [
            (tmp_path / "a b").as_uri(),
            (Path.cwd() / "here").as_uri(),
            "file:///srv/data",
        ]
    }


def test_roots_are_a_list_of_paths():
    for roots in ("/home", [3]):
        with pytest.raises(UsageError) as raised:
            MCPServer.stdio("python", roots=roots)
        assert str(raised.value) == f"expected roots as a list of paths: got {roots!r}"
