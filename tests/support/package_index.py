"""A package index on a loopback port: wheels and an archive that leave a trace where they run.

Usage: package_index.py FOLDER. Prints its port, notes requests in FOLDER/requests.txt, and ends
with its stdin. What ran writes FOLDER/trace. Below /private/ it wants a password.
"""

import base64
import http.server
import io
import sys
import tarfile
import threading
import time
import zipfile
from pathlib import Path

FOLDER = Path(sys.argv[1])
TRACE = f"open({str(FOLDER / 'trace')!r}, 'a').write('ran')"
SIMPLE = "application/vnd.pypi.simple.v1+html"


def wheel(name: str, requires: str = "", **files: str) -> bytes:
    """A wheel of version 1.0; names of further files have `__` for their dot."""
    info = f"{name}-1.0.dist-info"
    texts = {f"{name}.py": f"NAME = {name!r}\n"}
    texts |= {path.replace("__", "."): text for path, text in files.items()}
    texts |= {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{requires}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    texts[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*texts, f"{info}/RECORD"])
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for path, text in texts.items():
            archive.writestr(path, text)
    return held.getvalue()


def archive(name: str) -> bytes:
    """A source archive of version 1.0 whose setup.py leaves a trace."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as made:
        for path, text in {"setup.py": TRACE, "PKG-INFO": f"Name: {name}\nVersion: 1.0\n"}.items():
            entry = tarfile.TarInfo(f"{name}-1.0/{path}")
            entry.size = len(text)
            made.addfile(entry, io.BytesIO(text.encode()))
    return held.getvalue()


FILES = {
    "good_one-1.0-py3-none-any.whl": wheel(
        "good_one",
        "Requires-Dist: tail-end\n",
        start__pth=f"import sys; {TRACE}\n",
        sitecustomize__py=TRACE,
    ),
    "tail_end-1.0-py3-none-any.whl": wheel("tail_end"),
    "large_one-1.0-py3-none-any.whl": wheel("large_one", zeros__txt="0" * (3 << 20)),
    "many_files-1.0-py3-none-any.whl": wheel("many_files", **{f"f{n}__py": "" for n in range(300)}),
    "built_only-1.0.tar.gz": archive("built_only"),
}


class Index(http.server.BaseHTTPRequestHandler):
    """The simple index of PEP 503."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Says nothing."""

    def do_GET(self) -> None:
        """Lists the files of a package, or gives one."""
        secret = base64.b64decode(self.headers.get("Authorization", "").removeprefix("Basic "))
        with (FOLDER / "requests.txt").open("a") as noted:
            noted.write(f"{self.path} {secret.decode()} {self.headers}\n".replace("\n", " ") + "\n")
        if self.path.startswith("/private/") and secret != b"ann:s3cr3t-word":
            return self.give(401, b"", {"WWW-Authenticate": "Basic"})
        *_, folder, name = self.path.rstrip("/").split("/")
        if folder == "files":
            return self.give(200, FILES[name], {})
        if name == "slow":
            time.sleep(60)
        begin = name.replace("-", "_") + "-"
        links = [f'<a href="/files/{file}">{file}</a>' for file in FILES if file.startswith(begin)]
        return self.give(200 if links else 404, "".join(links).encode(), {"Content-Type": SIMPLE})

    do_HEAD = do_GET  # noqa: N815  # named by the server

    def give(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        """Answers."""
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
