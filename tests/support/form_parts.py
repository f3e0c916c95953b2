"""Reading a `multipart/form-data` body by the standard library's mail parser."""

from dataclasses import dataclass
from email.parser import BytesParser
from email.policy import HTTP


@dataclass(frozen=True)
class Part:
    """One part. `content_type` is `None` where it says none, which means plain text."""

    name: str
    content: bytes
    content_type: str | None = None
    filename: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


def parts(content_type, body):
    """The parts of a body, in order."""
    head = f"content-type: {content_type}\r\n\r\n".encode()
    message = BytesParser(policy=HTTP).parsebytes(head + body)
    assert message.get_content_type() == "multipart/form-data"
    assert not message.defects
    found = []
    for part in message.iter_parts():
        assert part.get_content_disposition() == "form-data"
        said = part["content-type"]
        own = {"content-disposition", "content-type"}
        found.append(
            Part(
                name=part.get_param("name", header="content-disposition"),
                content=part.get_payload(decode=True),
                content_type=None if said is None else str(said).replace('"', ""),
                filename=part.get_filename(),
                headers=tuple((k, str(v)) for k, v in part.items() if k.lower() not in own),
            )
        )
    return found


def plain(body_parts):
    """Names and texts of parts that are all plain text."""
    for part in body_parts:
        assert part.content_type is None or part.content_type.startswith("text/plain")
        assert part.filename is None
    return [(part.name, part.content.decode()) for part in body_parts]
