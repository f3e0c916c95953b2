"""Images and files in tasks, messages and results.

    agent.run_sync(["What is this?", Image("cat.png")])

A tool may return one too, alone or inside of a list, dict or dataclass. A model that takes parts of
this kind is sent it as a part of its message; any other model reads one line in its place, such as
`[image 640x480, 24 KB, T3]`.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from callslip import _core
from callslip._base.drawn import png_of
from callslip._base.labels import core_schema, label_schema
from callslip._base.options import check_new_file, check_text, shown
from callslip.errors import UsageError

__all__ = ["Content", "File", "Image", "PartKind"]

PartKind: TypeAlias = Literal["image", "pdf", "audio", "video", "file"]
"""What a model may take: images (PNG, JPEG, GIF, WebP), PDF files, audio, video. `"file"` is any
other file, which no model is sent."""

if TYPE_CHECKING:
    # Completion in notebooks fails at a property whose hint it can read as a Literal.
    Kind: TypeAlias = PartKind

Content: TypeAlias = "str | Sequence[Any]"
"""What a user says: text, or a list of texts, images and files."""

MOST_BYTES = 50_000_000
MOST_PIXELS = 64_000_000
"""Pixels of an image of others that is handed on: a small file may hold billions."""
"""Bytes of one image or file, at most."""

_MEDIA_TYPE = re.compile(r"[a-z0-9][\w.+-]{0,63}/[a-z0-9][\w.+-]{0,127}", re.ASCII)

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""The media types of images that models accept."""


class File:
    """A file with its media type: a PDF, a recording, or any other.

    Args:
        source: The path of the file, or its bytes.
        media_type: Its media type, such as `"audio/wav"`. Default: detected from the content for
            images and PDF files, otherwise guessed from the name.
        name: The name in the label line for the model. Default: the file name of the path.

    Raises:
        UsageError: The file cannot be read, is larger than 50 MB, or its media type is not known.
    """

    __slots__ = ("_part",)

    def __init__(
        self,
        source: str | os.PathLike[str] | bytes,
        *,
        media_type: str | None = None,
        name: str | None = None,
    ) -> None:
        given = _checked_type(media_type)
        data, name = _read(type(self).__name__, source, name)
        known = self._media_type(data, name, given)
        self._part: _core.Part = _core.Part(data, known, name)

    @classmethod
    def _media_type(cls, data: bytes, name: str | None, given: str | None) -> str:
        # The bytes decide, whatever their sender says: a provider refuses another type.
        known = _core.Part.guess_type(data, None) or given or _core.Part.guess_type(data, name)
        if known is None:
            raise UsageError(
                "expected a file of a known type: got one whose bytes and name do not say it; pass "
                'media_type="…"'
            )
        return known

    @classmethod
    def _of(cls, part: _core.Part) -> File:
        """Return the image or file of a part of the core."""
        made: File = File.__new__(Image if part.media_type in IMAGE_TYPES else File)
        made._part = part
        return made

    @property
    def data(self) -> bytes:
        """The bytes.

        Raises:
            StoreError: They are in a store that cannot be read, or the log came without them.
        """
        return self._part.data()

    @property
    def media_type(self) -> str:
        """The media type, such as `"image/png"`."""
        return self._part.media_type

    @property
    def name(self) -> str | None:
        """The name of the file, if it has one."""
        return self._part.name

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self._part.size

    @property
    def sha256(self) -> str:
        """The SHA-256 of the bytes, in hexadecimal digits."""
        return self._part.sha256

    @property
    def label(self) -> str | None:
        """The name in its run; `None` outside of runs.

        `"U1"`, `"U2"`, … for those of the user, `"T3"` for that of a result.
        """
        label = self._part.label
        return None if not label or label.startswith(_core.Part.MARK) else label

    @property
    def kind(self) -> Kind:
        """What it is, for a model: `"image"`, `"pdf"`, `"audio"`, `"video"` or `"file"`."""
        media_type = self._part.media_type
        if media_type in IMAGE_TYPES:
            return "image"
        if media_type == "application/pdf":
            return "pdf"
        family = media_type.partition("/")[0]
        return "audio" if family == "audio" else "video" if family == "video" else "file"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the bytes to a file, and return its path.

        Raises:
            UsageError: `path` is not a path, is a folder, or is in a folder that does not exist.
            OSError: The file cannot be written.
        """
        check_new_file("path", path)
        target = Path(path)
        target.write_bytes(self.data)
        return target

    def to_base64(self) -> str:
        """Return the bytes in base64."""
        return base64.b64encode(self.data).decode()

    def to_url(self) -> str:
        """Return the bytes as a `data:` URL."""
        return f"data:{self.media_type};base64,{self.to_base64()}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, File):
            return NotImplemented
        mine, its = self._part, other._part
        return (mine.sha256, mine.media_type) == (its.sha256, its.media_type)

    def __hash__(self) -> int:
        return hash(self._part.sha256)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (type(self), self.data, self.media_type, self.name, self.label)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._part.line})"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Let pydantic read one in the arguments of a tool, by its label in the run."""
        del source, handler
        return core_schema(cls)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        """Describe its label, after what a `Field` says of it."""
        return {**label_schema(cls), **handler(schema)}


