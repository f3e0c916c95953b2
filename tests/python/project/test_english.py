"""The docs and the comments of the code are plain English, as far as a program can tell."""

import re

import pytest

import english

MOST_CLAUSES = 0.05
SLACK = 0.5
"""How much lower a figure may be before it has to be lowered."""


def test_few_sentences_have_to_be_decoded():
    texts = [page.read_text("utf-8") for page in english.PAGES]
    counted = sum(len(english.clauses(text)) for text in texts)
    assert counted / sum(len(english.sentences(text)) for text in texts) < MOST_CLAUSES


@pytest.mark.parametrize("page", english.PAGES, ids=lambda page: page.name)
def test_options_are_passed_and_not_said(page):
    assert re.findall(r"\bsay `?\w+=", page.read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ("What is sent is checked. Each message is checked.", 1),
        ("Whoever waits gets it, where there is one.", 2),
        ('Who answers? `what` is a name, and "where it is" a quotation.', 0),
        ("```\nwhat where who\n```\nNothing of that counts.", 0),
    ],
)
def test_clauses_are_counted(text, counted):
    assert len(english.clauses(text)) == counted


@pytest.mark.parametrize("kind", english.KINDS)
def test_no_kind_of_file_is_written_worse_than_it_was(kind):
    found, most = english.figure(kind), english.known_figures()[kind]
    names = "python tests/support/english.py FILE"
    assert found <= most, f"{found:.2f} hits in 100 sentences of {kind}: `{names}` names them"
    again = "run `python tests/support/english.py --lower`"
    assert found > most - SLACK, f"{kind} is better than {most}, with {found:.2f}: {again}"


@pytest.mark.parametrize(
    "example",
    [
        ("What is sent is checked.", "clause"),
        ("Leaving ends nothing at all.", "negated"),
        ("Files have folders of their own.", "pronoun"),
        ("The model is told of it.", "event"),
        ("It is closed also if it fails.", "connective"),
        ("Text with one reading is repaired.", "word"),
        ("It may be awaited by tasks.", "passive"),
    ],
)
@pytest.mark.parametrize(
    ("suffix", "said", "unsaid"),
    [
        ("md", "# X\n\n{}\n", "# X\n\n```python\nx = 1  # {}\n```\n\nThe page says `{}` here.\n"),
        ("py", "def f():\n    # {}\n    return 1\n", "X = '{}'\n"),
        ("py", 'def f():\n    """{}"""\n', 'raise ValueError("# {}")\n'),
        ("py", 'X = 1\n"""{}"""\n', '@tool\ndef f():\n    """{}"""\n'),
        ("pyi", "class A:\n    # {}\n    x: int\n", "x: '{}'\n"),
        ("rs", "/// {}\nfn f() {{}}\n", 'const A: &str = "// {}";\n'),
        ("rs", "//! {}\n", 'const A: &str = r#"/// "{}""#;\n'),
        (
            "rs",
            "fn f<'a>(x: &'a str) {{}} // {}\n",
            "const A: char = '\\''; const B: &str = \"{}\";\n",
        ),
        ("rs", "/* {} */\n", 'const A: &[u8] = b"/* {} */";\n'),
        ("sql", "CREATE FUNCTION f() AS $$\n-- {}\n$$;\n", "SELECT '-- {}''-- {}';\n"),
    ],
)
def test_comments_are_read_and_code_is_not(suffix, said, unsaid, example, tmp_path):
    sentence, pattern = example
    path = tmp_path / f"x.{suffix}"
    path.write_text(said.format(sentence), "utf-8")
    assert [name for text in english.texts(path) for name, _ in english.hits(text)] == [pattern]
    path.write_text(unsaid.format(sentence, sentence), "utf-8")
    assert english.count([path])[0].total() == 0


@pytest.mark.parametrize(
    ("comment", "is_short"),
    [
        ("Its id.", True),
        ("The first byte.", True),
        ("The id of the run.", False),
        ("Command A.", False),
        ("`None`.", False),
    ],
)
def test_comments_that_repeat_a_name_are_short(comment, is_short):
    assert english.is_short(comment) == is_short


def test_comments_on_lines_that_follow_one_another_are_one_text(tmp_path):
    path = tmp_path / "x.rs"
    path.write_text("// What is sent\n// is checked.\nfn f() {}\n/// Another one here.\n", "utf-8")
    assert english.texts(path) == ["What is sent\nis checked.", "Another one here."]
