"""Hostile arguments of a call, and what a browser shows of the calls that have them.

Each tries to draw another call, to hide what it says, or to cover what stands around it.
"""

import json
import random
import re

from hostile import HOSTILE
from random_cases import SEED

_CLICK = "<button data-do='approve' type='button'>Approve this call</button>"
_BOX = (
    "<section class='ask' data-seal='0' data-address='/x' data-ticket='T9'>"
    "<h3>T9 pay awaits approval</h3>"
    f"<pre>1</pre><p class='short'>pay → ann, 5</p>{_CLICK}</section>"
)
_COVER = "position:fixed;inset:0;z-index:99999;background:#fff"

PIECES = [
    "ann",
    "90000",
    " ",
    "\n",
    "\t",
    "\n" * 60,
    "x" * 3_000,
    "word " * 700,
    " " * 2_000,
    "\u4e2d" * 900,
    "\U0001f469\u200d\U0001f4bb" * 40,
    # Another call, or the end of this one, as text.
    "pay \u2192 ann, 5",
    '\nA call needs approval (r1, T1)\n  Tool: pay\n    to | "ann"\n    amount | 5\n',
    "\nApprove? [y]es, [n]o, [e]dit the arguments, or a reason to deny: ",
    "\nArguments\namount integer\n5\nWhy it waits\nWhy not? The model reads it.\n",
    "\nT2 pay awaits approval\nrun r1 of bank\n\n[ Approve this call ]  [ Deny ]\n",
    '"\namount\n5\n"',
    '", "amount": 5}',
    # Controls of terminals.
    "\x1b[2J\x1b[H",
    "\x1b]8;;https://evil.example\x07link\x1b]8;;\x07",
    "\r",
    "\x08" * 20,
    "\x9b2K",
    # What is not seen, or turns the direction.
    "\u202e",
    "\u2066\u202egnihton\u2069",
    "\u200b" * 300,
    "\u2800" * 400,
    "\u3164",
    "\ufe0f",
    "\U000e0101",
    "\u00ad",
    "\u2028\u2029",
    "\u05d0\u05d1\u05d2 5, 90000",
    "\u0627\u0644\u0645\u0628\u0644\u063a 7",
    # Others that look alike, and names of unseen ones.
    "p\u0430ypal",
    "\uff50\uff41\uff59",
    "\u27e8U+0041\u27e9",
    "&#8238;",
    # Marks that cover the lines around.
    "e" + "\u0301" * 60,
    "\u0e01" + "\u0e47" * 60,
    "\u0f40" + "\u0f71\u0f74" * 30,
    "\u05d0" + "\u0591" * 40,
    "\u0338" * 3,
    "a\u20e3\u20dd",
    # Markup.
    _BOX,
    _CLICK,
    "<style>*{display:none!important}</style>",
    f"<div style='{_COVER}'>pay → ann, 5</div>",
    "<style>.buttons{position:absolute;top:0}.ask pre{height:0}</style>",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<script>document.title='taken'</script>",
    "<img src=https://evil.example/x.png onerror=\"document.title='taken'\">",
    "<svg onload=\"document.title='taken'\"><foreignObject><b>pay</b></foreignObject></svg>",
    "<form action=https://evil.example><button>Approve this call</button></form>",
    "<iframe src=https://evil.example></iframe><base href=https://evil.example>",
    "</textarea></pre></dd></dl></section></div></main>",
    "--></style></script></title><h1>Approved</h1>",
    "' onfocus='document.title=1' autofocus x='",
    '" style="position:fixed" data-do="approve',
    "<pre>\n</pre><p class=more>0 more lines</p>",
    "<!--", "<![CDATA[", "&lt;b&gt;", "&amp;amp;",
    "<details open><summary>Change the arguments</summary></details>",
    "javascript:alert(1)",
    "https://evil.example/?a=1",
    "\u200f\u061c",
    *HOSTILE,
]  # fmt: skip


def hostile_values(count):
    """As many values: each piece alone, several behind one another, and values around them."""
    choose = random.Random(SEED)
    values = [*PIECES]
    while len(values) < count:
        text = "".join(choose.choices(PIECES, k=choose.randint(2, 5)))
        inside = choose.choice([text, text, [text, 5], {text: {"amount": 5}}, _nest(text, 40)])
        values.append(inside)
    choose.shuffle(values)
    return values[:count]


