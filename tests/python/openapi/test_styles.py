"""Parameters on the wire, by the specification's own tables of style, explode and place.

The rows are those of "Style Values" and "Style Examples" of OpenAPI 3.0.4 and 3.1.2 and of the RFC
6570 they rest on. Where the specification says "n/a", what is sent is the nearest that it defines.
"""

from urllib.parse import unquote

import httpx
import pytest

from callslip import OpenAPI
from documents import SERVER, header, one, operation, parameter, plan, value_of
from echo import serving

VALUES = {"empty": "", "string": "blue", "array": ["blue", "black", "brown"]}
VALUES["object"] = {"R": 100, "G": 200, "B": 150}

STRING = {"type": "string"}
STRINGS = {"type": "array", "items": STRING}
SCHEMAS = {
    "empty": STRING,
    "string": STRING,
    "array": STRINGS,
    "object": {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in ("R", "G", "B")},
    },
}

# As the specification writes them; a dash stands for its "n/a" and for what another row says.
TABLES = """
path matrix false ;color ;color=blue ;color=blue,black,brown ;color=R,100,G,200,B,150
path matrix true ;color ;color=blue ;color=blue;color=black;color=brown ;R=100;G=200;B=150
path label false . .blue .blue,black,brown .R,100,G,200,B,150
path label true . .blue .blue.black.brown .R=100.G=200.B=150
path simple false empty blue blue,black,brown R,100,G,200,B,150
path simple true empty blue blue,black,brown R=100,G=200,B=150
path default - empty blue blue,black,brown R,100,G,200,B,150
query form false color= color=blue color=blue,black,brown color=R,100,G,200,B,150
query form true color= color=blue color=blue&color=black&color=brown R=100&G=200&B=150
query default - color= color=blue color=blue&color=black&color=brown R=100&G=200&B=150
query default false color= color=blue color=blue,black,brown color=R,100,G,200,B,150
query spaceDelimited false - - color=blue%20black%20brown color=R%20100%20G%20200%20B%20150
query pipeDelimited false - - color=blue%7Cblack%7Cbrown color=R%7C100%7CG%7C200%7CB%7C150
query deepObject true - - - color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150
header simple false empty blue blue,black,brown R,100,G,200,B,150
header simple true empty blue blue,black,brown R=100,G=200,B=150
header default - empty blue blue,black,brown R,100,G,200,B,150
cookie form false color= color=blue color=blue,black,brown color=R,100,G,200,B,150
"""
# What the specification leaves undefined: the nearest that it defines. The pairs of a cookie are
# parted by a semicolon and a space, whatever RFC 6570 says of `&`.
NEAREST = """
query spaceDelimited false color= color=blue - -
query spaceDelimited - - - color=blue%20black%20brown color=R%20100%20G%20200%20B%20150
query spaceDelimited true color= color=blue color=blue&color=black&color=brown R=100&G=200&B=150
query pipeDelimited false color= color=blue - -
query pipeDelimited - - - color=blue%7Cblack%7Cbrown color=R%7C100%7CG%7C200%7CB%7C150
query pipeDelimited true color= color=blue color=blue&color=black&color=brown R=100&G=200&B=150
query deepObject false - - - color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150
query deepObject - - - - color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150
query deepObject true color= color=blue color%5B0%5D=blue&color%5B1%5D=black&color%5B2%5D=brown -
cookie form true color= color=blue color=blue;color=black;color=brown R=100;G=200;B=150
cookie default - color= color=blue color=blue;color=black;color=brown R=100;G=200;B=150
"""


def cases():
    for line in (TABLES.strip() + NEAREST.rstrip()).splitlines():
        place, style, explode, *row = line.split()
        for kind, wanted in zip(VALUES, row, strict=True):
            if wanted != "-":
                said = {} if style == "default" else {"style": style}
                said |= {} if explode == "-" else {"explode": explode == "true"}
                plain = "" if wanted == "empty" else wanted
                plain = plain.replace(";", "; ") if place == "cookie" else plain
                case = (place, said, kind, plain)
                yield pytest.param(case, id=f"{place}-{style}-{explode}-{kind}")


CASES = list(cases())


def described(place, said, kind):
    """The operation of a case, and its path."""
    # Text before the placeholder: a segment that is empty or a dot alone would be no segment.
    path = "/a/at{color}/end" if place == "path" else "/a"
    return path, operation(parameter("color", place, SCHEMAS[kind], **said))


