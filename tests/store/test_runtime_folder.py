"""The runtime directory: which folder it is, that sockets can be in it, and that no other user can use it."""

import os
import socket
import stat
import sys
import tempfile
from pathlib import Path

import pytest

from pitchpipe.store.runtime_folder import RuntimeDirectoryError, runtime_directory

LONGEST = 78 if sys.platform == "linux" else 74  # bytes


@pytest.fixture
def tmp_path(apart: Path) -> Path:
    """Return a folder whose path is short enough for sockets."""
    apart.mkdir(mode=0o700)
    return apart


@pytest.fixture(autouse=True)
def no_choice(monkeypatch, tmp_path):
    monkeypatch.delenv("PITCHPIPE_RUNTIME_DIR", raising=False)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_environment_variable_goes_first(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("PITCHPIPE_RUNTIME_DIR", str(tmp_path / "a" / "b"))
    assert runtime_directory() == tmp_path / "a" / "b"


def test_relative_choice_becomes_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PITCHPIPE_RUNTIME_DIR", "here")
    assert runtime_directory() == tmp_path / "here"


def test_session_folder_is_used_when_there(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert runtime_directory() == tmp_path / "pitchpipe"


def test_missing_session_folder_falls_back_to_temporary_files(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "missing"))
    assert runtime_directory() == tmp_path / f"pitchpipe-{os.getuid()}"


def test_folder_is_private_and_found_again(tmp_path):
    first = runtime_directory()
    assert stat.S_IMODE(first.stat().st_mode) == 0o700
    assert runtime_directory() == first


def test_folder_open_to_others_is_refused(tmp_path):
    (tmp_path / f"pitchpipe-{os.getuid()}").mkdir(mode=0o755)
    with pytest.raises(RuntimeDirectoryError, match=r"open to others \(mode 0755\).*PITCHPIPE_RUNTIME_DIR"):
        runtime_directory()


def test_umask_takes_no_bit_from_the_owner_and_a_folder_without_them_is_refused(tmp_path):
    before = os.umask(0o377)
    try:
        assert stat.S_IMODE(runtime_directory().stat().st_mode) == 0o700
    finally:
        os.umask(before)
    runtime_directory().chmod(0o500)
    with pytest.raises(RuntimeDirectoryError, match="0500"):
        runtime_directory()


def test_link_is_refused(tmp_path):
    (tmp_path / "target").mkdir(mode=0o700)
    (tmp_path / f"pitchpipe-{os.getuid()}").symlink_to(tmp_path / "target")
    with pytest.raises(RuntimeDirectoryError, match="is not a folder"):
        runtime_directory()


def test_folder_of_another_user_is_refused(monkeypatch, tmp_path):
    runtime_directory()
    stranger = os.getuid() + 1
    monkeypatch.setenv("PITCHPIPE_RUNTIME_DIR", str(tmp_path / f"pitchpipe-{os.getuid()}"))
    monkeypatch.setattr(os, "getuid", lambda: stranger)
    with pytest.raises(RuntimeDirectoryError, match="belongs to the user"):
        runtime_directory()


def test_folder_that_cannot_be_made_is_a_plain_error(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PITCHPIPE_RUNTIME_DIR", str(tmp_path / "file" / "x"))
    with pytest.raises(RuntimeDirectoryError, match="cannot make the runtime directory"):
        runtime_directory()


def test_chosen_folder_may_be_in_the_home_directory(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PITCHPIPE_RUNTIME_DIR", "~/sockets")
    assert runtime_directory() == tmp_path / "sockets"


def long_folder(parent: Path, length: int, letter: str) -> Path:
    """Make and return a folder whose path has at least so many characters."""
    while len(str(parent)) < length:
        parent /= letter * min(40, length - len(str(parent)))
    parent.mkdir(parents=True, exist_ok=True)
    return parent


@pytest.fixture
def short(monkeypatch, tmp_path):
    """Return the folder that is used in place of one with a long path."""
    (tmp_path / "s").mkdir()
    monkeypatch.setattr("pitchpipe.store.runtime_folder._SHORT", ("/missing", str(tmp_path / "s")))
    return tmp_path / "s"


@pytest.mark.parametrize("letter", ["t", "ü"])
@pytest.mark.parametrize("length", [40, *range(60, 70), 75, 87, 103, 107, 300])
@pytest.mark.parametrize("is_session", [True, False])
def test_sockets_fit_whatever_the_length_of_the_usual_path(
    monkeypatch, tmp_path, short, is_session, length, letter
):
    long = long_folder(tmp_path, length, letter)
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    if is_session:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    folder = runtime_directory()
    with socket.socket(socket.AF_UNIX) as agent:
        (folder / "a-0123456789ab").mkdir()
        agent.bind(str(folder / "a-0123456789ab" / "01234567.sock"))
    usual = long / ("pitchpipe" if is_session else f"pitchpipe-{os.getuid()}")
    assert folder == usual if len(os.fsencode(usual)) <= LONGEST else folder.parent == short


@pytest.mark.parametrize("length", [LONGEST + 1, 103, 300])
def test_chosen_path_that_is_too_long_is_refused(monkeypatch, tmp_path, length):
    monkeypatch.setenv("PITCHPIPE_RUNTIME_DIR", str(long_folder(tmp_path, length, "t")))
    with pytest.raises(RuntimeDirectoryError):
        runtime_directory()


def test_session_folder_of_another_user_is_not_used(monkeypatch, tmp_path):
    (tmp_path / "session").mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "session"))
    stranger = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: stranger)
    with pytest.raises(RuntimeDirectoryError):  # the folder that it makes here is not the stranger's
        runtime_directory()
    assert [path.name for path in tmp_path.iterdir()] == ["session", f"pitchpipe-{stranger}"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder to another user")
def test_folder_that_another_user_has_left_in_the_session_folder_is_passed_over(monkeypatch, tmp_path):
    (tmp_path / "session" / "pitchpipe").mkdir(mode=0o700, parents=True)
    os.chown(tmp_path / "session" / "pitchpipe", os.getuid() + 1, -1)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "session"))
    assert runtime_directory() == tmp_path / f"pitchpipe-{os.getuid()}"
