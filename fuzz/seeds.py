"""The seeds of a fuzz target as a folder for libFuzzer, and a folder as the seeds of a target.

`fuzz/seeds/TARGET.jsonl` has one input a line: a JSON string with one character, U+0000 to U+00FF,
for each byte. Inputs with a name are files in `fuzz/seeds/TARGET/`.

    python fuzz/seeds.py unpack TARGET FOLDER    write all seeds of the target into the folder
    python fuzz/seeds.py pack TARGET FOLDER      pack the files of the folder as the target's seeds
"""

import hashlib
import json
import sys
from pathlib import Path

SEEDS = Path(__file__).parent / "seeds"


def packed(target: str) -> Path:
    return SEEDS / f"{target}.jsonl"


def named(target: str) -> list[Path]:
    folder = SEEDS / target
    return sorted(folder.iterdir()) if folder.is_dir() else []


def unpack(target: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = packed(target).read_text(encoding="ascii").splitlines()
    inputs = [json.loads(line).encode("latin-1") for line in lines]
    inputs += [path.read_bytes() for path in named(target)]
    for data in inputs:
        (folder / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)


def pack(target: str, folder: Path) -> None:
    known = {path.read_bytes() for path in named(target)}
    inputs = {path.read_bytes() for path in folder.iterdir()} - known
    lines = [
        json.dumps(data.decode("latin-1"))
        for data in sorted(inputs, key=lambda data: (len(data), data))
    ]
    packed(target).write_text("".join(f"{line}\n" for line in lines), encoding="ascii")


def main() -> None:
    match sys.argv[1:]:
        case ["unpack", target, folder]:
            unpack(target, Path(folder))
        case ["pack", target, folder]:
            pack(target, Path(folder))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
