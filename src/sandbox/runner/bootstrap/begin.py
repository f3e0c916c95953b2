# Begins a script: `script.py`, the folder of its packages or nothing, `interactive` or `silent`.


def begin():
    import builtins
    import sys

    path, packages, mode = sys.argv[1:]
    sys.argv = ["script.py"]
    # What a process printed before it is killed is not to be lost.
    sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")
    if packages:
        sys.path.append(packages)
    # Last: what a script wrote is found, but nothing that others import is replaced by it.
    sys.path.append("")
    # As the module `site` would, which is left out.
    for name in "exit", "quit":
        setattr(builtins, name, sys.exit)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    main = type(sys)("__main__")
    main.__file__ = path
    main.__builtins__ = builtins
    sys.modules["__main__"] = main

    class Source:
        # Whoever shows a line of the script asks for it here.
        def get_source(self, _name):
            return text

    main.__loader__ = Source()

    def show(kind, error, trace):
        import linecache
        import traceback

        linecache.lazycache("script.py", main.__dict__)
        # What is above the script's own lines is no concern of whoever wrote it.
        own = trace
        while own is not None and own.tb_frame.f_code.co_filename != "script.py":
            own = own.tb_next
        traceback.print_exception(kind, error, own)

    sys.excepthook = show
    if mode == "interactive":
        ask_the_host(builtins, sys)  # of the other file, which stands before this one
    exec(compile(text, "script.py", "exec", dont_inherit=True), main.__dict__)


begin()
