"""Secrets are found in the forms in which they are written, and nothing else is harmed."""

import base64
import html
import json
import re
from urllib.parse import quote

import pytest

from callslip._base.redaction import Secrets


def hidden_by(secrets, value):
    """What is left of a JSON value."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return json.loads(Secrets(secrets).redact_json(text))


def test_json_without_its_secrets_is_still_json():
    assert hidden_by(["4711"], {"id": 4711042, "4711": [True, -1.54711e-9]}) == {
        "id": "***042",
        "***": [True, "-1.5***e-09"],
    }
    assert hidden_by(["true"], [True, "true", {"true": False}]) == ["***", "***", {"***": False}]
    assert hidden_by(["nabcd", "u0001"], ["a\nabcd", "\u0001", 1]) == ["a\nabcd", "\u0001", 1]
    assert hidden_by(['a"b\\c'], ['x"a"b\\c"', 'a\\"b']) == ['x"***"', 'a\\"b']
    # One that is JSON itself has no value to be hidden in.
    assert hidden_by(['{"user":"ann"}'], [{"user": "ann"}]) == "[***]"


ODD = "pä/ß+<b>&'\"\\="


@pytest.mark.parametrize(
    "written",
    [
        json.dumps(ODD).replace("/", "\\/"),
        json.dumps(ODD, ensure_ascii=False).replace("/", "\\/"),
        json.dumps(json.dumps(ODD)),
        json.dumps(json.dumps(ODD, ensure_ascii=False), ensure_ascii=False),
        json.dumps(ODD).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"),
        html.escape(ODD),
        html.escape(ODD, quote=False),
        html.escape(ODD).replace("&#x27;", "&#39;"),
        quote(ODD, safe=""),
        quote(ODD).lower(),
        ODD.encode().decode("latin-1"),
        json.dumps(ODD.encode().decode("latin-1")),
        repr(ODD.encode()),
        repr(ODD.encode()).replace("\\", "\\\\"),
        repr(ODD),
        repr(f"'\"{ODD}"),
        repr(f"'\"{ODD}".encode()),
        json.dumps(base64.b64encode(ODD.encode()).decode()).replace("/", "\\/"),
    ],
)
def test_a_key_in_the_ordinary_encodings(written):
    clean = Secrets([ODD]).redact(f"a {written} b")
    assert re.fullmatch(r"""a b?['"\\]*\*\*\*['"\\]* b""", clean)


def test_of_tokens_the_last_256_are_hidden():
    secrets = Secrets(["lasting"])
    for number in range(300):
        secrets.add([f"<{number:03}>", "<000>", "lasting"])
    assert secrets.redact("lasting <000> <001> <044> <045> <299>") == "*** *** <001> <044> *** ***"
