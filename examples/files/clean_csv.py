"""Clean a CSV file with a script that a model writes, in the sandbox.

    python examples/files/clean_csv.py                   # members.csv beside this file
    python examples/files/clean_csv.py my.csv --into clean
    OPENAI_API_KEY=… python examples/files/clean_csv.py my.csv --model openai:gpt-5-mini

Without `--model` a fixed script answers in place of a model. It knows columns like those of
`members.csv`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from callslip import Agent, File, PythonRunner, RunResult, as_model
from callslip.models import Model

TASK = (
    "Clean this CSV file: trim and title-case names, lower-case addresses, write dates as "
    "YYYY-MM-DD and amounts with a dot, and drop empty rows and duplicates. Leave a cell empty if "
    "it can't be read, and say which. Write the result to out/clean.csv."
)

SCRIPT = r"""
import csv, datetime, os, re

def date(text):
    for form in ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%d %B %Y"):
        try:
            return datetime.datetime.strptime(text, form).date().isoformat()
        except ValueError:
            pass

def fee(text):
    text = text.replace(".", "").replace(",", ".") if "," in text else text
    return f"{float(text):.2f}" if re.fullmatch(r"\d+(\.\d+)?", text) else None

name, = os.listdir("in")
with open(f"in/{name}", encoding="utf-8", newline="") as file:
    head, *rows = ([cell.strip() for cell in row] for row in csv.reader(file, delimiter=";"))
seen, problems = {}, []
for number, row in enumerate(rows, 2):
    if not any(row):
        continue
    cells = [
        " ".join(row[0].split()).title(),
        row[1].lower() if "@" in row[1] else None,
        date(row[2]),
        fee(row[3]),
    ]
    problems += [
        f"line {number}: {title} {old!r}"
        for title, old, new in zip(head, row, cells) if new is None
    ]
    seen.setdefault(tuple(cells))
os.makedirs("out", exist_ok=True)
with open("out/clean.csv", "w", encoding="utf-8", newline="") as file:
    writer = csv.writer(file)
    writer.writerow([re.sub(r"\W+", "_", title).lower() for title in head])
    writer.writerows(seen)
print(f"{len(rows)} rows became {len(seen)}.", "Not read:", "; ".join(problems) or "nothing")
"""


def stand_in(messages: list[dict[str, str]]) -> str:
    """Answer in place of a model: with the script, then with what it printed."""
    last = messages[-1]["content"]
    if not last.startswith("TOOL_EXECUTION_RESULT"):
        call = {
            "call_id": "clean",
            "tool_name": "execute_python_code",
            "arguments": {"code": SCRIPT},
        }
        return f"<tool>{json.dumps([call])}</tool>"
    result = json.loads(last[last.index("{") : last.rindex("}") + 1])
    return str(result["stdout"] or result["stderr"]).strip()


def clean(path: Path, model: Model) -> RunResult:
    """Let the model clean a CSV file."""
    agent = Agent(model, protocol="chatty", python=PythonRunner(deps=[]))
    return agent.run_sync([TASK, File(path, media_type="text/csv")])


def main() -> None:
    """Clean a file, and save what the script has left."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "file", nargs="?", type=Path, default=Path(__file__).with_name("members.csv")
    )
    parser.add_argument("--into", type=Path, default=Path())
    parser.add_argument("--model")
    options = parser.parse_args()
    model = stand_in if options.model is None else as_model(options.model)
    result = clean(options.file, model)
    print(result.value)
    for file in result.run.parts.values():
        if file.label.startswith("T"):
            print("saved", file.save(options.into / Path(file.name).name))


if __name__ == "__main__":
    main()
