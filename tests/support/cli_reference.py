"""The reference of the command line, written from its parser."""

import argparse

from callslip.cli._parser import command_parser

INTRODUCTION = """# Command line

Written by `make cli-reference` from the code. `callslip` and `python -m callslip` are the same
program ([Command line](../howto/command-line.md)).

The exit status is 0 if all is well, 1 if a run, a replay, a reply, a prompt or a module of the
program is at fault, 2 if the command cannot be carried out, and 130 after Ctrl-C.
"""
END = """
## From Python

::: callslip.cli.main
"""


def _row(action):
    words = ", ".join(action.option_strings) or action.metavar
    if action.option_strings and action.nargs != 0:
        words += f" {action.metavar or '|'.join(action.choices)}"
    return f"| `{words.replace('|', chr(92) + '|')}` | {action.help} |"


def _section(name, parser):
    actions = [one for one in parser._actions if not isinstance(one, argparse._HelpAction)]
    rows = "\n".join(["| word | meaning |", "|---|---|", *map(_row, actions)])
    table = f"\n{rows}\n" if actions else ""
    return f"\n## `{name}`\n\n{parser.description}\n{table}"


def page():
    """The whole page."""
    commands = next(
        one for one in command_parser()._actions if isinstance(one, argparse._SubParsersAction)
    )
    sections = [_section(name, parser) for name, parser in commands.choices.items()]
    return INTRODUCTION + "".join(sections) + END
