"""Scripts of a model in Docker containers, in place of this machine's own box.

    python examples/docker_runner.py                       # the image python:3.12-slim
    python examples/docker_runner.py --image my-image      # one with the packages that you want

A container is made for each script, and for all those of a session. What runs in it is one file of
callslip, which is mounted into it: the image needs Python 3.8 or newer, and nothing else. It
installs no packages: those that scripts may have are built into the image.
"""

from __future__ import annotations

import argparse

from callslip import CommandRunner, PythonRunner, ScriptLimits
from callslip.sandbox import serve


def docker_command(image: str, limits: ScriptLimits) -> list[str]:
    """Return the command that serves scripts in a container of this image."""
    memory = f"{limits.memory_bytes + (64 << 20)}b"
    return [
        *("docker", "run", "--rm", "--interactive", "--init"),
        *("--network", "none"),
        *("--read-only", "--tmpfs", f"/tmp:rw,nosuid,nodev,noexec,size={limits.disk_bytes}"),
        *("--memory", memory, "--memory-swap", memory),
        *("--cpus", "1", "--pids-limit", str(limits.processes + 8)),
        *("--user", "65534:65534", "--cap-drop", "ALL"),
        *("--security-opt", "no-new-privileges", "--ipc", "none"),
        *("--volume", f"{serve.__file__}:/serve.py:ro"),
        *(image, "python", "-I", "-u", "/serve.py"),
    ]


def docker_runner(image: str) -> PythonRunner:
    """Return what runs scripts in containers of this image."""
    limits = ScriptLimits(wall_seconds=30)
    backend = CommandRunner(
        docker_command(image, limits), about="It has no network.", takes_files=True
    )
    return PythonRunner(backend=backend, limits=limits, deps=[])


def main() -> None:
    """Run two scripts in one container, and show what came of them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--image", default="python:3.12-slim")
    with docker_runner(parser.parse_args().image) as runner, runner.session() as session:
        code = "open('sum', 'w').write(str(sum(map(int, open('in/numbers.txt').read().split()))))"
        session.run(code, files={"numbers.txt": b"1 2 3 4"})
        result = session.run("print(open('sum').read())")
        print(result.status, result.stdout.strip(), f"in {result.duration_ms:.0f} ms")


if __name__ == "__main__":
    main()
