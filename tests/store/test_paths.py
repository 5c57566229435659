"""Paths as users name them: with `~`, relative, without a home or a working directory."""

import os
import subprocess
from pathlib import Path

import pytest

from pitchpipe.store import FolderError, absolute, default_directory, is_default, shell_word, whole_file

from ..homeless import leave_home, lose_working_directory


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PITCHPIPE_DIR", raising=False)
    return tmp_path / "home"


@pytest.mark.parametrize("kind", [str, Path])
@pytest.mark.parametrize(
    ("named", "meant"),
    [
        ("~", "{home}"),
        ("~/runs", "{home}/runs"),
        ("~/../runs", "{home}/../runs"),
        ("/a/../b/", "/b"),
        ("runs/./x", "{here}/runs/x"),
        ("runs~/x", "{here}/runs~/x"),
        ("", "{here}"),
    ],
)
def test_path_is_absolute_and_knows_the_home_directory(kind, named, meant, home):
    expected = meant.format(home=home, here=Path.cwd())
    assert str(absolute(kind(named))) == str(Path(expected).resolve() if ".." in expected else Path(expected))


@pytest.mark.parametrize("named", ["~no-such-user", "~no-such-user/x", Path("~no-such-user/x")])
def test_home_of_an_unknown_user_is_refused(named):
    with pytest.raises(FolderError):
        absolute(named)


@pytest.mark.parametrize("chosen", ["~/runs", "~"])
def test_default_may_be_below_the_home_directory(monkeypatch, home, chosen):
    assert default_directory() == home / "pitchpipe-experiments"
    monkeypatch.setenv("PITCHPIPE_DIR", chosen)
    assert default_directory() == Path(chosen.replace("~", str(home)))
    assert is_default(default_directory())
    assert not is_default(home / "other")
    monkeypatch.setenv("PITCHPIPE_DIR", "runs")
    assert default_directory() == Path.cwd() / "runs"
    assert not is_default(default_directory())  # only here


def test_without_a_home_only_what_needs_one_is_refused(monkeypatch, tmp_path):
    leave_home(monkeypatch)
    assert absolute(tmp_path) == tmp_path
    assert not is_default(tmp_path)
    for refused in (default_directory, lambda: absolute("~/runs")):
        with pytest.raises(FolderError):
            refused()
    monkeypatch.setenv("PITCHPIPE_DIR", str(tmp_path))
    assert default_directory() == tmp_path


def test_without_a_working_directory_only_relative_paths_are_refused(monkeypatch, tmp_path, home):
    lose_working_directory(monkeypatch)
    assert absolute(tmp_path) == tmp_path
    assert default_directory() == home / "pitchpipe-experiments"
    with pytest.raises(FolderError):
        absolute("runs")


def test_word_for_a_shell_is_the_path_for_bash() -> None:
    names = [
        b"runs",
        b"my runs",
        b"it's",
        b"caf\xe9 it's\\x",
        b"a\nb\x1b",
        "café".encode(),
        b"$HOME",
        b"-x\xff!",
    ]
    words = " ".join(shell_word(os.fsdecode(name)) for name in names)
    assert words.isprintable()
    read = subprocess.run(["bash", "-c", f"printf '%s\\0' {words}"], capture_output=True, check=True)
    assert read.stdout.split(b"\0")[:-1] == names


def test_file_is_replaced_when_it_is_complete(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"old")
    with whole_file(tmp_path / "x.csv") as file:
        file.write(b"new")
        assert (tmp_path / "x.csv").read_bytes() == b"old"
    with pytest.raises(KeyError), whole_file(tmp_path / "x.csv") as file:
        file.write({}[file.write(b"half")])
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("x.csv", b"new")]


def test_pipe_and_device_are_written_and_a_link_stays_one(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    (tmp_path / "real.csv").write_bytes(b"old")
    (tmp_path / "link.csv").symlink_to("real.csv")
    (tmp_path / "null").symlink_to("/dev/null")
    for name in ("pipe", "link.csv", "null"):
        with whole_file(tmp_path / name) as file:
            file.write(b"new")
    assert os.read(reader, 10) == b"new"
    os.close(reader)
    assert (tmp_path / "pipe").is_fifo()
    assert ((tmp_path / "link.csv").is_symlink(), (tmp_path / "real.csv").read_bytes()) == (True, b"new")
    assert (tmp_path / "null").is_char_device()


@pytest.mark.parametrize("place", ["file/x.csv", "missing/x.csv", "folder"])
def test_error_names_the_file_that_was_asked_for(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    with pytest.raises(OSError, match=f"'{tmp_path}/{place}'$"), whole_file(tmp_path / place) as file:
        file.write(b"x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]
