"""The function-calling benchmark of the package `bfcl-eval`: its cases, its prompt, its checker.

Files are read where the package is unpacked. The package itself is never imported: it needs the
client libraries of some thirty services. Its checker is one module, which is run with stand-ins
for what it imports.
"""

from __future__ import annotations

import ast
import json
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

__all__ = ["CATEGORIES", "Benchmark", "Call", "Case"]

CATEGORIES = {
    "simple": "simple_python",
    "multiple": "multiple",
    "parallel": "parallel",
    "irrelevance": "irrelevance",
}
"""The files of the categories. Of irrelevance it is right to call nothing."""

Call = dict[str, dict[str, Any]]
"""One call as the checker takes it: the function's name, and its arguments."""

_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": None}


@dataclass(frozen=True)
class Case:
    """One case.

    Attributes:
        name: Its id.
        text: What the user asks for.
        functions: The functions, as the benchmark describes them.
        expected: The allowed values of each argument, for each call; empty for irrelevance.
        system: The instructions before it, which few cases have.
    """

    name: str
    text: str
    functions: list[dict[str, Any]]
    expected: list[dict[str, dict[str, list[Any]]]]
    system: str = ""

    def schemas(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield name, description and JSON Schema of each function."""
        for one in self.functions:
            yield one["name"], one["description"], _schema(one["parameters"])


class Benchmark:
    """The benchmark.

    Args:
        folder: The folder that the package `bfcl-eval` is unpacked in.

    Raises:
        SystemExit: It is not there.
    """

    def __init__(self, folder: Path) -> None:
        self._package = folder / "bfcl_eval"
        if not self._package.is_dir():
            raise SystemExit(f"expected the package bfcl-eval in {folder}: call `make eval`")
        prompts = _execute(self._package / "constants" / "default_prompts.py")
        style = prompts["PROMPT_STYLE_TEMPLATES"]["classic"]
        form = prompts["OUTPUT_FORMAT_MAPPING"]["python"]
        self._style = style
        self._call_format = style["tool_call_no_tag"].format(output_format=form, param_types="")
        self._template = prompts["PROMPT_TEMPLATE_MAPPING"]["plaintext"]
        self._checker = _checker(self._package)

    def cases(self, category: str, count: int) -> list[Case]:
        """Return so many cases of a category, spread over all of them."""
        cases = self.cases_of(CATEGORIES[category])
        step = max(1, len(cases) // count)
        return cases[::step][:count]

    def cases_of(self, file: str) -> list[Case]:
        """Return all cases of a file, such as `"live_simple"`."""
        name = f"BFCL_v4_{file}.json"
        answers = self._package / "data" / "possible_answer" / name
        expected = {one["id"]: one["ground_truth"] for one in _lines(answers)}
        return [
            Case(
                one["id"],
                one["question"][0][-1]["content"],
                one["function"],
                expected.get(one["id"], []),
                "\n".join(
                    message["content"]
                    for message in one["question"][0]
                    if message["role"] == "system"
                ),
            )
            for one in _lines(self._package / "data" / name)
        ]

    def prompt(self, case: Case) -> str:
        """Return the benchmark's own system prompt, in its default form."""
        note = " Note that the provided function is in Python 3 syntax."
        functions = [{**one, "description": one["description"] + note} for one in case.functions]
        tools = self._style["available_tools"].format(
            format="json", functions=json.dumps(functions, indent=4)
        )
        text: str = self._template.format(
            persona=self._style["persona"],
            task=self._style["task"],
            tool_call_format=self._call_format,
            multiturn_behavior=self._style["multiturn_behavior"],
            available_tools=tools,
        )
        return text

    def is_right(self, category: str, case: Case, calls: Sequence[Call], *, dots: bool) -> bool:
        """Whether the calls are those that the benchmark expects.

        Args:
            category: The category of the case.
            case: The case.
            calls: The calls that the model made.
            dots: Whether names of functions have dots, as in the benchmark's own prompt; else
                underscores, as tools are named.
        """
        if category == "irrelevance":
            return not calls
        # Java and JavaScript have types of their own, Python none.
        found = self._checker["ast_checker"](
            case.functions,
            list(calls),
            case.expected,
            _Language.PYTHON,
            category,
            "dots" if dots else "underscores",
        )
        return bool(found["valid"])


def read_calls(reply: str) -> list[Call]:
    """Read `[f(a=1), g(b=2)]`, as the benchmark's own prompt asks for it; nothing if it is not."""
    text = reply.strip("`\n ")
    text = text if text.startswith("[") else f"[{text}"
    text = text if text.endswith("]") else f"{text}]"
    try:
        listed = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return []
    if not isinstance(listed, ast.List):
        return []
    if not all(isinstance(one, ast.Call) for one in listed.elts):
        return []
    return [
        {ast.unparse(one.func): {str(word.arg): _value(word.value) for word in one.keywords}}
        for one in listed.elts
        if isinstance(one, ast.Call)
    ]


def _value(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)


class _Language(Enum):
    PYTHON = "python"
    JAVA = "java"
    JAVASCRIPT = "javascript"


@dataclass(frozen=True)
class _ModelConfig:
    underscore_to_dot: bool


def _checker(package: Path) -> dict[str, Any]:
    """Execute the checker's module, without the package around it."""
    root = "bfcl_eval"
    types_of = f"{root}.eval_checker.ast_eval.type_convertor"
    names: dict[str, dict[str, Any]] = {
        f"{root}.constants.enums": {"Language": _Language},
        f"{root}.constants.model_config": {
            "MODEL_CONFIG_MAPPING": {
                "dots": _ModelConfig(underscore_to_dot=False),
                "underscores": _ModelConfig(underscore_to_dot=True),
            }
        },
        f"{root}.constants.type_mappings": _execute(package / "constants" / "type_mappings.py"),
        f"{types_of}.java_type_converter": {"java_type_converter": None},
        f"{types_of}.js_type_converter": {"js_type_converter": None},
    }
    modules = {name: types.ModuleType(name) for name in names}
    for name, members in names.items():
        vars(modules[name]).update(members)
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        return _execute(package / "eval_checker" / "ast_eval" / "ast_checker.py")
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def _execute(path: Path) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": path.stem}
    exec(compile(path.read_text("utf-8"), str(path), "exec"), names)  # a pinned file
    return names


def _lines(path: Path) -> list[Any]:
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def _schema(given: object) -> Any:
    """Return a description of parameters as JSON Schema."""
    if isinstance(given, list):
        return [_schema(one) for one in given]
    if not isinstance(given, Mapping):
        return given
    schema: dict[str, Any] = {}
    for name, value in given.items():
        if name == "type" and isinstance(value, str):
            kind = _TYPES.get(value, value)
            if kind is not None:
                schema[name] = kind
        elif name == "properties":
            schema[name] = {inner: _schema(part) for inner, part in value.items()}
        elif name in ("items", "additionalProperties"):
            schema[name] = _schema(value)
        elif name in ("description", "enum", "required") or name == "default":
            schema[name] = value
    return schema