@pytest.fixture(scope="module")
def server():
    with serving() as server:
        yield server


def sent(server, described_operation, arguments, path="/x"):
    """What the server receives of a call."""
    with httpx.Client() as client:
        api = one(
            described_operation,
            path=path,
            method="get",
            servers=[server.url],
            options={"client": client},
        )
        value_of(api, f"GET {path}", arguments)
    return server.last


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
def test_plans_of_the_tables(version, case):
    place, said, kind, wanted = case
    path, described_operation = described(place, said, kind)
    arguments = {"color": VALUES[kind]}
    request = plan(described_operation, arguments, path=path, method="get", version=version)
    assert (request.method, request.content) == ("GET", b"")
    urls = {"path": f"{SERVER}/a/at{wanted}/end", "query": f"{SERVER}/a?{wanted}"}
    assert request.url == urls.get(place, f"{SERVER}/a")
    assert header(request, "color") == ([wanted] if place == "header" else [])
    assert header(request, "cookie") == ([wanted] if place == "cookie" else [])


@pytest.mark.parametrize("case", CASES)
def test_what_the_server_receives(server, case):
    place, said, kind, wanted = case
    path, described_operation = described(place, said, kind)
    received = sent(server, described_operation, {"color": VALUES[kind]}, path)
    targets = {"path": f"/a/at{wanted}/end", "query": f"/a?{wanted}"}
    assert (received.method, received.target) == ("GET", targets.get(place, "/a"))
    assert received.header("color") == ([wanted] if place == "header" else [])
    assert received.header("cookie") == ([wanted] if place == "cookie" else [])
    assert received.body == b""


# What RFC 3986 leaves unreserved stands as it is; everything else is encoded, as UTF-8.
ENCODED = [
    ("azAZ09-._", "azAZ09-._"),
    ("two words", "two%20words"),
    ("a/b", "a%2Fb"),
    ("a?b#c", "a%3Fb%23c"),
    ("a&b=c", "a%26b%3Dc"),
    ("a+b", "a%2Bb"),
    ("50%", "50%25"),
    ("%2F", "%252F"),
    ("a,b;c:d@e", "a%2Cb%3Bc%3Ad%40e"),
    ("$!'()*", "%24%21%27%28%29%2A"),
    ("[x]|{y}", "%5Bx%5D%7C%7By%7D"),
    ('"\\<>^`', "%22%5C%3C%3E%5E%60"),
    ("é☃🙂", "%C3%A9%E2%98%83%F0%9F%99%82"),
    ("\t\n\x00", "%09%0A%00"),
]


@pytest.mark.parametrize(("value", "wanted"), ENCODED)
def test_values_are_encoded_in_paths_and_queries(server, value, wanted):
    described_operation = operation(parameter("p", "path"), parameter("q", "query"))
    request = plan(described_operation, {"p": value, "q": value}, path="/v/{p}/end", method="get")
    assert request.url == f"{SERVER}/v/{wanted}/end?q={wanted}"
    received = sent(server, described_operation, {"p": value, "q": value}, "/v/{p}/end")
    assert received.target == f"/v/{wanted}/end?q={wanted}"
    assert received.pairs == [("q", value)]


def test_delimiters_in_values_are_told_from_those_between_them():
    described_operation = operation(
        parameter("p", "path", STRINGS),
        parameter("q", "query", STRINGS, explode=False),
        parameter("s", "query", STRINGS, style="spaceDelimited", explode=False),
        parameter("b", "query", STRINGS, style="pipeDelimited", explode=False),
    )
    arguments = {"p": ["a,b", "c"], "q": ["a,b", "c"], "s": ["a,b", "c"], "b": ["a,b", "c"]}
    request = plan(described_operation, arguments, path="/{p}", method="get")
    assert request.url == f"{SERVER}/a%2Cb,c?q=a%2Cb,c&s=a%2Cb%20c&b=a%2Cb%7Cc"


def test_names_are_encoded_too():
    described_operation = operation(
        parameter("❤️", "query"),
        parameter("filter[name]", "query"),
        parameter("a&b", "query", STRINGS),
        parameter("deep", "query", {"type": "object"}, style="deepObject", explode=True),
    )
    arguments = {"❤️": "love!", "filter[name]": "x", "a&b": ["1", "2"], "deep": {"k=y": "v"}}
    request = plan(described_operation, arguments, method="get")
    assert request.url == (
        f"{SERVER}/x?%E2%9D%A4%EF%B8%8F=love%21&filter%5Bname%5D=x&a%26b=1&a%26b=2"
        "&deep%5Bk%3Dy%5D=v"
    )