class Image(File):
    """An image: PNG, JPEG, GIF or WebP.

    Args:
        source: The path of the file, its bytes, a PIL image, or a matplotlib figure, which is drawn
            as PNG.
        media_type: Its media type, if it cannot be detected from the content.
        name: The name in the label line for the model. Default: the file name of the path.

    Raises:
        UsageError: The file cannot be read, is larger than 50 MB, or is no such image.
    """

    __slots__ = ()

    def __init__(
        self,
        source: Any,
        *,
        media_type: str | None = None,
        name: str | None = None,
    ) -> None:
        drawn = None if isinstance(source, str | os.PathLike | bytes) else png_of(source)
        super().__init__(source if drawn is None else drawn, media_type=media_type, name=name)

    @classmethod
    def _media_type(cls, data: bytes, _name: str | None, given: str | None) -> str:
        # The name alone is no reason: each image of these types says by its bytes that it is one.
        known = _core.Part.guess_type(data, None) or given
        if known not in IMAGE_TYPES:
            got = "other bytes" if known is None else known
            raise UsageError(
                f"expected an image in PNG, JPEG, GIF or WebP: got {got}; open it with PIL and "
                "pass that image, or pass it as a File"
            )
        return known

    @property
    def width(self) -> int | None:
        """The width in pixels; `None` if the bytes do not say it."""
        return self._part.width

    @property
    def height(self) -> int | None:
        """The height in pixels; `None` if the bytes do not say it."""
        return self._part.height

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """Show the image in a notebook."""
        return {self.media_type: self.to_base64(), "text/plain": repr(self)}


class Said(NamedTuple):
    """What a user says, as the core takes it.

    Attributes:
        text: The text, with a mark in the place of each part.
        parts: The parts, each with its mark.
        key: By what the sender knows a message.
    """

    text: str
    parts: list[_core.Part]
    key: str | None = None


def read_content(what: str, content: Content) -> Said:
    """Return the text and the parts of what a user says.

    Args:
        what: What it is, for the error: `"the task"`.
        content: Text, or a list of texts, images and files; or what was read already.

    Raises:
        UsageError: It is neither, or blank.
    """
    if isinstance(content, Said):
        return content
    if isinstance(content, str):
        check_text(what, content)
        return _checked(what, Said(content, []))
    if not isinstance(content, Sequence) or isinstance(content, bytes | bytearray):
        hint = "it in a list" if isinstance(content, File) else "text, such as str(…)"
        raise UsageError(
            f"expected {what} as text, or as a list of texts, images and files: got "
            f"{type(content).__name__}; pass {hint}"
        )
    marked = Marks()
    lines = []
    for item in content:
        if isinstance(item, str):
            check_text(f"each text of {what}", item)
            lines.append(item)
        elif (file := file_of(item)) is not None:
            lines.append(marked.mark(file))
        else:
            hint = "pass Image(…) or File(…)"
            if isinstance(item, dict) and "role" in item:
                hint = "pass earlier messages as messages=[…], and the last one's text here"
            raise UsageError(
                f"expected texts, images and files in {what}: got {type(item).__name__}; {hint}"
            )
    return _checked(what, Said("\n".join(lines), marked.parts))


def _checked(what: str, said: Said) -> Said:
    # The text names each part.
    if not said.text.strip():
        raise UsageError(
            f"expected {what}: got blank text; pass text, or a list of texts, images and files"
        )
    return said


def said_with(said: Said, files: Iterable[File]) -> Said:
    """Return what is said with each line of these images and files as the part itself.

    Args:
        said: What is said, as plain text or as JSON.
        files: The images and files.
    """
    lines = {file._part.line: file for file in files}
    # In JSON, a name in the line may have escapes.
    lines |= {json.dumps(line, ensure_ascii=False)[1:-1]: file for line, file in lines.items()}
    if not lines:
        return said
    marked = Marks()
    pattern = "|".join(map(re.escape, lines))
    text = re.sub(pattern, lambda found: marked.mark(lines[found[0]]), said.text)
    parts = said.parts + marked.parts
    return Said(text, sorted(parts, key=lambda part: text.find(part.label)))


def received(data: bytes, media_type: str | None, name: str | None = None) -> File | None:
    """Return what another program sent as an image or a file.

    Args:
        data: The bytes.
        media_type: The media type that it claims; `None` if it does not say.
        name: The name of the file, if it has one.

    Returns:
        `None` if there are no bytes or too many, the media type is not one, or the bytes are not
        the image that it claims or have more than 64 million pixels.
    """
    known = _core.Part.guess_type(data, None)
    claimed = _without_parameters(media_type or "")
    if known is None and (claimed in IMAGE_TYPES or not _MEDIA_TYPE.fullmatch(claimed)):
        return None
    if not 0 < len(data) <= MOST_BYTES:
        return None
    part = _core.Part(data, known or claimed, name)
    return None if has_too_many_pixels(part) else File._of(part)


