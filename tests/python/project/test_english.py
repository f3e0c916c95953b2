"""README and docs are plain English, as far as a program can tell."""

import re

import pytest

import english

MOST_CLAUSES = 0.05


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
