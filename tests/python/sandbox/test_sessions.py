"""What stays from one script of a session to the next."""

import pytest

from callslip import PythonRunner
from sandbox.cases import BOXED
from sandbox.offered import need


@pytest.fixture(params=BOXED)
def session(request):
    need(request.param)
    with PythonRunner(profile=request.param, deps=[]) as runner, runner.session() as session:
        yield session


def test_links_and_files_with_several_names_stay(session):
    made = session.run(
        "import os\nopen('data', 'w').write('1')\n"
        "os.link('data', 'other'); os.symlink('data', 'link')\n"
        "open('run', 'w').write('x'); os.chmod('run', 0o755)"
    )
    assert (made.status, made.hints) == ("ok", ())
    told = session.run(
        "import os\nprint(sorted(os.listdir()), os.readlink('link'), open('other').read())\n"
        "open('other', 'w').write('2'); print(open('data').read())"
    )
    assert told.stdout == "['data', 'link', 'other', 'run'] data 1\n1\n"


def test_a_script_imports_what_an_earlier_one_wrote(session):
    session.run("open('mine.py', 'w').write('X = 5')")
    assert session.run("import mine; print(mine.X)").stdout == "5\n"


def test_files_of_out_stay_and_are_handed_over_when_they_change(session):
    first = session.run(
        "import os; os.makedirs('out/a')\n"
        "for name in 'a/same', 'changed': open('out/' + name, 'w').write('1')"
    )
    assert [artifact.path for artifact in first.artifacts] == ["a/same", "changed"]
    second = session.run("open('out/changed', 'w').write('2'); open('out/new', 'w').write('3')")
    assert [artifact.path for artifact in second.artifacts] == ["changed", "new"]
    assert session.run("print(open('out/a/same').read())").stdout == "1\n"


def test_files_that_would_fill_the_disk_are_not_kept_and_that_is_said(session):
    session.run("open('kept', 'w').write('1')")
    sparse = session.run(
        "for i in range(16):\n with open(f's{i}', 'wb') as f: f.truncate(64 << 20)"
    )
    assert sparse.status == "ok"
    assert sparse.hints == (
        "the files of this call are not there in later calls, which find those of the calls "
        "before: they are more, or larger, than a script may write",
    )
    assert session.run("import os; print(os.listdir())").stdout == "['kept']\n"


def test_what_can_not_be_kept_is_counted(session):
    made = session.run("import os; os.makedirs('/'.join('d' * 120)); os.mkfifo('pipe')")
    assert made.hints == (
        "2 things in the working directory are not there in later calls: pipes, sockets, or what "
        "is too deep",
    )


def test_a_session_outlives_a_script_that_is_killed(session):
    session.run("open('kept', 'w').write('1')")
    killed = session.run(
        "import os, signal; open('late', 'w').write('2'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert killed.status == "killed"
    assert session.run("import os; print(sorted(os.listdir()))").stdout == "['kept', 'late']\n"


def test_forked_processes_take_turns_to_ask(session):
    code = (
        "import os\nfor number in range(3):\n"
        "    if os.fork() == 0:\n        print(number, input(f'{number}? ')); os._exit(0)\n"
        "for _ in range(3): os.wait()"
    )
    for _ in range(3):
        told = session.run(code, interactive=True, answers=["a", "b", "c"])
        assert told.status == "ok"
        lines = sorted(told.stdout.split("\n"))
        assert sorted(line[2:] for line in lines if line) == ["a", "b", "c"]
