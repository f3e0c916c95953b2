"""The page of the commands is written from their parser."""

import os
from pathlib import Path

import cli_reference

PAGE = Path(__file__).resolve().parents[3] / "docs/reference/cli.md"


def test_the_page_is_as_the_parser_says():
    if os.environ.get("CALLSLIP_WRITE_CLI"):
        PAGE.write_text(cli_reference.page(), "utf-8")
    assert PAGE.read_text("utf-8") == cli_reference.page(), "run `make cli-reference`"