def test_the_example_of_the_appendix_on_rfc_6570():
    described_operation = operation(
        parameter("formulas", "query", {"type": "object"}, explode=True),
        parameter("words", "query", STRINGS, explode=False),
    )
    formulas = {"a": "x+y", "b": "x/y", "c": "x^y"}
    arguments = {"formulas": formulas, "words": ["math", "is", "fun"]}
    request = plan(described_operation, arguments, method="get")
    assert request.url == f"{SERVER}/x?a=x%2By&b=x%2Fy&c=x%5Ey&words=math,is,fun"
    request = plan(described_operation, {**arguments, "formulas": {}}, method="get")
    assert request.url == f"{SERVER}/x?words=math,is,fun"


def test_reserved_characters_pass_where_the_document_allows_them():
    described_operation = operation(parameter("q", "query", allowReserved=True))
    value = "a/b?c:d@e,f;g!h$i'j(k)l*m n%20o^p"
    request = plan(described_operation, {"q": value}, method="get")
    assert request.url == f"{SERVER}/x?q=a/b?c:d@e,f;g!h$i'j(k)l*m%20n%20o%5Ep"


def test_reserved_characters_that_would_end_the_value_never_pass(server):
    described_operation = operation(parameter("q", "query", allowReserved=True))
    received = sent(server, described_operation, {"q": "a&admin=1#x+[y]%zz"})
    assert received.pairs == [("q", "a&admin=1#x+[y]%zz")]


SCALARS = [
    (True, "true"),
    (False, "false"),
    (0, "0"),
    (-7, "-7"),
    (10**20, "100000000000000000000"),
    (1.5, "1.5"),
    (2.0, "2"),
    (1e-7, "1e-7"),
    (0.1, "0.1"),
]


@pytest.mark.parametrize(("value", "wanted"), SCALARS)
def test_booleans_and_numbers(value, wanted):
    places = ("path", "query", "header", "cookie")
    described_operation = operation(*(parameter(place, place, {}) for place in places))
    request = plan(described_operation, dict.fromkeys(places, value), path="/{path}", method="get")
    # JSON has one notation more for a number than those who read text take for an integer.
    allowed = (
        {wanted, "2.0"} if wanted == "2" else {wanted, "1e-07"} if wanted == "1e-7" else {wanted}
    )
    shown = header(request, "header")[0]
    assert shown in allowed
    assert request.url == f"{SERVER}/{shown}?query={shown}"
    assert header(request, "cookie") == [f"cookie={shown}"]


def test_null_and_what_is_empty_are_left_out():
    nullable = {"type": ["string", "null"]}
    described_operation = operation(
        parameter("none", "query", nullable),
        parameter("list", "query", STRINGS),
        parameter("joined", "query", STRINGS, explode=False),
        parameter("object", "query", {"type": "object"}),
        parameter("deep", "query", {"type": "object"}, style="deepObject", explode=True),
        parameter("some", "query", {"type": "array", "items": nullable}),
        parameter("X-None", "header", nullable),
        parameter("cookie", "cookie", nullable),
    )
    arguments = {
        "none": None,
        "list": [],
        "joined": [],
        "object": {},
        "deep": {},
        "some": ["a", None, "b"],
        "X-None": None,
        "cookie": None,
    }
    request = plan(described_operation, arguments, method="get")
    assert request.url == f"{SERVER}/x?some=a&some=b"
    assert header(request, "x-none") == []
    assert header(request, "cookie") == []


def test_parameters_stand_in_the_order_of_the_document():
    names = ["z", "a", "m"]
    described_operation = operation(*(parameter(name, "query") for name in names))
    request = plan(described_operation, {"a": "1", "m": "2", "z": "3"}, method="get")
    assert request.url == f"{SERVER}/x?z=3&a=1&m=2"


def test_absent_parameters_and_defaults_are_not_sent():
    described_operation = operation(
        parameter("limit", "query", {"type": "integer", "default": 20}),
        parameter("X-Page", "header", {"type": "integer", "default": 1}),
        parameter("given", "query"),
    )
    request = plan(described_operation, {"given": "x"}, method="get")
    assert request.url == f"{SERVER}/x?given=x"
    assert header(request, "x-page") == []


