"""Checks the Rust half for other systems, as far as their targets are installed here.

Nothing is linked and nothing is run. C code is compiled with zig, from PyPI or installed, which
knows the headers of all targets; without it, a target needs a C compiler of its own.

    python tests/support/portable.py TARGET…
"""

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]

PARTS = {
    "core": ["--no-default-features", "--features", "postgres"],
    "core and border": [],
}
"""What is checked, with its features."""

ZIG_TARGETS = {
    "x86_64-pc-windows-gnu": "x86_64-windows-gnu",
    # Only checked: objects of another ABI do no harm.
    "x86_64-pc-windows-msvc": "x86_64-windows-gnu",
    "aarch64-pc-windows-msvc": "aarch64-windows-gnu",
    "aarch64-apple-darwin": "aarch64-macos-none",
    "x86_64-apple-darwin": "x86_64-macos-none",
    "aarch64-unknown-linux-gnu": "aarch64-linux-gnu",
    "aarch64-unknown-linux-musl": "aarch64-linux-musl",
    "x86_64-unknown-linux-musl": "x86_64-linux-musl",
}


def is_installed(target):
    asked = ["rustc", "--print", "target-libdir", "--target", target]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.returncode == 0 and Path(done.stdout.strip()).is_dir()


def zig():
    """Return the command for zig; `None` without it."""
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang"]
    found = shutil.which("zig")
    return None if found is None else [found]


def wrapper(folder, name, command):
    """Write a program that starts a command with its own arguments behind it. Returns its path.

    Build scripts pass a compiler on to others, which take a path and no arguments.
    """
    path = folder / name
    # Rust's own names of targets mean nothing to zig.
    path.write_text(
        "#!/bin/sh\n"
        'for argument; do shift; case "$argument" in --target=*) ;; *) set -- "$@" "$argument" ;; '
        f'esac; done\nexec {shlex.join(command)} "$@"\n',
        "utf-8",
    )
    path.chmod(0o755)
    return str(path)


def environment(target, folder):
    known = {
        name: value
        for name, value in os.environ.items()
        # No interpreter of this machine says anything about the one there.
        if name not in {"PYO3_PYTHON", "VIRTUAL_ENV", "CONDA_PREFIX"}
    }
    known["PYO3_NO_PYTHON"] = "1"
    command, zig_target = zig(), ZIG_TARGETS.get(target)
    if command is not None and zig_target is not None:
        name = target.replace("-", "_")
        compiler = [*command, "cc", "-target", zig_target]
        known[f"CC_{name}"] = wrapper(folder, f"cc-{target}", compiler)
        known[f"AR_{name}"] = wrapper(folder, f"ar-{target}", [*command, "ar"])
    return known


def check(target, part, folder):
    """Check one part. Returns whether it is well."""
    cargo = shlex.split(os.environ.get("CARGO", "cargo"))
    options = ["--target", target, "--target-dir", str(ROOT / "target/portable"), *PARTS[part]]
    began = time.monotonic()
    done = subprocess.run(
        [*cargo, "clippy", "--quiet", *options, "--", "-D", "warnings"],
        cwd=ROOT,
        env=environment(target, folder),
        check=False,
    )
    said = "is well" if done.returncode == 0 else "fails"
    print(f"{target}: {part} {said}, {time.monotonic() - began:.0f} s", flush=True)
    return done.returncode == 0


def main(targets):
    folder = ROOT / "target/portable/tools"
    folder.mkdir(parents=True, exist_ok=True)
    if zig() is None:
        print("zig is not there: pip install ziglang, or C code needs a compiler for each target")
    well = True
    for target in targets:
        if not is_installed(target):
            print(f"{target}: not checked, it is not installed: rustup target add {target}")
            continue
        for part in PARTS:
            well &= check(target, part, folder)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
