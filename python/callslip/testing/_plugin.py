"""The pytest plugin: it imports pytest alone until a test uses one of its fixtures."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from callslip import testing
from callslip._core import Protocol

if TYPE_CHECKING:
    from callslip.testing import Recording, Say

_RECORDING: pytest.StashKey[Recording] = pytest.StashKey()
_OTHER_PROMPT = "callslip: other prompt"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of recordings."""
    group = parser.getgroup("callslip", "recorded replies of models")
    group.addoption(
        "--callslip",
        choices=("replay", "record", "rewrite", "off"),
        default="replay",
        help="replay recorded replies (default), record those that are missing, rewrite "
        "recordings, or turn recordings off and call the models",
    )
    parser.addini(
        "callslip_match",
        "what has to be equal to a recording: all messages, or the conversation without the "
        "system message",
        default="all",
    )
    parser.addini(
        "callslip_scrub",
        "lines of `pattern => text`: what varies in messages, replaced before they are compared",
        type="linelist",
    )
    parser.addini(
        "callslip_redact", "patterns of secrets that no recording may hold", type="linelist"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Check the options, and register the marker."""
    config.addinivalue_line(
        "markers", "callslip_match(what): `all` or `conversation` has to equal the recording"
    )
    mode = config.getoption("callslip")
    is_ci = os.environ.get("CI", "").lower() in {"1", "true"}
    if mode in {"record", "rewrite"} and is_ci and os.environ.get("CALLSLIP_RECORD") != "1":
        raise pytest.UsageError(
            f"expected --callslip=replay under CI: got --callslip={mode}: record on your machine, "
            "or set CALLSLIP_RECORD=1"
        )


@pytest.fixture(params=Protocol.names())
def protocol(request: pytest.FixtureRequest) -> str:
    """The name of a protocol: the test runs once in each."""
    name: str = request.param
    return name


@pytest.fixture
def say(protocol: Any) -> Say:
    """Replies of a model in the test's `protocol`."""
    return testing.Say(protocol)


@pytest.fixture
def recorded(request: pytest.FixtureRequest) -> Callable[..., object]:
    """Return a function that makes a model replay what was recorded for this test."""
    mode: str = request.config.getoption("callslip")
    if mode == "off":
        return _only_call
    item: pytest.Item = request.node
    recording = testing.Recording(
        _path_of(item),
        node=item.nodeid,
        mode=mode,
        match=_match_of(item),
        scrub=request.config.getini("callslip_scrub"),
        redact=request.config.getini("callslip_redact"),
    )
    item.stash[_RECORDING] = recording
    return recording.model


def _only_call(model: object = None) -> object:
    if model is None:
        raise pytest.UsageError("expected a model with --callslip=off: got none: pass a model")
    return model


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Close the recording of a test that has passed: it may still fail."""
    yield
    recording = item.stash.get(_RECORDING, None)
    if recording is not None:
        recording.close()
        if recording.has_other_prompt:
            item.user_properties.append((_OTHER_PROMPT, item.nodeid))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """List the tests that replayed their conversation under another prompt."""
    found = {
        value
        for report in terminalreporter.stats.get("passed", ())
        for name, value in report.user_properties
        if name == _OTHER_PROMPT
    }
    if found:
        terminalreporter.section("callslip: replayed under another system message")
        for node in sorted(found):
            terminalreporter.line(node)


def _match_of(item: pytest.Item) -> str:
    marker = item.get_closest_marker("callslip_match")
    found = marker.args[0] if marker and marker.args else item.config.getini("callslip_match")
    if found not in {"all", "conversation"}:
        raise pytest.UsageError(
            f"expected 'all' or 'conversation' as callslip_match: got {found!r}"
        )
    return str(found)


def _path_of(item: pytest.Item) -> Path:
    parent = item.getparent(pytest.Class)
    name = f"{parent.name}.{item.name}" if parent is not None else item.name
    # A path in the name of a test is no folder. Control characters in names are escaped by pytest.
    for separator in {"/", os.sep}:
        name = name.replace(separator, "\x01")
    return item.path.parent / "replies" / item.path.stem / name
