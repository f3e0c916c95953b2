"""`callslip serve`."""

from __future__ import annotations

import argparse
import os
import secrets
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

from callslip.cli._agents import model_of
from callslip.cli._files import new_store
from callslip.cli._imports import imported
from callslip.errors import UsageError
from callslip.models import as_model
from callslip.models._late import check_installed

__all__ = ["run"]

_TOKEN = "CALLSLIP_TOKEN"  # noqa: S105  # the name of a variable
_KEY = "CALLSLIP_UPSTREAM_KEY"


def run(options: argparse.Namespace) -> int:
    """Serve a model to clients of other services until Ctrl-C."""
    try:
        gateway = import_module("callslip.gateway")
    except ModuleNotFoundError as error:
        raise UsageError(
            f'{error.name} is not installed: use pip install "callslip[web]"'
        ) from error
    model = _model(options.model_to_serve, options.model)
    token = _token(options.token_file)
    store = None if options.store is None else new_store(options.store)
    with store or nullcontext():
        gateway.serve(
            model,
            host=options.host,
            port=options.port,
            token=token,
            hosts=options.hosts,
            protocol=options.protocol,
            calls_first=options.calls_first,
            max_violations=options.max_violations,
            plain_answers=options.plain_answers,
            verbose=options.verbose,
            slots=options.slots,
            queue=options.queue,
            stream=options.stream,
            store=store,
        )
    return 0


def _model(given: str, name: str | None) -> Any:
    """Return the model of a file, of a server, of a service or of a module.

    Raises:
        UsageError: There is no such model.
    """
    if given.startswith(("http://", "https://")):
        return _at_server(given, name)
    if name is not None:
        raise UsageError(
            f"expected --model with the address of a server: got {given}; leave it out"
        )
    if given.endswith(".gguf"):
        if not Path(given).is_file():
            raise UsageError(f"expected a model file: got {given}, which is not there")
        return import_module("callslip.models.local").LocalModel(given)
    if given == "local" or given.startswith(("openai:", "anthropic:")):
        return model_of(given, None)
    return imported("the model", given, "a .gguf file, an address, a service or module:name")


def _at_server(address: str, name: str | None) -> Any:
    if name is None:
        raise UsageError("expected --model with the name of the model at this server: got none")
    check_installed("openai")
    # Servers without keys take any.
    key = os.environ.get(_KEY) or "none"
    client = import_module("openai").AsyncOpenAI(base_url=address, api_key=key)
    return as_model(client, model=name)


def _token(file: str | None) -> str | None:
    """Return the key that clients send. A missing file is created with a new key.

    Raises:
        UsageError: The file has no text.
    """
    if file is None:
        return os.environ.get(_TOKEN) or None
    path = Path(file)
    if not path.exists():
        # Other users of this machine must never be able to read it.
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as made:
            made.write(f"{secrets.token_urlsafe(32)}\n")
    token = path.read_text("utf-8").strip()
    if not token:
        raise UsageError(
            f"expected the token in {file}: got an empty file; delete it for a new one"
        )
    return token