def test_several_cookies_share_one_header(server):
    described_operation = operation(
        parameter("a", "cookie"), parameter("b", "cookie", STRINGS), parameter("c", "cookie")
    )
    arguments = {"a": "1", "b": ["2", "3"], "c": "x; admin=1"}
    received = sent(server, described_operation, arguments)
    assert received.header("cookie") == ["a=1; b=2; b=3; c=x%3B%20admin%3D1"]


def test_headers_are_not_percent_encoded(server):
    described_operation = operation(
        parameter("X-Tag", "header"), parameter("X-All", "header", STRINGS)
    )
    arguments = {"X-Tag": 'W/"a b%20c"', "X-All": ["a/b", "c d"]}
    received = sent(server, described_operation, arguments)
    assert received.header("x-tag") == ['W/"a b%20c"']
    assert received.header("x-all") == ["a/b,c d"]


@pytest.mark.parametrize("value", ["a\r\nX-Admin: 1", "a\nb", "a\rb", "a\0b"])
def test_a_header_value_cannot_end_its_line(server, value):
    described_operation = operation(parameter("X-Tag", "header"), parameter("s", "cookie"))
    before = len(server.received)
    with pytest.raises(ValueError, match="X-Tag"):
        plan(described_operation, {"X-Tag": value}, method="get")
    with pytest.raises(AssertionError, match="Error calling tool 'GET /x'"):
        sent(server, described_operation, {"X-Tag": value})
    assert len(server.received) == before
    assert sent(server, described_operation, {"s": value}).header("x-admin") == []


def test_parameters_with_content_are_written_by_their_media_type(server):
    schema = {"type": "object", "properties": {"lat": {"type": "number"}, "long": {}}}
    described_operation = operation(
        parameter("at", "query", content={"application/json": {"schema": schema}}),
        parameter("list", "query", content={"application/json": {"schema": {"type": "array"}}}),
        parameter("word", "query", content={"application/json": {"schema": STRING}}),
        parameter("plain", "query", content={"text/plain": {"schema": STRING}}),
        parameter("X-At", "header", content={"application/json": {"schema": schema}}),
        parameter("p", "path", content={"application/json": {"schema": schema}}),
    )
    at = {"lat": 1.5, "long": "a b"}
    arguments = {"at": at, "list": [1, "x"], "word": "w", "plain": "a&b", "X-At": at, "p": at}
    json_encoded = "%7B%22lat%22%3A1.5%2C%22long%22%3A%22a%20b%22%7D"
    request = plan(described_operation, arguments, path="/{p}", method="get")
    assert request.url == (
        f"{SERVER}/{json_encoded}?at={json_encoded}&list=%5B1%2C%22x%22%5D&word=%22w%22&plain=a%26b"
    )
    assert header(request, "x-at") == ['{"lat":1.5,"long":"a b"}']


def test_nested_values_of_deep_objects():
    described_operation = operation(
        parameter("created", "query", {"type": "object"}, style="deepObject", explode=True)
    )
    created = {"gt": 5, "in": [1, 2], "a": {"b": {"c": True}}}
    request = plan(described_operation, {"created": created}, method="get")
    assert request.url == (
        f"{SERVER}/x?created%5Bgt%5D=5&created%5Bin%5D%5B0%5D=1&created%5Bin%5D%5B1%5D=2"
        "&created%5Ba%5D%5Bb%5D%5Bc%5D=true"
    )


def test_values_inside_a_style_that_has_no_place_for_them_are_written_as_json():
    described_operation = operation(
        parameter("q", "query", {"type": "array"}, explode=False),
        parameter("r", "query", {"type": "array"}),
    )
    request = plan(described_operation, {"q": [{"a": 1}, [2]], "r": [{"a": 1}]}, method="get")
    assert request.url == f"{SERVER}/x?q=%7B%22a%22%3A1%7D,%5B2%5D&r=%7B%22a%22%3A1%7D"


