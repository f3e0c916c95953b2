"""Measure how values without an origin are found and refused: `python -m values`, in `benches`.

    python -m values runs --gguf model.gguf       # whole runs of a small model
    python -m values unknown --gguf model.gguf    # what it does after the name of no tool
    python -m values recorded --gguf model.gguf   # its calls of BFCL, by level
    python -m values expected                     # the expected calls of BFCL, by level
    python -m values policies                     # AgentDojo's tasks and attacks, by policy

The replies of a model are kept in `.cache/values`: what was computed once is not computed again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bfcl import Benchmark

from values.bfcl_calls import EXPECTED, Level, expected_calls, recorded_calls, tally
from values.dojo import load_scenes
from values.kept_replies import KeptReplies
from values.policies import asked
from values.unknown_names import after_unknown_names
from values.whole_runs import KINDS, Row, whole_runs

CACHE = Path(__file__).parents[2] / ".cache"
LEVELS: tuple[Level, ...] = ("stated", "strict")


def kept(options: argparse.Namespace) -> KeptReplies:
    """The model of the options."""
    options.cache.mkdir(parents=True, exist_ok=True)
    name = Path(options.gguf).stem if options.gguf else "bundled"
    return KeptReplies(
        options.gguf, options.cache / f"{name}.jsonl", threads=options.threads, context=4096
    )


def runs_table(options: argparse.Namespace) -> None:
    """Print what came of whole runs."""
    print(
        "| protocol | values | for nothing, no tool fits | for nothing, value missing "
        "| for nothing, call due | right | refusal as answer | no answer | example values "
        "| violations |\n" + "|---" * 10 + "|"
    )
    for protocol in options.protocol:
        rows: dict[str, Row] = {}
        with kept(options) as model:
            for rows in whole_runs(model, protocol, options.level, options.kind, options.tasks):
                _show(options, [f"{level}: {row.notes[-1]}" for level, row in rows.items()])
        for level, row in rows.items():
            cells = [f"{row.for_nothing[kind]} of {row.tasks[kind]}" for kind in KINDS]
            codes = ", ".join(f"{count} {code}" for code, count in row.codes.most_common())
            print(
                f"| {protocol} | {level} | {' | '.join(cells)} "
                f"| {row.right} of {row.tasks['fitting']} | {row.refusals} | {row.failed} "
                f"| {row.examples} | {codes or 'none'} |",
                flush=True,
            )


def unknown_table(options: argparse.Namespace) -> None:
    """Print what a model does after the name of no tool."""
    print("| protocol | what came next |\n|---|---|")
    for protocol in options.protocol:
        with kept(options) as model:
            counts, notes = after_unknown_names(model, protocol, options.tasks)
        found = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
        print(f"| {protocol} | {found} |", flush=True)
        _show(options, notes)


def recorded_table(options: argparse.Namespace) -> None:
    """Print which of a model's own calls each level refuses."""
    fitting = options.cases // 2
    counts = {
        "irrelevance": options.cases,
        "simple": fitting,
        "multiple": fitting // 2,
        "parallel": fitting // 2,
    }
    with kept(options) as model:
        recorded = list(recorded_calls(Benchmark(options.bfcl), model, counts))
    print(f"{len(recorded)} cases\n\n| values | kind | refused |\n|---|---|---|")
    for level in LEVELS:
        for kind, count in tally(recorded, level).items():
            print(f"| {level} | {kind} | {count['refused']} of {count['replies']} |", flush=True)


def expected_table(options: argparse.Namespace) -> None:
    """Print how many expected calls each level refuses."""
    benchmark = Benchmark(options.bfcl)
    print("| values | calls | refused | of live | not judged |\n|---|---|---|---|---|")
    for level in LEVELS:
        found = {file: expected_calls(benchmark, file, level) for file in EXPECTED}
        live = [one for file, one in found.items() if file.startswith("live")]
        print(
            f"| {level} | {sum(one.calls for one in found.values())} "
            f"| {sum(one.refused for one in found.values())} "
            f"| {sum(one.refused for one in live)} of {sum(one.calls for one in live)} "
            f"| {sum(one.unread for one in found.values())} |",
            flush=True,
        )
        _show(options, [line for one in found.values() for line in one.left])


def policies_table(options: argparse.Namespace) -> None:
    """Print how often each policy asks."""
    print("| policy | benign tasks that ask | attacks that ask |\n|---|---|---|")
    for trusts_directories in (False, True):
        scenes = load_scenes(options.dojo)
        found, missed = asked(scenes, trusts_directories=trusts_directories)
        for policy, count in found.items():
            print(
                f"| {policy} | {count['tasks asked']} of {count['tasks']} "
                f"| {count['attacks asked']} of {count['attacks']} |",
                flush=True,
            )
        _show(options, missed)


def _show(options: argparse.Namespace, notes: list[str]) -> None:
    if options.verbose:
        print("\n".join(f"  {note}" for note in notes), flush=True)


TABLES = {
    "runs": runs_table,
    "unknown": unknown_table,
    "recorded": recorded_table,
    "expected": expected_table,
    "policies": policies_table,
}


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--gguf", help="the model file; default: the bundled one")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cache", type=Path, default=CACHE / "values")
    parser.add_argument("--bfcl", type=Path, default=CACHE / "bfcl")
    parser.add_argument("--dojo", type=Path, default=CACHE / "dojo")
    parser.add_argument("--protocol", nargs="+", default=["react", "chatty"])
    parser.add_argument("--level", nargs="+", default=["any", "default"])
    parser.add_argument("--kind", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--tasks", type=int, help="how many tasks of each kind")
    parser.add_argument("--cases", type=int, default=60, help="cases of BFCL where no tool fits")
    parser.add_argument("--verbose", action="store_true", help="show each run or call")
    options = parser.parse_args()
    TABLES[options.table](options)


if __name__ == "__main__":
    main()
