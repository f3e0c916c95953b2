"""The words that the commands take."""

from __future__ import annotations

import argparse
import math
import re
from typing import NoReturn, TypeAlias

from callslip._base import _lazy
from callslip._core import __version__
from callslip._protocols import DEFAULT_PROTOCOL, PROTOCOL_NAMES, SERVED_PROTOCOLS

__all__ = ["command_parser"]

_STATUS = (
    "exit status: 0 if all is well, 1 if a run, a replay, a reply, a prompt or a module of the "
    "program is at fault, 2 if the command cannot be carried out"
)
# The simplest first.
_PROTOCOLS = PROTOCOL_NAMES[::-1]

_ELSEWHERE = {
    "list": "runs",
    "logs": "show, or export",
    "ls": "runs",
    "resume": "chat --resume RUN, or agent.resume(run_id) in a program",
    "run": "ask",
    "start": "ask",
    "version": "--version",
    "worker": "work",
}
"""Replacements for commands of other programs."""


class _Parser(argparse.ArgumentParser):
    """A parser that says for an unknown command which one to use."""

    def error(self, message: str) -> NoReturn:
        """Print the error, and end the program with status 2."""
        unknown = re.match(
            r"argument COMMAND: invalid choice: '(.*?)' \(choose from (.*)\)", message
        )
        if unknown is not None:
            word, known = unknown[1], re.findall(r"[a-z]+", unknown[2])
            near = _lazy.difflib.get_close_matches(word, known, n=1)
            hint = _ELSEWHERE.get(word) or (near[0] if near else "one of them")
            message = f"expected a command ({', '.join(known)}): got {word!r}; use {hint}"
        super().error(message)


