"""Every Python snippet of README and docs runs, and prints what the text block after it says.

The snippets of one page share their names, as a reader would type them in one after the other. A
`<!-- skip: next -->` before a snippet says that it can't run here (a key, a service).
"""

from __future__ import annotations

import io
import logging
from contextlib import redirect_stdout, suppress
from pathlib import Path
from unittest import SkipTest

import pytest
from sybil import Example, Sybil
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.markdown import CodeBlockParser, SkipParser

ROOT = Path(__file__).parents[3]
PAGES = ["README.md", *sorted(str(page.relative_to(ROOT)) for page in ROOT.glob("docs/**/*.md"))]

run = PythonEvaluator()


def evaluate_python(example: Example) -> None:
    printed = io.StringIO()
    with redirect_stdout(printed):
        run(example)
    example.document.namespace["__printed__"] = (example.region.end, printed.getvalue())


def evaluate_text(example: Example) -> None:
    end, printed = example.document.namespace.pop("__printed__", (None, ""))
    if end is not None and not example.document.text[end : example.region.start].strip():
        assert printed.rstrip() == example.parsed.rstrip(), f"{example.path}, line {example.line}"


READER = Sybil(
    parsers=[
        CodeBlockParser("python", evaluate_python),
        CodeBlockParser("text", evaluate_text),
        SkipParser(),
    ]
)


@pytest.fixture(autouse=True)
def _log_level():
    """A page may set the level of a log, which other tests read."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("callslip")]
    loggers = [logging.getLogger(name) for name in ("", "callslip.run", *names)]
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


@pytest.mark.parametrize("page", PAGES)
def test_snippets_run_and_print_what_the_page_says(page):
    document = READER.parse(ROOT / page)
    document.namespace["__name__"] = "__main__"
    for example in document.examples():
        with suppress(SkipTest):
            example.evaluate()
