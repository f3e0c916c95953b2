"""How Python reads what looks like another type in JSON Schema, which models are not shown."""

from __future__ import annotations

from typing import Any

__all__ = ["READS", "without_reads"]

READS = "x-reads"
"""The keyword that says so."""


def without_reads(schema: Any) -> tuple[Any, dict[str, str]]:
    """Return a schema without what Python makes of it, and that by JSON pointers."""
    reads: dict[str, str] = {}

    def bare(part: Any, pointer: str) -> Any:
        if isinstance(part, list):
            return [bare(one, f"{pointer}/{number}") for number, one in enumerate(part)]
        if not isinstance(part, dict):
            return part
        if isinstance(words := part.get(READS), str):
            reads[pointer] = words
        return {
            key: bare(one, f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}")
            for key, one in part.items()
            if key != READS or not isinstance(one, str)
        }

    return bare(schema, ""), reads