def command_parser() -> argparse.ArgumentParser:
    """Return the parser. The option `module` of its result is the module of the command."""
    parser: argparse.ArgumentParser = _Parser(
        prog="callslip",
        description="Run tasks, look at stored runs, decide on their calls, and check prompts.",
        epilog=_STATUS,
    )
    parser.add_argument("--version", action="version", version=f"callslip {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_tasks(commands)
    _add_runs(commands)
    _add_views(commands)
    _add_decisions(commands)
    _add_console(commands)
    _add_gateway(commands)
    _add_logs(commands)
    _add_checks(commands)
    _add_deploys(commands)
    _add_fleet(commands)
    _add_care(commands)
    return parser


Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def _add(commands: Commands, name: str, module: str, about: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=about, description=about)
    parser.set_defaults(module=module, command=name)
    return parser


def _add_tasks(commands: Commands) -> None:
    parser = _add(commands, "ask", "_ask", "Run one task, and print its answer.")
    parser.add_argument(
        "task", metavar="QUESTION", nargs="?", help="the task; - or nothing to read it from input"
    )
    _add_agent(parser)
    parser.add_argument(
        "--store", metavar="FILE", help="the file or the URL of a store that keeps the run"
    )

    parser = _add(commands, "chat", "_chat", "Have a conversation, one message a line.")
    _add_agent(parser)
    parser.add_argument(
        "--store", metavar="FILE", help="the file or the URL of a store that keeps the run"
    )
    parser.add_argument(
        "--resume", metavar="RUN", help="the id of a run of the store, or its beginning"
    )


def _add_agent(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-m",
        "--model",
        required=True,
        metavar="MODEL",
        help="openai:NAME, anthropic:NAME, or local for the model of callslip[local]",
    )
    parser.add_argument(
        "--base-url", metavar="URL", help="the address of a service with the same interface"
    )
    parser.add_argument(
        "--protocol",
        choices=_PROTOCOLS,
        help=f"default {DEFAULT_PROTOCOL}, or that of a resumed run",
    )
    parser.add_argument(
        "--tool",
        action="append",
        default=[],
        metavar="MODULE:FUNCTION",
        help="a function or a tool of a module; may be repeated",
    )


def _add_runs(commands: Commands) -> None:
    parser = _add(commands, "runs", "_runs", "List the runs of a store, the latest first.")
    parser.add_argument("file", metavar="STORE", help="the file or the URL of the store")
    parser.add_argument("--status", choices=("running", "finished"), help="only these runs")
    parser.add_argument("--agent", metavar="NAME", help="only runs of the agent of this name")
    parser.add_argument("--owner", metavar="NAME", help="only runs of this owner")
    parser.add_argument("--failed", action="store_true", help="only runs that ended with an error")
    parser.add_argument(
        "--waiting",
        action="store_true",
        help="only runs with calls that await approval or a result",
    )
    parser.add_argument(
        "--limit", type=_count, default=20, metavar="N", help="the most runs to list; default 20"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def _add_views(commands: Commands) -> None:
    parser = _add(commands, "show", "_show", "Show a run: its turns, its calls and its answer.")
    parser.add_argument(
        "file",
        metavar="STORE",
        help="the file or the URL of a store, or an export, or - for an export as input",
    )
    parser.add_argument(
        "run",
        metavar="RUN",
        nargs="?",
        help="the id of the run, or its beginning; default the latest",
    )
    parser.add_argument(
        "--turn", type=_count, metavar="N", help="only this turn, with its whole texts"
    )
    parser.add_argument(
        "--messages", action="store_true", help="the messages, as the model read them"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--html", metavar="PATH", help="write the run as an HTML file instead")
    parser.add_argument(
        "--open", action="store_true", help="open that file in a browser; without --html, a new one"
    )

    parser = _add(
        commands, "watch", "_watch", "Print the events of a run as they happen, until it ends."
    )
    parser.add_argument("file", metavar="STORE", help="the file or the URL of the store")
    parser.add_argument("run", metavar="RUN", help="the id of the run, or its beginning")
    parser.add_argument("--json", action="store_true", help="print the lines of the log")


def _add_console(commands: Commands) -> None:
    parser = _add(
        commands,
        "console",
        "_console",
        "Serve the runs of a store as live pages on this machine, where calls are decided.",
    )
    parser.add_argument("file", metavar="STORE", help="the file or the URL of the store")
    parser.add_argument(
        "--port", metavar="N", type=_count, default=0, help="the port; default a free one"
    )
    parser.add_argument(
        "--no-open", action="store_true", help="print the address, and open no browser"
    )


def _add_gateway(commands: Commands) -> None:
    parser = _add(
        commands,
        "serve",
        "_serve",
        "Serve a model to clients of OpenAI and Anthropic, with tool calls that are valid.",
    )
    parser.add_argument(
        "model_to_serve",
        metavar="MODEL",
        help="a .gguf file, the address of a compatible server, openai:NAME, anthropic:NAME, local "
        "for the model of callslip[local], or module:name",
    )
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="the name of the model at that server; CALLSLIP_UPSTREAM_KEY has its key",
    )
    _add_place(parser)
    parser.add_argument(
        "--protocol",
        choices=SERVED_PROTOCOLS,
        default=DEFAULT_PROTOCOL,
        help=f"default {DEFAULT_PROTOCOL}",
    )
    parser.add_argument(
        "--calls-first",
        action="store_true",
        help="answer each message of the user with a call first",
    )
    parser.add_argument(
        "--plain-answers",
        action="store_true",
        help="accept plain text as an answer in react, for models without constrained decoding",
    )
    parser.add_argument(
        "--max-violations",
        type=_count,
        default=3,
        metavar="N",
        help="invalid replies in a row that are asked for again; default 3",
    )
    _add_line(parser)
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="name repairs and violations in the header x-callslip-repairs and in the log",
    )
    parser.add_argument(
        "--store", metavar="FILE", help="the file or the URL of a store that keeps each request"
    )


def _add_line(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--slots", type=_count, default=1, metavar="N", help="requests at a time; default 1"
    )
    parser.add_argument(
        "--queue", type=_count, default=64, metavar="N", help="requests that wait; default 64"
    )
    parser.add_argument(
        "--stream",
        choices=("live", "whole"),
        default="live",
        help="when answers are sent: as they are written, or at their end; default live",
    )


def _add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="the address to listen on; default 127.0.0.1",
    )
    parser.add_argument(
        "--port",
        type=_count,
        default=8000,
        metavar="N",
        help="the port; default 8000, 0 for a free one",
    )
    parser.add_argument(
        "--hosts",
        action="append",
        metavar="NAME",
        help="a name under which clients reach it; may be repeated; default those of this machine",
    )
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="the key that clients send; a new one is made if the file is missing; default "
        "CALLSLIP_TOKEN, or no key",
    )


def _add_decisions(commands: Commands) -> None:
    for name, about in (
        ("approve", "Approve a call that is awaiting approval."),
        ("deny", "Deny a call that is awaiting approval."),
        ("answer", "Answer a call whose result comes from outside, or a question to the user."),
    ):
        parser = _add(commands, name, "_decisions", about)
        parser.add_argument(
            "file",
            metavar="FILE",
            help="the URL of the store, or its file, which no other process may own",
        )
        parser.add_argument("run", metavar="RUN", help="the id of the run, or its beginning")
        parser.add_argument("ticket", metavar="TICKET", help="the id of the ticket, such as T1")
        parser.add_argument("--by", metavar="NAME", help="the name of the person, for the log")
        if name == "approve":
            parser.add_argument(
                "--seal",
                metavar="SEAL",
                help="the seal of the call, which the command shows; without it, nothing is "
                "approved but by a person who is asked at a terminal",
            )
            parser.add_argument(
                "--arguments",
                metavar="JSON",
                help="all arguments of the call as a JSON object, to replace those of the model",
            )
        elif name == "answer":
            given = parser.add_mutually_exclusive_group(required=True)
            given.add_argument(
                "value", metavar="JSON", nargs="?", help="""the result as JSON, such as '"yes"'"""
            )
            given.add_argument(
                "--error", metavar="TEXT", help="why there is no result; the model reads it"
            )
        else:
            parser.add_argument(
                "--why", default="", metavar="TEXT", help="the reason, which the model reads"
            )