@pytest.mark.parametrize(
    ("path", "arguments"),
    [
        ("/files/{a}", {"a": ".."}),
        ("/files/{a}", {"a": "."}),
        ("/files/{a}/meta", {"a": ".."}),
        ("/files/{a}{b}", {"a": ".", "b": "."}),
        ("/files/.{a}", {"a": "."}),
        ("/labels/{a}", {"a": "."}),
    ],
)
def test_a_path_value_cannot_leave_its_segment(server, path, arguments):
    style = "label" if path == "/labels/{a}" else "simple"
    described_operation = operation(*(parameter(name, "path", style=style) for name in arguments))
    before = len(server.received)
    with pytest.raises(ValueError, match="part of the path"):
        plan(described_operation, arguments, path=path, method="get")
    with pytest.raises(AssertionError, match="Error calling tool 'GET "):
        sent(server, described_operation, arguments, path)
    assert len(server.received) == before


def test_an_empty_value_that_would_name_another_path_is_refused(server):
    for path in ("/pets/{a}", "/pets/{a}/toys", "/{a}"):
        with pytest.raises(ValueError, match="'a' must have at least 1 character"):
            plan(operation(parameter("a", "path")), {"a": ""}, path=path, method="get")


def test_a_query_that_stands_in_the_path_stays():
    described_operation = operation(parameter("q", "query"))
    request = plan(described_operation, {"q": "x"}, path="/find?kind=a%20b", method="get")
    assert request.url == f"{SERVER}/find?kind=a%20b&q=x"


@pytest.mark.parametrize("place", ["path", "query", None])
def test_placeholders_in_a_query_that_stands_in_the_path(place):
    declared = [parameter("q", place)] if place else []
    described_operation = operation(*declared, parameter("page", "query"))
    path = "/find?kind=a&q={q}"
    request = plan(described_operation, {"q": "x&y", "page": "2"}, path=path, method="get")
    assert request.url == f"{SERVER}/find?kind=a&q=x%26y&page=2"
    if place == "query":
        assert plan(described_operation, {}, path=path, method="get").url == f"{SERVER}/find?kind=a"


def test_text_of_a_path_that_may_not_stand_in_a_url_is_encoded():
    path = '/a b/"é{the id}|%20/{x'
    request = plan(operation(parameter("the id", "path")), {"the id": "1"}, path=path, method="get")
    assert request.url == f"{SERVER}/a%20b/%22%C3%A91%7C%20/%7Bx"


@pytest.mark.parametrize(
    "value", ["../../admin", "..\\..\\admin", "%2e%2e", "..%2fadmin", "a/../b", "..;"]
)
def test_a_path_value_that_would_lead_out_of_its_place_is_refused(value):
    with pytest.raises(
        ValueError, match=r"'a' can't be sent: .* '\.\.' in it would lead out of it"
    ):
        plan(operation(parameter("a", "path")), {"a": value}, path="/files/{a}/meta", method="get")


@pytest.mark.parametrize("value", ["a/b", "a\\b", "%2fadmin", "a..b/c", "...", ";a"])
def test_slashes_and_escapes_in_a_path_value_stay_text(server, value):
    described_operation = operation(parameter("a", "path"))
    received = sent(server, described_operation, {"a": value}, "/files/{a}/meta")
    assert received.target.count("/") == 3
    assert unquote(received.target) == f"/files/{value}/meta"


def test_the_same_name_in_two_places():
    described_operation = operation(
        parameter("id", "path", {"type": "integer"}),
        parameter("id", "query"),
        parameter("id", "header"),
    )
    arguments = {"id": 1, "query.id": "q", "header.id": "h"}
    request = plan(described_operation, arguments, path="/{id}", method="get")
    assert request.url == f"{SERVER}/1?id=q"
    assert header(request, "id") == ["h"]


def test_headers_that_the_specification_takes_from_elsewhere_are_no_parameters():
    names = ["Accept", "content-type", "AUTHORIZATION"]
    api = one(operation(*(parameter(name, "header") for name in names), parameter("X", "header")))
    assert list(api.tools["POST /x"].parameters["properties"]) == ["X"]


def test_a_plan_is_a_value():
    api = OpenAPI.from_dict(
        {
            "openapi": "3.1.0",
            "info": {"title": "T", "version": "1"},
            "servers": [{"url": "https://api.test/v1/"}],
            "paths": {"/a": {"get": {"operationId": "list"}}},
        }
    )
    request = api.request("GET /a", {})
    assert (request.method, request.url, request.content) == ("GET", "https://api.test/v1/a", b"")
    assert all(isinstance(pair, tuple) and len(pair) == 2 for pair in request.headers)
    assert api.request("list", {}) == request