def has_too_many_pixels(part: _core.Part) -> bool:
    """Return whether an image is too large to be handed on or shown."""
    return (part.width or 0) * (part.height or 0) > MOST_PIXELS


class Marks:
    """The parts of one text so far, each with the mark that stands for it there.

    Attributes:
        parts: The parts.
    """

    def __init__(self) -> None:
        self.parts: list[_core.Part] = []
        self._known: dict[int, tuple[File, str]] = {}

    def mark(self, file: File) -> str:
        """Return the mark of a file, which is the same for the same object."""
        known = self._known.get(id(file))
        if known is not None:
            return known[1]
        mark = _core.Part.MARK + os.urandom(16).hex()
        self.parts.append(file._part.marked(mark))
        # The object is held, so that no other one takes its place in memory.
        self._known[id(file)] = (file, mark)
        return mark


def file_of(value: object) -> File | None:
    """Return the image or file that a value is or can be drawn as; `None` for any other value."""
    if isinstance(value, File):
        return value
    png = png_of(value)
    return None if png is None else Image(png)


def _without_parameters(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()


def _checked_type(media_type: object) -> str | None:
    """Return the media type that a program says.

    Raises:
        UsageError: It is none.
    """
    if media_type is None:
        return None
    check_text("media_type", media_type)
    known = _without_parameters(str(media_type))
    if not _MEDIA_TYPE.fullmatch(known):
        raise UsageError(
            f'expected a media type, such as "audio/wav": got {shown(media_type)}; pass it as '
            "media_type="
        )
    return known


def _read(
    kind: str, source: str | os.PathLike[str] | bytes, name: str | None
) -> tuple[bytes, str | None]:
    """Return the bytes of a source, and its name."""
    if name is not None:
        check_text("name", name)
    if isinstance(source, bytes | bytearray | memoryview):
        data = bytes(source)
    elif isinstance(source, str | os.PathLike):
        path = _path_of(source)
        if name is None:
            # It may be bytes that are no text, or change how text around it is shown.
            name = "".join(one if one.isprintable() else "_" for one in path.name)
        try:
            # Not read whole if it is too large.
            with path.open("rb") as file:
                data = file.read(MOST_BYTES + 1)
        except OSError as error:
            why = error.strerror or str(error)
            raise UsageError(
                f"expected the path of a file, or its bytes: got {shown(str(path))}, which cannot "
                f"be read ({why}); pass {_instead_of(source, path, error)}"
            ) from error
    else:
        hint = "what its read() returns" if hasattr(source, "read") else "the path of the file"
        raise UsageError(
            f"expected {kind}(…) of a path or of bytes: got {type(source).__name__}; pass {hint}, "
            "or its bytes"
        )
    if not data:
        raise UsageError(
            f"expected a file with bytes in it: got none in {name or 'it'}; pass another file, or "
            "say in the text that it is empty"
        )
    if len(data) > MOST_BYTES:
        raise UsageError("expected at most 50 MB: got more; pass a smaller image or file")
    return data, name


def _instead_of(source: object, path: Path, error: OSError) -> str:
    """Return what to pass in place of a path that cannot be read."""
    if path.parts and path.parts[0].startswith("~"):
        return "Path(…).expanduser()"
    if isinstance(error, IsADirectoryError):
        return "each file of the folder"
    return f"another path, or {'.encode() for text' if isinstance(source, str) else 'the bytes'}"


def _path_of(source: str | os.PathLike[str]) -> Path:
    """Return the path of a file.

    Raises:
        UsageError: It is the address of something else.
    """
    text = os.fspath(source)
    scheme, is_address, _ = text.partition("://") if isinstance(text, str) else ("", "", "")
    if isinstance(source, str) and (is_address or text.startswith("data:")):
        # The rest may be a secret, or all of the bytes.
        got = f"the URL {scheme}://…" if is_address else "the URL data:…"
        hint = "pass the path alone" if scheme == "file" else "pass the bytes that are there"
        raise UsageError(f"expected the path of a file, or its bytes: got {got}; {hint}")
    if not isinstance(text, str) or not text or "\0" in text:
        raise UsageError(
            f"expected the path of a file, or its bytes: got {shown(source)}; pass another path, "
            "or the bytes"
        )
    return Path(source)


def _unpickled(
    kind: type[File], data: bytes, media_type: str, name: str | None, label: str | None = None
) -> File:
    made = kind(data, media_type=media_type, name=name)
    if label is not None:
        made._part = made._part.marked(label)
    return made