def _add_logs(commands: Commands) -> None:
    parser = _add(commands, "export", "_logs", "Print the logs of runs as JSON lines.")
    parser.add_argument("file", metavar="STORE", help="the file or the URL of the store")
    parser.add_argument("run", metavar="RUN", nargs="*", help="the ids of the runs; default all")

    parser = _add(commands, "import", "_logs", "Import exported runs into a store.")
    parser.add_argument(
        "file", metavar="FILE", help="the URL of the store, or its file, created if missing"
    )
    parser.add_argument("log", metavar="LOG", help="the file with the export, or - for input")
    parser.add_argument(
        "--trust",
        action="store_true",
        help="let approvals of calls without an outcome count; default: they await approval again",
    )

    parser = _add(
        commands,
        "replay",
        "_logs",
        "Compute runs again from their logs, and compare each event.",
    )
    parser.add_argument(
        "file", metavar="STORE", help="the file or the URL of a store, or an export"
    )
    parser.add_argument("run", metavar="RUN", nargs="*", help="the ids of the runs; default all")


def _add_protocol(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--protocol",
        choices=_PROTOCOLS,
        default=DEFAULT_PROTOCOL,
        help=f"default {DEFAULT_PROTOCOL}",
    )


def _add_checks(commands: Commands) -> None:
    parser = _add(commands, "lint", "_replies", "Check the examples of a prompt template.")
    parser.add_argument("prompt", metavar="PROMPT", help="the file of the template")
    _add_protocol(parser)

    parser = _add(commands, "read", "_replies", "Show how a reply is read.")
    parser.add_argument("reply", metavar="REPLY", help="the file of the reply, or - for input")
    _add_protocol(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--strict", action="store_true", help="repair nothing")
    form.add_argument("--lenient", action="store_true", help="read further forms")

    _add(
        commands,
        "doctor",
        "_doctor",
        "Describe this installation, for a report of a problem.",
    )


def _add_deploys(commands: Commands) -> None:
    parser = _add(
        commands,
        "check",
        "_check",
        "Check that an agent can continue its open runs, before it is deployed: else status 1.",
    )
    parser.add_argument("agent", metavar="MODULE:NAME", help="the agent of a module")
    parser.add_argument("file", metavar="STORE", help="the file or the URL of the store")


def _add_fleet(commands: Commands) -> None:
    parser = _add(
        commands, "migrate", "_fleet", "Make a PostgreSQL database ready for a store, or update it."
    )
    parser.add_argument("url", metavar="URL", help="postgresql://user@host/database")

    parser = _add(
        commands, "work", "_fleet", "Work on the runs of a fleet, until Ctrl-C or SIGTERM."
    )
    parser.add_argument("fleet", metavar="MODULE:NAME", help="the Fleet of a module, with agents")
    parser.add_argument(
        "--queue", action="append", metavar="NAME", help="a queue; may be repeated; default default"
    )
    parser.add_argument(
        "--slots", type=_count, default=64, metavar="N", help="runs at once; default 64"
    )
    parser.add_argument(
        "--grace",
        type=_seconds,
        default=30.0,
        metavar="SECONDS",
        help="how long calls under way may take at the end; default 30",
    )
    parser.add_argument(
        "--no-new",
        action="store_true",
        help="take only runs that have begun, as an earlier version does beside its successor",
    )


def _add_care(commands: Commands) -> None:
    parser = _add(commands, "status", "_status", "Say what goes on in a store, or in its fleet.")
    parser.add_argument(
        "store", metavar="STORE", help="the URL of a database, or the file of a store"
    )
    parser.add_argument(
        "--silent",
        type=_seconds,
        default=600.0,
        metavar="SECONDS",
        help="list runs that have had no event for so long; default 600",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument(
        "--metric", metavar="NAME", help="print one number, such as queue_age or queue_length"
    )

    parser = _add(commands, "prune", "_fleet", "Delete finished runs of a store that are old.")
    parser.add_argument(
        "url", metavar="STORE", help="the URL of a database, or the file of a store"
    )
    parser.add_argument(
        "--older-than", required=True, metavar="AGE", help="ended before this: 30d, 12h, 90m or 60s"
    )
    parser.add_argument(
        "--archive",
        metavar="PLACE",
        help="a folder or a URL: write their exports there first, compressed",
    )
    _add_files(parser)

    parser = _add(commands, "erase", "_fleet", "Delete all runs of an owner, finished or not.")
    parser.add_argument(
        "url", metavar="STORE", help="the URL of a database, or the file of a store"
    )
    parser.add_argument("--owner", required=True, metavar="NAME", help="whose runs they are")
    parser.add_argument(
        "--archive",
        metavar="PLACE",
        help="the folder or URL of prune: delete their exports there, too",
    )
    _add_files(parser)


def _add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--files",
        metavar="PLACE",
        help="a folder or a URL: delete the files that their scripts have left there, too",
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number of seconds from 0: got {text!r}")
    return seconds


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number from 0 on: got {text!r}")
    return int(text)
