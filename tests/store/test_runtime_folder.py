"""The runtime directory: which folder it is, and that no other user can use it."""

import os
import stat
import tempfile

import pytest

from pitchpipe.store.runtime_folder import RuntimeDirectoryError, runtime_directory


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
