"""What is planned reads back as what was given, for any text, by a reader of a few lines."""

import re
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from documents import header, one, operation, parameter
from random_cases import cases

# A URI as RFC 3986 has it: unreserved and reserved characters, and escapes.
URI = re.compile(r"(?:[A-Za-z0-9\-._~:/?@!$&'()*+,;=]|%[0-9A-F]{2})*")

STYLES = [
    ("path", "matrix", False),
    ("path", "matrix", True),
    ("path", "label", False),
    ("path", "label", True),
    ("path", "simple", False),
    ("path", "simple", True),
    ("query", "form", False),
    ("query", "form", True),
    ("query", "spaceDelimited", False),
    ("query", "pipeDelimited", False),
    ("query", "deepObject", True),
    ("cookie", "form", False),
    ("cookie", "form", True),
]
DELIMITERS = {"spaceDelimited": "%20", "pipeDelimited": "%7C"}
# These stand for themselves in a value and between two: only the last of them is ambiguous.
AMBIGUOUS = {"spaceDelimited": " ", "pipeDelimited": "|", "label": "."}
SCHEMAS = {"string": {"type": "string"}, "array": {"type": "array"}, "object": {"type": "object"}}


def text(style):
    return st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters=AMBIGUOUS.get(style, "")),
        max_size=8,
    )


def values(style):
    one_text = text(style)
    if style == "deepObject":
        return st.dictionaries(one_text, one_text, min_size=1, max_size=3)
    several = st.lists(one_text, min_size=1, max_size=3)
    named = st.dictionaries(one_text, one_text, min_size=1, max_size=3)
    return several | named if style in DELIMITERS else one_text | several | named


def kind_of(value):
    return "array" if isinstance(value, list) else "object" if isinstance(value, dict) else "string"


def written_part(request, place):
    """What stands for the parameter, still encoded."""
    if place == "cookie":
        return header(request, "cookie")[0]
    parts = urlsplit(request.url)
    return parts.query if place == "query" else parts.path.removeprefix("/at").removesuffix("/end")


def pairs_of(parts):
    return [tuple(unquote(side) for side in part.partition("=")[::2]) for part in parts]


def read(place, style, explode, kind, written):
    """The value of the parameter `color`, from how it is written."""
    named_pieces = {("matrix", True): ";", ("form", True): "; " if place == "cookie" else "&"}
    if style == "deepObject":
        pairs = pairs_of(written.split("&"))
        return {name.removeprefix("color[")[:-1]: value for name, value in pairs}
    if delimiter := named_pieces.get((style, explode)):
        pairs = pairs_of(written.removeprefix(";").split(delimiter))
        if kind == "object":
            return dict(pairs)
        assert {name for name, _ in pairs} == {"color"}
        found = [value for _, value in pairs]
        return found[0] if kind == "string" else found
    if style == "label":
        assert written.startswith(".")
        written = written[1:]
    elif style != "simple":
        name, _, written = written.removeprefix(";").partition("=")
        assert name == "color"
    delimiter = "." if (style, explode) == ("label", True) else DELIMITERS.get(style, ",")
    if kind == "string":
        return unquote(written)
    pieces = written.split(delimiter)
    if kind == "array":
        return [unquote(piece) for piece in pieces]
    if explode:
        return dict(pairs_of(pieces))
    found = [unquote(piece) for piece in pieces]
    return dict(zip(found[::2], found[1::2], strict=True))


@pytest.mark.random_cases
@pytest.mark.parametrize(("place", "style", "explode"), STYLES)
def test_what_is_written_reads_back(place, style, explode):
    path = "/at{color}/end" if place == "path" else "/at"
    apis = {
        kind: one(
            operation(parameter("color", place, schema, style=style, explode=explode)),
            path=path,
            method="get",
        )
        for kind, schema in SCHEMAS.items()
    }

    @settings(max_examples=cases(150))
    @given(values(style))
    def check(value):
        kind = kind_of(value)
        request = apis[kind].request(f"GET {path}", {"color": value})
        assert URI.fullmatch(request.url)
        written = written_part(request, place)
        assert URI.fullmatch(written.replace("; ", ";"))
        assert read(place, style, explode, kind, written) == value

    check()
