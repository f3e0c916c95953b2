"""A gateway, from models and options."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal, TypedDict

from callslip._base.option_names import knows_names
from callslip._base.options import check_flag, check_one_of, check_text, check_type, check_whole
from callslip._protocols import DEFAULT_PROTOCOL
from callslip.agent._turn_engine import TurnEngine
from callslip.agent._with_tools import WithTools
from callslip.errors import UsageError
from callslip.gateway._app import Gateway
from callslip.gateway._line import Line
from callslip.gateway._served import Served
from callslip.models._call import ModelCall
from callslip.protocols import Protocol, ProtocolName
from callslip.store import TicketStore
from callslip.web._options import LOOPBACK, checked_hosts, checked_token

__all__ = ["GatewayOptions", "gateway"]


class GatewayOptions(TypedDict, total=False):
    """The options of `gateway` that are about its models."""

    protocol: Protocol | ProtocolName
    max_violations: int
    calls_first: bool
    plain_answers: bool
    verbose: bool
    slots: int
    queue: int
    stream: Literal["live", "whole"]
    store: TicketStore | None


@knows_names("gateway")
def gateway(
    models: object,
    *,
    token: str | None = None,
    hosts: Collection[str] | None = None,
    protocol: Protocol | ProtocolName = DEFAULT_PROTOCOL,
    max_violations: int = 3,
    calls_first: bool = False,
    plain_answers: bool = False,
    verbose: bool = False,
    slots: int = 1,
    queue: int = 64,
    stream: Literal["live", "whole"] = "live",
    store: TicketStore | None = None,
) -> Gateway:
    """Return an ASGI application that gives clients reliable tool calls from any model.

    It has the interfaces that existing clients speak: OpenAI's chat completions and responses, and
    Anthropic's messages, whole and streamed. The prompt of a request with tools describes them, and
    a model with constrained decoding receives a grammar. Invalid replies are refused and asked for
    again. The client receives calls that fit the schemas of its tools, an answer, or an error with
    the status 422. A request without tools goes to the model as it is.

    Args:
        models: A model, as for `Agent`, or a mapping of names to models. A gateway with one model
            serves it under any name.
        token: The key that clients send, of 32 characters or more. Default: none is needed.
        hosts: The names under which clients reach it. Default: the loopback names.
        protocol: `"react"` (default) for one call in a reply, `"chatty"` for several, or `"native"`
            for models that take tools themselves: their calls are checked. A `WithTools` among the
            models keeps its own options.
        max_violations: As for `WithTools`.
        calls_first: As for `WithTools`.
        plain_answers: Whether plain text without any sign of a call is an answer in react too. It
            saves a request to models without constrained decoding, and matters only where the
            client allows both calls and an answer in text. Default: `False`.
        verbose: Whether the header `x-callslip-repairs` and the log name the repairs of a reply,
            the arguments that were read as another type, and the violations before it. Default:
            `False`.
        slots: Requests that a model answers at a time. Default: 1.
        queue: Requests that may wait for a model; another one gets the status 429. Default: 64.
        stream: `"live"` (default) sends an answer while it is written, if a grammar holds the model
            to the protocol; `"whole"` sends it at its end.
        store: Keeps each request as a run, which the console shows. Default: no store.

    Raises:
        UsageError: A model cannot be called or takes no tools, or an option has a wrong value.
    """
    _check(slots, queue, stream, store, verbose=verbose)
    own: dict[str, Any] = {"protocol": protocol, "max_violations": max_violations}
    own |= {"calls_first": calls_first, "plain_answers": plain_answers}
    found: dict[str, Served] = {}
    for name, model in _named(models).items():
        call, options = ModelCall(model), own
        if isinstance(model, WithTools):
            call, options = model._call, model._options
        engine = TurnEngine(call, **options, store=store)
        found[name] = Served(name, call, engine, Line(slots, queue), stream == "live", verbose)
    names = LOOPBACK if hosts is None else checked_hosts(hosts)
    return Gateway(found, names, None if token is None else checked_token(token))


def _check(slots: int, queue: int, stream: str, store: object, *, verbose: bool) -> None:
    check_whole("slots", slots, 1)
    check_whole("queue", queue, 0)
    check_one_of("stream", stream, ("live", "whole"))
    if store is not None:
        check_type("store", store, TicketStore, "a TicketStore or None")
    check_flag("verbose", verbose)


def _named(models: object) -> dict[str, object]:
    if not isinstance(models, Mapping):
        name = ModelCall(models).leaves()[0].name
        return {name: models}
    if not models:
        raise UsageError("expected a model: got an empty dict; pass {name: model}")
    for name in models:
        check_text("the name of a model", name)
    return dict(models)
