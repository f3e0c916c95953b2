"""The archive of a session's files: what goes in, and what is refused on the way back."""

import gzip
import hashlib
import io
import os
import tarfile

import pytest

from callslip.sandbox._session_tar import (
    Digest,
    UnreadableArchiveError,
    copy_files,
    pack,
    unpack,
)

MOST = {"most": 1 << 20, "files": 100}


def packed(folder):
    """The compressed archive of a folder, its digest, and how many entries were left out."""
    digest, sink = Digest(), io.BytesIO()
    pack(folder, digest)
    _, left_out = pack(folder, sink)
    return gzip.compress(sink.getvalue()), digest.text(), left_out


def unpacked(folder, target, **limits):
    archive, digest, _ = packed(folder)
    target.mkdir()
    unpack(io.BytesIO(archive), digest, target, **{**MOST, **limits})
    return target


def listed(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()
    return folder


def test_files_folders_modes_and_inner_links_come_back(source, tmp_path):
    (source / "a" / "empty").mkdir(parents=True)
    (source / "a" / "data").write_bytes(b"\0" * 5000)
    (source / "run").write_text("#!")
    (source / "run").chmod(0o700)
    (source / "a" / "link").symlink_to("../run")
    (source / "gone").symlink_to("nothing")
    target = unpacked(source, tmp_path / "target")
    assert listed(target) == ["a", "a/data", "a/empty", "a/link", "gone", "run"]
    assert (target / "a" / "data").read_bytes() == b"\0" * 5000
    assert os.access(target / "run", os.X_OK)
    assert not os.access(target / "a" / "data", os.X_OK)
    assert (target / "a" / "link").readlink() == (source / "a" / "link").readlink()


def test_names_that_are_no_text_come_back(source, tmp_path):
    names = [b"caf\xe9", "ä\n".encode(), b"x" * 255]
    for name in names:
        (source / os.fsdecode(name)).write_text("1")
    target = unpacked(source, tmp_path / "target")
    assert sorted(os.fsencode(path.name) for path in target.iterdir()) == sorted(names)


def test_the_same_files_make_the_same_archive(source, tmp_path):
    for name in "ab":
        (source / name).write_text(name)
    first = packed(source)[1]
    other = tmp_path / "other"
    other.mkdir()
    for name in "ba":
        (other / name).write_text(name)
        os.utime(other / name, (1, 1))
    assert packed(other)[1] == first
    (other / "a").write_text("A")
    assert packed(other)[1] != first


def test_what_leads_out_is_left_out_and_counted(source, tmp_path):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("secret")
    (source / "kept").write_text("1")
    (source / "absolute").symlink_to(secret)
    (source / "up").symlink_to("../secret")
    (source / "file").symlink_to(secret / "key")
    os.mkfifo(source / "pipe")
    archive, _, left_out = packed(source)
    assert left_out == 4
    assert b"secret" not in gzip.decompress(archive)
    assert listed(unpacked(source, tmp_path / "target")) == ["kept"]


def test_a_path_that_is_too_long_is_left_out(source, tmp_path):
    deep = source.joinpath(*["d" * 200] * 6)
    deep.mkdir(parents=True)
    assert packed(source)[2] == 1
    assert len(listed(unpacked(source, tmp_path / "target"))) == 4


def entry(name, kind=tarfile.REGTYPE, content=b"", **more):
    found = tarfile.TarInfo(name)
    found.type, found.size = kind, len(content)
    for key, value in more.items():
        setattr(found, key, value)
    return found, content


LINK = {"kind": tarfile.SYMTYPE}


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ([entry("/etc/x")], "'/etc/x' is not a path below the folder"),
        ([entry("../x")], "'../x' is not a path below the folder"),
        ([entry("a/../../x")], "'a/../../x' is not a path below the folder"),
        ([entry("l", **LINK, linkname="/etc")], "'l' leads out of the folder"),
        ([entry("l", **LINK, linkname="../x")], "'l' leads out of the folder"),
        ([entry("l", **LINK, linkname="")], "'l' leads out of the folder"),
        ([entry("a/l", **LINK, linkname="../../x")], "'a/l' leads out of the folder"),
        (
            [entry("a/l", **LINK, linkname=".."), entry("m", **LINK, linkname="a/l/..")],
            "'m' leads out of the folder",
        ),
        ([entry("l", **LINK, linkname="a"), entry("l/x")], "'l/x' comes after a link"),
        ([entry("l", **LINK, linkname="a"), entry("x")], "'x' comes after a link"),
        (
            [entry("l", **LINK, linkname="a"), entry("l/m", **LINK, linkname="b")],
            "'l/m' comes after a link",
        ),
        ([entry("a"), entry("h", tarfile.LNKTYPE, linkname="a")], "'h' is no file, folder or link"),
        ([entry("d", tarfile.CHRTYPE, devmajor=1)], "'d' is no file, folder or link"),
        ([entry("p", tarfile.FIFOTYPE)], "'p' is no file, folder or link"),
        ([entry("a"), entry("a")], "'a' is there twice"),
        (
            [entry("a", content=b"1" * 4097)],
            "its files are more, or larger, than a script's may be",
        ),
        (
            [entry("a"), entry("b"), entry("c")],
            "its files are more, or larger, than a script's may be",
        ),
    ],
)
def test_what_pack_never_writes_is_refused_before_it_is_written(tmp_path, entries, why):
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        for found, content in entries:
            archive.addfile(found, io.BytesIO(content))
    target = tmp_path / "above" / "target"
    target.mkdir(parents=True)
    content, digest = sink.getvalue(), hashlib.sha256(sink.getvalue()).hexdigest()[:16]
    with pytest.raises(UnreadableArchiveError) as caught:
        unpack(io.BytesIO(gzip.compress(content)), digest, target, most=4096, files=2)
    assert str(caught.value) == why
    assert [path.name for path in (tmp_path / "above").iterdir()] == ["target"]


def test_damage_is_noticed(source, tmp_path):
    (source / "data").write_bytes(os.urandom(10_000))
    archive, digest, _ = packed(source)
    changed = bytearray(gzip.decompress(archive))
    changed[1000] ^= 1
    cases = [archive[:-4], archive[: len(archive) // 2], b"no archive", gzip.compress(changed), b""]
    for number, case in enumerate(cases):
        target = tmp_path / str(number)
        target.mkdir()
        with pytest.raises(UnreadableArchiveError):
            unpack(io.BytesIO(case), digest, target, **MOST)


def test_an_archive_of_nothing_but_size_is_not_read_to_its_end(tmp_path):
    read = []

    class Bomb(io.BytesIO):
        def read(self, size=-1):
            read.append(size)
            return super().read(size)

    header = entry("x", tarfile.XHDTYPE)[0]
    header.size = 1 << 30
    bomb = gzip.compress(header.tobuf() + bytes(64 << 20))
    with pytest.raises(UnreadableArchiveError, match="larger than a script's files may be"):
        unpack(Bomb(bomb), "0" * 16, tmp_path, **MOST)
    assert sum(read) < 1 << 20


def test_copies_for_people_follow_no_links(source, tmp_path):
    (source / "out").mkdir()
    (source / "out" / "plot").write_text("1")
    (source / "link").symlink_to("out/plot")
    (source / "folder").symlink_to("out")
    copies = copy_files(source, tmp_path / "copies")
    assert copies == [tmp_path / "copies" / "out" / "plot"]
    with pytest.raises(FileExistsError):
        copy_files(source, tmp_path / "copies")
