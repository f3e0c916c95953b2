"""Texts that try to leave the place where a page shows them."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

# A line for each, with the escapes of JSON, so that an editor shows what is there.
_LINES = (Path(__file__).parents[1] / "data" / "hostile.txt").read_text("utf-8").splitlines()


def _text(line):
    line = re.sub(r"\\U([0-9a-f]{8})", lambda code: chr(int(code[1], 16)), line)
    return re.sub(r"(?:\\u[0-9a-f]{4})+", lambda code: json.loads(f'"{code[0]}"'), line)


HOSTILE = [_text(line) for line in _LINES]

# Markup that somebody adds to a page by hand.
ADDED = [
    "<script>document.title = 'taken'</script>",
    "<img src=x onerror=\"document.title = 'taken'\">",
    "<img src=https://evil.example/x.png>",
    "<style>h1 { display: none }</style><h1 style='display: none'>x</h1>",
    "<base href=https://evil.example/><iframe src=/x></iframe>",
]

UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u115f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff"
    "\ufffe\uffff\ud800-\udfff\U000e0000-\U000e0fff]"
    # More than three marks on one character.
    "|(?<=[\u0300-\u036f]{3})[\u0300-\u036f]"
)


def named(text):
    """The text as a page shows it."""
    return UNSEEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


class Page(HTMLParser):
    """What a page consists of: its elements with their attributes, and its text."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.elements = set()
        self.attributes = set()
        self.values = []
        self.open = []
        self.texts = []
        self.markup = []
        self.feed(html)
        self.close()

    @property
    def text(self):
        return "\x1f".join(self.texts)

    def handle_starttag(self, tag, attrs):
        self.elements.add(tag)
        self.attributes |= {(tag, name) for name, _ in attrs}
        self.values += [(tag, name, value) for name, value in attrs]
        if tag not in {"input", "meta", "img", "rect"}:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.add(tag)
        self.attributes |= {(tag, name) for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.texts.append(data)

    def handle_comment(self, data):
        self.markup.append(data)

    def unknown_decl(self, data):
        self.markup.append(data)

    def handle_pi(self, data):
        self.markup.append(data)
