"""Names for characters that are invisible or look like others."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator

__all__ = ["columns", "named", "replace_unseen", "strange_words", "turns", "unseen_in"]

# Marks over or through the character before them. A mark without a character hides a sign, and more
# than three cover the line above.
_MARKS = "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
# Selectors after these characters choose an emoji or its text form.
_EMOJI = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u27bf\u2900-\u2bff\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001faff"
)

_UNSEEN = re.compile(
    # Controls but newline and tab.
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"
    # Without a width, or that turn the direction of text; fillers; tags; selectors of variants.
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffc\U000e0000-\U000e0fff"
    "\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    # Of no character: halves of pairs, private use.
    "\ud800-\udfff\ue000-\uf8ff\ufdd0-\ufdef\ufffe\uffff\U000f0000-\U0010ffff"
    # Lines through the character before.
    "\u0334-\u0338\u20d0-\u20df\u20e1-\u20e2\u20e4-\u20ff]"
    "|(?<![" + _EMOJI + "])\ufe0e|(?<![" + _EMOJI + "#*0-9])\ufe0f"
    "|(?<=[#*0-9])\ufe0f(?!\u20e3)"
    "|(?<![\\w\ufe0f" + _MARKS + "])[" + _MARKS + "]|(?<=[" + _MARKS + "]{3})[" + _MARKS + "]"
    # The beginning of such a name, so that no text is taken for one.
    "|\u27e8(?=U\\+)"
)
"""A character that is invisible, or displayed in another position."""

# Four characters that may be marks of any script.
_STACK = re.compile(r"[^\w\s\x00-\u02ff]{4,}")
_MOST_MARKS = 3

_BLANKS = re.compile("[\t\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]")
"""Blanks that are not the one of the keyboard."""

# Letters and signs that look like an ASCII character and that NFKC does not map to it.
_ALIKE = frozenset(
    "аАВвсСеЕНніІјЈкКмМоОрРѕЅтТхХуУһԁԛԝѵӏЬбзЗгԌ"  # Cyrillic
    "αΑβΒΕΖΗιΙκΚΜνΝοΟρΡτΤυΥχΧγϲϳω"  # Greek
    "օսոհցքզԼՍՕ"  # Armenian
    "ıȷɑɡɩʋꞮꓐꓑꓒꓓꓔꓖꓗꓙꓚꓜꓝꓞꓟꓠꓡꓢꓣꓥꓦꓧꓨꓩꓪꓫꓬꓮꓰꓲꓳꓴᎪᎬᎳᎻᎽᏀᏃᏚᏞᏟᏢ"
    "⁄∕⧸∶꞉․‚\u037e\u2010\u2011\u2212ǃ⁎∗ʼ\u0131٪᛬"  # noqa: RUF001
)
_ALPHABETS = ("CYRILLIC", "GREEK", "ARMENIAN", "COPTIC", "CHEROKEE", "LISU", "GEORGIAN")
"""Alphabets with letters that look Latin."""

_MOST_CHARACTERS = 3
_MOST_WORDS = 20


def named(text: str) -> str:
    """Return a text in which invisible characters are shown as code points, `⟨U+202E⟩`.

    So do blanks other than the one of the keyboard. Line breaks stay.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _BLANKS.sub(_number, replace_unseen(text, _named))
    # Characters that this Python does not know have no known width.
    return "".join(
        one if one == "\n" or one.isprintable() else f"\u27e8U+{ord(one):04X}\u27e9" for one in text
    )


def replace_unseen(text: str, write: Callable[[str], str]) -> str:
    """Return a text in which a function replaces each invisible or misplaced character."""
    if text.isascii() and text.isprintable():
        return text
    text = _UNSEEN.sub(lambda found: write(found[0]), text)
    return _STACK.sub(lambda found: "".join(_without_stacks(found[0], write)), text)


def unseen_in(text: str) -> list[str]:
    """Return the characters of a text that are not seen as one."""
    found: list[str] = []

    def keep(one: str) -> str:
        found.append(one)
        return " "

    replace_unseen(text, keep)
    return found


def _without_stacks(text: str, write: Callable[[str], str]) -> Iterator[str]:
    """Yield characters. Marks of any script that stand on three others cover the lines above."""
    marks = 0
    for one in text:
        marks = marks + 1 if unicodedata.category(one) in {"Mn", "Me"} else 0
        yield one if marks <= _MOST_MARKS else write(one)


def _named(one: str) -> str:
    return f"\u27e8U+{ord(one):04X}\u27e9"


def turns(text: str) -> bool:
    """Whether a text has right-to-left letters, which move the text around them."""
    return not text.isascii() and any(
        unicodedata.bidirectional(one) in {"R", "AL", "AN"} for one in text
    )


def _number(found: re.Match[str]) -> str:
    return _named(found[0])


def strange_words(text: str) -> Iterator[str]:
    """Yield remarks on a text: its unseen characters, and words that look like others.

    Each is one line, such as `has U+202E RIGHT-TO-LEFT OVERRIDE`. At most 21 of them.
    """
    if text.isascii() and text.isprintable():
        return
    counts: dict[str, int] = {}
    for one in (*unseen_in(text), *_BLANKS.findall(text)):
        counts[one] = counts.get(one, 0) + 1
    said = [
        f"has {_name(one)}" + (f", {count:,} times" if count > 1 else "")
        for one, count in counts.items()
    ]
    words = dict.fromkeys(replace_unseen(text, lambda _: " ").split())
    for word in words:
        if alike := list(dict.fromkeys(_alike(word))):
            more = len(alike) - _MOST_CHARACTERS
            names = ", ".join(map(_name, alike[:_MOST_CHARACTERS]))
            said.append(
                f"{named(word[:40])} has {names}" + (f" and {more} more" if more > 0 else "")
            )
    yield from said[:_MOST_WORDS]
    if len(said) > _MOST_WORDS:
        yield f"has {len(said) - _MOST_WORDS} more such places"


def _alike(word: str) -> list[str]:
    """Return the characters of a word that are taken for others."""
    if word.isascii():
        return []
    letters = [one for one in word if one.isalpha()]
    foreign = [one for one in letters if not one.isascii() and _is_like_latin(one)]
    variants = [one for one in word if not one.isascii() and _is_variant(one)]
    if foreign and len(foreign) < len(letters):
        return [*foreign, *variants]
    if foreign and all(one in _ALIKE for one in foreign):
        return [*foreign, *variants]
    signs = [one for one in word if one in _ALIKE and one not in foreign]
    return [*signs, *variants]


def _is_like_latin(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith(_ALPHABETS)


def _is_variant(one: str) -> bool:
    plain = unicodedata.normalize("NFKC", one)
    is_digit = one.isdecimal()
    return is_digit or (len(plain) == 1 and plain != one and plain.isascii())


def _name(one: str) -> str:
    name = unicodedata.name(one, "")
    return f"U+{ord(one):04X} {name}".rstrip()


def columns(text: str) -> int:
    """Return how many columns of a terminal a text has at most, without invisible characters."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(one) else 1 + (unicodedata.east_asian_width(one) in "WFA")
        for one in text
    )
