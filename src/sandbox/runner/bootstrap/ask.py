# For interactive scripts: who asks, asks the host, over the socket that stands for stdin.


def ask_the_host(builtins, sys):
    import fcntl
    import getpass
    import io
    import json
    import os
    import threading

    channel = os.fdopen(os.dup(0), "rb", 0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    # Its threads take turns, and the processes that it forks.
    turn = threading.Lock()
    turns = os.open(os.path.join(os.environ["TMPDIR"], ".questions"), os.O_RDWR | os.O_CREAT)

    def line(prompt="", secret=False):
        sys.stdout.flush()
        sys.stderr.flush()
        with turn:
            fcntl.lockf(turns, fcntl.LOCK_EX)
            try:
                return exchange(prompt, secret)
            finally:
                fcntl.lockf(turns, fcntl.LOCK_UN)

    def exchange(prompt, secret):
        # No more is shown; half of a pair of surrogates is no text.
        shown = str(prompt)[:4000].encode("utf-8", "replace").decode()
        rest = memoryview((json.dumps({"prompt": shown, "secret": secret}) + "\n").encode())
        while rest:
            rest = rest[os.write(channel.fileno(), rest) :]
        received = b""
        while not received.endswith(b"\n"):
            piece = os.read(channel.fileno(), 65536)
            if not piece:
                return None
            received += piece
        return json.loads(received)["text"]

    def answered(prompt, secret):
        text = line(prompt, secret)
        if text is None:
            raise EOFError("no more input")
        return text

    class Stdin(io.TextIOBase):
        encoding = "utf-8"
        _left = ""

        def readable(self):
            return True

        def fileno(self):
            return 0

        def readline(self, size=-1):
            if not self._left:
                text = line()
                self._left = "" if text is None else text + "\n"
            size = len(self._left) if size is None or size < 0 else size
            taken, self._left = self._left[:size], self._left[size:]
            return taken

        def read(self, size=-1):
            if size is not None and size >= 0:
                return self.readline(size)
            return "".join(iter(self.readline, ""))

    builtins.input = lambda prompt="", /: answered(prompt, False)
    sys.stdin = sys.__stdin__ = Stdin()
    getpass.getpass = getpass.unix_getpass = lambda prompt="Password: ", stream=None, **_: answered(
        prompt, True
    )
