"""`callslip lint` and `callslip read`."""

from __future__ import annotations

import argparse
from dataclasses import replace

from callslip._base.call_line import call_line
from callslip._core import Move, Reply
from callslip.cli._files import read_text
from callslip.cli._output import print_json, print_text, report
from callslip.errors import TemplateError
from callslip.protocols import find_protocol

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Check the examples of a template, or show how a reply is read."""
    return _lint(options) if options.command == "lint" else _read(options)


def _lint(options: argparse.Namespace) -> int:
    template = read_text(options.prompt)
    try:
        faults = replace(find_protocol(options.protocol), template=template).lint()
    except TemplateError as error:
        report(str(error))
        return 1
    for fault in faults:
        print_text(str(fault))
    if not faults:
        print_text("no faults: all placeholders and examples are right")
    return 1 if faults else 0


def _read(options: argparse.Namespace) -> int:
    protocol = replace(
        find_protocol(options.protocol), strict=options.strict, lenient=options.lenient
    )
    reply = protocol.parse(read_text(options.reply))
    for repair in reply.repairs:
        print_text(f"repair {repair.code}")
        _print_place(reply.raw, repair.span)
    violation = reply.violation
    if violation is not None:
        print_text(f"violation {violation.code}: {violation.message}")
        if violation.span is not None:
            _print_place(reply.raw, violation.span)
        if violation.hint is not None:
            print_text(f"hint: {violation.hint}")
        return 1
    _print_move(reply)
    return 0


def _print_place(text: str, span: tuple[int, int]) -> None:
    """Print the line of a span with marks around it. Spans count the bytes of UTF-8."""
    data = text.encode("utf-8", "surrogatepass")
    before, marked, after = (
        part.decode("utf-8", "replace")
        for part in (data[: span[0]], data[span[0] : span[1]], data[span[1] :])
    )
    number = before.count("\n") + 1
    line = before.split("\n")[-1] + f"»{marked}«" + after.split("\n")[0]
    for at, one in enumerate(line.split("\n")):
        print_text(f"  line {number + at}: {one}")


def _print_move(reply: Reply) -> None:
    match reply.move:
        case Move.Finish(value, _):
            print_text("finish")
            print_json(value)
        case Move.Call(calls):
            for call in calls:
                print_text(f"call {call_line(call.tool, call.arguments)}")
        case Move.Delegate(task):
            print_text(f"delegate {task}")
        case Move.Await(ticket_id):
            print_text(f"wait for {ticket_id}")
        case Move.Load(ticket_id):
            print_text(f"load {ticket_id}")
