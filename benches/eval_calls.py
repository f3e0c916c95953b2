"""Calls on the function-calling benchmark: callslip's protocols beside the benchmark's own prompt.

Every prompt is given to the same model on the same engine. A case is right if the checker of the
benchmark says so of the calls; of irrelevance, if nothing was called. callslip is an agent with
its defaults: a reply that breaks the protocol is answered, and the next valid one counts. In react
a reply has one call, so that the calls of a whole run count where a case needs several; each is
answered with "done".
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from bfcl import Benchmark, Call, Case, read_calls

from callslip import Agent, Limits, Run, RunFailed
from callslip.events import ModelReplied
from callslip.models._reply import ModelReply, open_result
from callslip.tools import Tool
from callslip.tools._schema_tool import SchemaTool

__all__ = ["OWN_PROMPT", "CallScore", "score_calls"]

OWN_PROMPT = "own prompt"
"""The configuration with the benchmark's prompt, in place of a protocol's name."""

_TURNS = 6


@dataclass
class CallScore:
    """What came of the cases of one category in one configuration."""

    cases: int = 0
    right: int = 0
    replies: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    failed: int = 0
    seconds: float = 0.0


class _Enough(Exception):  # noqa: N818  # no error: the calls are there
    """Ends a run whose calls are all made."""


def score_calls(
    benchmark: Benchmark,
    model: Callable[..., object],
    protocol: str,
    category: str,
    count: int,
    *,
    grammar: bool,
    max_tokens: int,
    verbose: bool = False,
) -> CallScore:
    """Try so many cases of a category.

    Args:
        benchmark: The benchmark.
        model: The model, as for an `Agent`.
        protocol: `OWN_PROMPT` or the name of a protocol.
        category: A name of `bfcl.CATEGORIES`.
        count: The number of cases.
        grammar: Whether the model is passed a grammar of the valid replies.
        max_tokens: Tokens of a reply, at most.
        verbose: Whether each case is printed.
    """
    score = CallScore()
    began = time.perf_counter()
    for case in benchmark.cases(category, count):
        if protocol == OWN_PROMPT:
            calls = _ask(benchmark, model, case, score, max_tokens)
        else:
            whole = protocol == "react" and category == "parallel"
            agent_calls = _AgentCalls(model, protocol, case, whole=whole)
            calls = agent_calls.run(score, grammar=grammar, max_tokens=max_tokens)
        right = benchmark.is_right(category, case, calls, dots=protocol == OWN_PROMPT)
        score.cases += 1
        score.right += right
        if verbose:
            print(f"  {'right' if right else 'WRONG'} {case.name}: {calls}", flush=True)
    score.seconds = time.perf_counter() - began
    return score


def _ask(
    benchmark: Benchmark,
    model: Callable[..., object],
    case: Case,
    score: CallScore,
    max_tokens: int,
) -> list[Call]:
    """Ask with the benchmark's own prompt."""
    messages = [
        {"role": "system", "content": benchmark.prompt(case)},
        {"role": "user", "content": case.text},
    ]
    reply = open_result(model(messages, max_tokens=max_tokens))
    text = ""
    for chunk in [reply] if isinstance(reply, ModelReply) else list(reply):  # type: ignore[arg-type]
        text += chunk.text
        usage: Any = chunk.usage or {}
        score.input_tokens += usage.get("input_tokens", 0)
        score.output_tokens += usage.get("output_tokens", 0)
    score.replies += 1
    return read_calls(text)


class _AgentCalls:
    """The calls that an agent makes in one case.

    Args:
        model: The model.
        protocol: The name of the protocol.
        case: The case.
        whole: Whether the calls of the whole run count, and not those of the first valid reply.
    """

    def __init__(
        self, model: Callable[..., object], protocol: str, case: Case, *, whole: bool
    ) -> None:
        self._model = model
        self._protocol = protocol
        self._case = case
        self._whole = whole
        self._calls: list[Call] = []

    def run(self, score: CallScore, *, grammar: bool, max_tokens: int) -> list[Call]:
        agent = Agent(
            _Once(self._model, self._is_enough),
            protocol=self._protocol,  # type: ignore[arg-type]
            delegate=False,
            tools=[self._tool(*one) for one in self._case.schemas()],
            grammar=grammar,
            limits=Limits(turns=_TURNS),
            max_tokens=max_tokens,
        )
        try:
            run = agent.run_sync(self._case.text).run
        except RunFailed as error:
            run = cast("Run", error.run)
            score.failed += not isinstance(error.__cause__, _Enough)
        for event in run.log:
            if isinstance(event, ModelReplied):
                score.replies += 1
                if event.usage is not None:
                    score.input_tokens += event.usage.input_tokens
                    score.output_tokens += event.usage.output_tokens
        return self._calls

    def _tool(self, name: str, description: str, schema: dict[str, Any]) -> Tool[..., Any]:
        plain = re.sub(r"\.", "_", name)

        def perform(arguments: dict[str, Any], _: object) -> str:
            self._calls.append({plain: arguments})
            return "done"

        return SchemaTool(perform, name=plain, description=description, parameters=schema)

    def _is_enough(self) -> bool:
        return bool(self._calls) and not self._whole


class _Once:
    """A model that is not asked again once the calls are made."""

    def __init__(self, model: Any, is_enough: Callable[[], bool]) -> None:
        from callslip.models._call import ModelCall

        call = ModelCall(model)
        self._call = call
        self._is_enough = is_enough
        self.accepts = call.accepts
        self.grammar_form = call.grammar_form
        self.bounds = call.bounds
        self.is_async = call.is_async

    def __call__(self, messages: Sequence[Any], **options: object) -> object:
        if self._is_enough():
            raise _Enough
        return self._call(messages, **options)
