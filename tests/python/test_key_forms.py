"""Keys of services are found by their names and by their forms, wherever they stand."""

from __future__ import annotations

import json
import random
import string

import pytest

from callslip import Agent, ModelError, TicketStore, tool
from callslip._base.failure import describe_failure
from callslip._base.redaction import redact_credentials, redact_likely_secrets
from scripted import act, finish

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
URL = ALNUM + "-_"


def word(draw: random.Random, letters: str, length: int) -> str:
    """Random characters as keys have them: no word of a language."""
    while True:
        made = "".join(draw.choice(letters) for _ in range(length))
        if any(one.isdigit() for one in made) and any(one.isalpha() for one in made):
            # A separator at the end belongs to the sentence.
            return made if made[-1].isalnum() and made[0].isalnum() else word(draw, letters, length)


# The form of each service's keys: what is before the random part, its letters and its length.
FORMS = {
    "OpenAI": ("sk-proj-", URL, 60),
    "OpenAI, older": ("sk-", ALNUM, 48),
    "Anthropic": ("sk-ant-api03-", URL, 80),
    "OpenRouter": ("sk-or-v1-", HEX, 64),
    "Google": ("AIza", URL, 35),
    "Google, newer": ("AQ.Ab8", URL, 40),
    "Google OAuth": ("ya29.", URL, 60),
    "Groq": ("gsk_", ALNUM, 52),
    "xAI": ("xai-", ALNUM, 80),
    "Cerebras": ("csk-", "abcdefghijklmnopqrstuvwxyz0123456789", 48),
    "Fireworks": ("fw_", ALNUM, 22),
    "Together": ("tgp_v1_", URL, 43),
    "Perplexity": ("pplx-", ALNUM, 48),
    "NVIDIA": ("nvapi-", URL, 64),
    "Replicate": ("r8_", ALNUM, 37),
    "Hugging Face": ("hf_", ALNUM, 34),
    "npm": ("npm_", ALNUM, 36),
    "PyPI": ("pypi-AgEI", URL, 60),
    "GitHub": ("ghp_", ALNUM, 36),
    "GitHub, fine": ("github_pat_", ALNUM, 60),
    "GitLab": ("glpat-", URL, 20),
    "AWS": ("AKIA", string.ascii_uppercase + string.digits, 16),
    "AWS, session": ("ASIA", string.ascii_uppercase + string.digits, 16),
    "Slack": ("xoxb-", string.digits + "abc", 40),
    "Stripe": ("sk_live_", ALNUM, 24),
    "Stripe, hooks": ("whsec_", ALNUM, 32),
    "JWT": ("eyJhbGciOiJIUzI1NiJ9.", URL, 60),
    "GLM": ("0123456789abcdef0123456789abcdef.", ALNUM, 16),
    "Databricks": ("dapi", HEX, 32),
    "a new service": ("newai-", ALNUM, 40),
    "another one": ("acme_live_", ALNUM, 32),
}
PLACES = [
    "{}",
    "Incorrect API key provided: {}. See the page.",
    "{{'error': 'no access with {}'}}",
    'in "{}", line 3',
    "GET https://example.com/v1/x?a=1&q={} failed",
    "({})",
]

# What has no form of its own is known by the name before it.
NAMED = {
    "hex": (HEX, 32),
    "long hex": (HEX, 64),
    "AWS secret": (ALNUM + "/+", 40),
    "alnum": (ALNUM, 32),
    "uuid": (HEX, 36),
}
NAMES = [
    "api-key",
    "api_key",
    "x-api-key",
    "X-Goog-Api-Key",
    "Ocp-Apim-Subscription-Key",
    "OPENAI_API_KEY",
    "aws_secret_access_key",
    "AccountKey",
    "client_secret",
    "access_token",
    "X-Auth-Token",
    "PRIVATE-TOKEN",
    "password",
]
WRITTEN = [
    "{name}: {key}",
    "{name}={key}",
    "{name} = {key}",
    "{name}: '{key}'",
    '{{"{name}": "{key}"}}',
    "{{'{name}': '{key}'}}",
    "('{name}', '{key}')",
    "[(b'{name}', b'{key}')]",
    "https://example.com/v1?{name}={key}&a=1",
    "-H '{name}: {key}'",
]
HEADERS = [
    "Authorization: Bearer {key}",
    "authorization: {key}",
    "'Authorization': 'Bearer {key}'",
    "Authorization: Token {key}",
    "Authorization: Key {key}",
    "Authorization: Basic {key}",
    "Proxy-Authorization: Basic {key}",
    "Bearer {key} is no valid key",
    "https://user:{key}@example.com/",
    "Cookie: {key}",
    "Invalid API key: {key}",
    "the api key {key} is not known",
    "Incorrect API key provided: {key}.",
    "no such token ({key})",
]


