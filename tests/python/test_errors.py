"""The exceptions: one tree, each with its run, and able to cross to another process."""

import pickle

import pytest

from callslip import (
    Agent,
    CallslipError,
    LimitExceeded,
    Limits,
    ModelError,
    ProtocolError,
    RunFailed,
    ScriptedModel,
)


def test_what_ends_a_run_carries_it():
    with pytest.raises(ProtocolError) as caught:
        Agent(ScriptedModel(["a"]), limits=Limits(max_violations=0)).run_sync("x")
    error = caught.value
    assert isinstance(error, RunFailed)
    assert isinstance(error, CallslipError)
    assert error.run.messages[1]["content"] == "x"
    assert "max_violations" in str(error)


def test_exceptions_are_picklable_with_their_run():
    with pytest.raises(LimitExceeded) as caught:
        Agent(ScriptedModel([]), limits=Limits(turns=0), on_limit="raise").run_sync("x")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.limit) == (str(caught.value), "turns")
    assert copy.run.log == caught.value.run.log
    assert pickle.loads(pickle.dumps(ModelError("no"))).args == ("no",)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"protocol": "xml"}, "expected protocol='ticket', 'chatty', 'react' or 'native'"),
        ({"on_limit": "stop"}, "expected on_limit='answer' or 'raise': got 'stop'"),
        ({"on_open_tickets": "drop"}, "expected on_open_tickets='wait' or 'cancel'"),
    ],
)
def test_a_wrong_option_says_what_there_is(options, words):
    with pytest.raises(ValueError, match=words):
        Agent(ScriptedModel([]), **options)
