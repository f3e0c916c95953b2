"""The forms in which servers accept a grammar."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

from callslip.errors import UsageError

__all__ = ["GrammarForm", "check_form", "excludes_violation", "grammar_text"]

GrammarForm: TypeAlias = Literal[
    "auto", "gbnf", "lark", "vllm", "sglang", "fireworks", "json_schema", "custom_tool"
]
"""How a server accepts a grammar.

`"gbnf"` and `"lark"` are llama.cpp's field `grammar`, the second for a server that is built with
llguidance. `"vllm"`, `"sglang"` and `"fireworks"` are GBNF in the fields of these servers.
`"json_schema"` is the structured output of a service, and describes replies of the react protocol
only. `"custom_tool"` is a tool of OpenAI's responses whose input is the reply. `"auto"` takes the
form from the client, from its address, or from the server's list of models.
"""

# The attribute of `Grammar` that holds the text.
_LANGUAGES: Final[Mapping[str, str]] = {
    "gbnf": "gbnf",
    "vllm": "gbnf",
    "sglang": "gbnf",
    "fireworks": "gbnf",
    "lark": "lark",
    "custom_tool": "lark",
    "json_schema": "json_schema",
}
_LARK_MARK = "%llguidance"

# Violations that no form admits. Arguments are left to the check where a schema has no rules.
_EXCLUDED: Final = frozenset(
    {
        "elided_content",
        "fenced_tool_call",
        "invalid_json",
        "missing_colon",
        "multiple_actions",
        "no_action",
        "no_output",
        "unbalanced_brackets",
        "unescaped_quote",
        "unexpected_token",
        "unknown_key",
        "unknown_tool",
        "unknown_type",
        "unquoted_value",
        "untagged_tool_call",
        "wrong_tag",
    }
)
# One that the schema admits, because all its properties may have a value.
_EXCLUDED_BY_RULES: Final = frozenset({"both_action_and_final", "missing_field"})


def check_form(form: object, forms: Sequence[str]) -> None:
    """Check the option `grammar`.

    Raises:
        UsageError: The client has no such form.
    """
    if form is None or form in forms:
        return
    if not forms:
        raise UsageError("this client accepts no grammar: pass grammar=None")
    raise UsageError(f"expected one of {', '.join(forms)} as grammar: got {form!r}")


def grammar_text(grammar: object, form: GrammarForm) -> str | Mapping[str, object] | None:
    """Return a grammar in a form: a text, or the schema for `"json_schema"`.

    Args:
        grammar: A `Grammar`, or what one of its attributes holds. A JSON Schema may be a dict.
        form: Not `"auto"`.

    Returns:
        `None` if the protocol cannot be described in that form.

    Raises:
        UsageError: It is no grammar of that form.
    """
    text: object = getattr(grammar, _LANGUAGES[form], grammar)
    if text is None:
        return None
    if form == "json_schema":
        schema = json.loads(text) if isinstance(text, str) else text
        if isinstance(schema, Mapping):
            return schema
    elif isinstance(text, str):
        if form == "lark" and not text.startswith(_LARK_MARK):
            return f"{_LARK_MARK} {{}}\n{text}"
        if form == "custom_tool" and text.startswith(_LARK_MARK):
            # The service has another field for the name of the language.
            return text.partition("\n")[2]
        return text
    raise UsageError(
        f"expected a grammar in the form {form}: got {type(text).__qualname__}: pass its text, or "
        f"an object with the attribute {_LANGUAGES[form]}"
    )


def excludes_violation(form: GrammarForm, code: str) -> bool:
    """Whether no reply that a grammar of this form admits has this violation."""
    return code in _EXCLUDED or (form != "json_schema" and code in _EXCLUDED_BY_RULES)