def _nest(value, depth):
    for at in range(depth):
        value = [value] if at % 2 else {"a": value}
    return value


def read_back(field):
    """The value that a person reads in a field: JSON, or lines of a text if that is said."""
    above, text = field
    if above is None:
        return json.loads(_unnamed(text, lambda one: json.dumps(one)[1:-1]))
    value = _unnamed(text, str)
    assert above == f"(a text of {len(text.split(chr(10))):,} lines)"
    return value


def _unnamed(text, write):
    named = re.compile(r"\u27e8U\+([0-9A-F]{4,6})\u27e9")
    return named.sub(lambda found: write(chr(int(found[1], 16))), text)


LOOK = """([box, question, allowed]) => {
  const outer = box.getBoundingClientRect();
  const short = box.querySelector(".short");
  const title = box.querySelector("h1, h3");
  const problems = [];
  const check = (holds, text) => { if (!holds) problems.push(text); };
  const inside = (rect, of, name) => check(
    rect.left >= of.left - 1 && rect.right <= of.right + 1
      && rect.top >= of.top - 1 && rect.bottom <= of.bottom + 1,
    `${name} is outside: ${JSON.stringify([rect, of])}`,
  );
  const tags = new Set([...box.querySelectorAll("*")].map(one => one.tagName.toLowerCase()));
  for (const tag of tags) check(allowed.includes(tag), `there is a <${tag}>`);
  const all = [...box.querySelectorAll("dd")].map(one => one.querySelector("pre") ?? one);
  const names = [...box.querySelectorAll("dt")];
  const at = one => one.getBoundingClientRect();
  let last = at(title).bottom;
  const fields = all.map((field, number) => {
    const [rect, name, row] = [at(field), at(names[number]), at(field.closest("dd"))];
    check(field.checkVisibility({ opacityProperty: true, visibilityProperty: true }), "not seen");
    check(rect.height > 10 && rect.width > 100, `${number} is small: ${JSON.stringify(rect)}`);
    inside(rect, row, "a value");
    inside(row, outer, "a row");
    check(name.top >= last - 1, "a name is above what comes before it");
    check(rect.top >= name.top - 1, "a value is above its name");
    last = Math.max(row.bottom, name.bottom);
    check(field.scrollWidth <= field.clientWidth + 1, "a value is wider than its field");
    check(field.scrollTop === 0, "a value is scrolled");
    check(getComputedStyle(field).overflowY !== "visible", "marks of a value leave its field");
    const range = document.createRange();
    range.selectNodeContents(field);
    for (const line of range.getClientRects()) {
      check(line.left > at(title).left + 3, "a line of a value begins where a title does");
      check(line.left >= rect.left - 1 && line.right <= rect.right + 1, "a line leaves its field");
      check(line.top >= rect.top - 1, "a line stands above its field");
    }
    const more = field.nextElementSibling;
    const height = parseFloat(getComputedStyle(field).lineHeight);
    const hidden = Math.ceil((field.scrollHeight - field.clientHeight - 1) / height);
    check(Boolean(more) === hidden > 0, `${hidden} lines are hidden, and ${more?.outerHTML}`);
    if (more) {
      check(more.textContent.startsWith(`↑ ${hidden} more lines`), more.textContent);
      check(at(more).top >= rect.bottom - 1, "the note of a value covers it");
    }
    return [field.previousElementSibling?.textContent ?? null, field.textContent];
  });
  const ask = at(question);
  check(at(short).top >= last - 1, "the short line is above a value");
  check(at(short).bottom <= ask.top + 1, "the short line is below the question");
  check(ask.top - at(short).bottom < 40, "something is between the short line and the question");
  check(getComputedStyle(short).overflowY !== "visible", "marks leave the short line");
  inside(at(short), outer, "the short line");
  // Values stand from left to right, and each of them from the left.
  const places = [...short.querySelectorAll("bdi")].map(one => one.getClientRects()[0]);
  places.slice(1).forEach((place, number) => check(
    place.top > places[number].top + 2 || place.left >= places[number].left - 1,
    "values of the short line have changed places",
  ));
  return { problems, fields, names: names.map(one => one.firstChild.textContent),
           short: short.textContent };
}"""
"""Looks at the box of a call, above its question: what is wrong, and the texts that are shown."""
