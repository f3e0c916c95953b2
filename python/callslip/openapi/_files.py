"""Documents in several files, which are merged into one."""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from callslip._base.json_pointer import pointer_step
from callslip._core import yaml_to_json
from callslip.errors import ToolError

__all__ = ["read_with_files"]

_ELSEWHERE = re.compile(rb"""\$ref["']?\s*:\s*["']?[^#"'\s]""")
_KIND = "x-callslip-files"
_MOST_FILES = 10_000


def read_with_files(path: Path) -> bytes:
    """Return a document merged with the files that it refers to, in its folder or below.

    References to other places stay as they are, and operations with them are not offered.

    Raises:
        OSError: The document cannot be read.
        ToolError: A file that it refers to is neither JSON nor YAML.
    """
    content = path.read_bytes()
    if not _ELSEWHERE.search(content):
        return content
    folder = _Folder(path.resolve().parent, path.name)
    whole = folder.read(path.name, content)
    if not isinstance(whole, dict):
        return content
    folder.gather(whole, path.name)
    if folder.files:
        components = whole.setdefault("components", {})
        if isinstance(components, dict):
            components[_KIND] = folder.files
    return json.dumps(whole, ensure_ascii=False).encode()


class _Folder:
    """The files of a document.

    Args:
        root: The folder that contains all of them.
        first: The name of the document itself.
    """

    def __init__(self, root: Path, first: str) -> None:
        self._root = root
        self._first = first
        self.files: dict[str, Any] = {}

    def read(self, name: str, content: bytes) -> Any:
        try:
            return json.loads(yaml_to_json(content))
        except ToolError as error:
            raise ToolError(f"{name}: {error}") from None

    def gather(self, whole: Any, name: str) -> None:
        """Redirect the references of a file, and of the files it refers to, into the document."""
        todo = [(whole, name)]
        while todo:
            node, within = todo.pop()
            if isinstance(node, list):
                todo += [(item, within) for item in node]
            elif isinstance(node, dict):
                target = node.get("$ref")
                if isinstance(target, str):
                    added = self._redirect(node, target, within)
                    if added is not None:
                        todo.append((self.files[added], added))
                todo += [(item, within) for item in node.values() if isinstance(item, dict | list)]

    def _redirect(self, node: dict[str, Any], target: str, within: str) -> str | None:
        """Redirect a reference. Returns the name of the file that was added for it."""
        file, _, pointer = target.partition("#")
        name = within
        added = None
        if file:
            if urlsplit(file).scheme or file.startswith(("/", "\\")):
                return None
            name = posixpath.normpath(posixpath.join(posixpath.dirname(within), unquote(file)))
            if name != self._first and name not in self.files:
                content = self._content(name)
                if content is None:
                    return None
                self.files[name] = self.read(name, content)
                added = name
        if name == self._first:
            node["$ref"] = f"#{pointer}"
            return None
        step = pointer_step(name).replace("%", "%25")
        node["$ref"] = f"#/components/{_KIND}{step}{pointer}"
        return added

    def _content(self, name: str) -> bytes | None:
        if len(self.files) >= _MOST_FILES:
            return None
        try:
            # The target of a symbolic link must be inside too.
            path = (self._root / name).resolve()
            return path.read_bytes() if path.is_relative_to(self._root) else None
        except (OSError, ValueError):
            return None