def shown(text: str) -> list[str]:
    """The text as an error, a page, the log and JSON in JSON show it."""
    nested = json.dumps({"body": json.dumps({"error": text})})
    error = describe_failure(ValueError(text))
    return [
        redact_credentials(text),
        redact_likely_secrets(text),
        error,
        redact_credentials(nested),
    ]


def check(text: str, secret: str) -> None:
    for clean in shown(text):
        # No part of it that is long enough to matter.
        pieces = [secret[at : at + 12] for at in range(0, len(secret) - 11, 4)]
        assert not [piece for piece in pieces if piece in clean], (text, clean)


@pytest.mark.parametrize("service", FORMS)
def test_a_key_is_known_by_its_form(service):
    draw = random.Random(service)
    start, letters, length = FORMS[service]
    for _ in range(6):
        random_part = word(draw, letters, length)
        if service in ("a new service", "another one"):
            random_part = f"a1B{random_part}"
        for place in PLACES:
            check(place.format(start + random_part), random_part)


def named_key(draw: random.Random, kind: str) -> str:
    letters, length = NAMED[kind]
    key = word(draw, letters, length)
    return f"{key[:8]}-{key[9:13]}-{key[14:18]}-{key[19:23]}-{key[24:]}" if kind == "uuid" else key


@pytest.mark.parametrize("kind", NAMED)
def test_a_key_is_known_by_the_name_before_it(kind):
    draw = random.Random(kind)
    for name in NAMES:
        for written in WRITTEN:
            key = named_key(draw, kind)
            check(written.format(name=name, key=key), key)


@pytest.mark.parametrize("kind", ["hex", "long hex", "alnum"])
def test_a_key_is_known_by_what_is_said_before_it(kind):
    draw = random.Random(kind)
    for written in HEADERS:
        for _ in range(3):
            key = named_key(draw, kind)
            check(written.format(key=key), key)


@pytest.mark.parametrize(
    "text",
    [
        "unexpected token: 'x' in line 3",
        "Basic authentication is required",
        "password: required",
        "the api key is missing",
        "max_tokens: 131072 is too many for claude-3-5-sonnet-20241022",
        "token limit of gpt-4o-2024-08-06 exceeded",
        "request req_011CSHoEeqs5C35K2UUqR7Fy failed",
        "chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG",
        "KeyError: 'some_rather_long_name_of_a_field_2'",
        "the commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "run 550e8400-e29b-41d4-a716-446655440000 is not known",
        "an-ordinary-long-slug-with-many-words-2024",
        "test_that_everything_works_in_version_2",
        "keyboard: ergonomic42",
    ],
)
def test_other_texts_stay_as_they_are(text):
    assert redact_credentials(text) == text


def test_long_texts_take_little_time():
    # Each pattern is linear: a text of ten times the length takes no hundred times as long.
    for text in ("a-" * 5_000, "key" * 5_000, "api key " * 2_500, "aB1_" * 5_000, "x" * 20_000):
        assert len(redact_credentials(text)) <= len(text)


@pytest.mark.parametrize("service", ["Groq", "xAI", "Replicate", "npm", "a new service"])
def test_no_key_is_kept_of_a_run_that_failed(service, tmp_path):
    draw = random.Random(service)
    start, letters, length = FORMS[service]
    secret = "a1B" + word(draw, letters, length)
    told = f"Incorrect API key provided: {start}{secret}"

    class Wrong(Exception):  # noqa: N818
        body = {"error": told}  # noqa: RUF012
        status_code = 401

    def refusing(messages):
        raise Wrong("Error code: 401")

    def reporting(messages):
        return {"error": {"message": told, "code": 401}}

    def calling(messages):
        last = messages[-1]["content"]
        assert secret not in json.dumps(list(messages))
        return finish("there") if "refused" in last else act("refused")

    @tool
    def refused() -> str:
        """Fail."""
        raise ValueError(f"refused: {told}")

    path = tmp_path / "runs.db"
    with TicketStore(path) as store:
        for model in (refusing, reporting):
            with pytest.raises(ModelError) as caught:
                Agent(model, store=store).run_sync("go")
            assert secret not in str(caught.value)
            assert secret not in caught.value.run.export()
        run = Agent(calling, tools=[refused], store=store).run_sync("go").run
        assert secret not in run.export()
    for file in tmp_path.iterdir():
        assert secret.encode() not in file.read_bytes()
