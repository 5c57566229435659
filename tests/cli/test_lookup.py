"""Which experiment a verb means."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from .conftest import Call, Storing


@pytest.fixture
def two(stored: Storing) -> list[Any]:
    """Two experiments; the second is the newer one."""
    return [stored(created=1.0).write("abc", []), stored(created=2.0).write("abd", [])]


@pytest.mark.parametrize("words", [["abc"], ["--experiment-id", "abc"], ["abc", "--experiment-id", "abc"]])
def test_an_experiment_is_named_by_word_or_option(words: list[str], two: list[Any], call: Call) -> None:
    called = call("status", *words)
    assert called.out.startswith("experiment abc: ")
    assert called.err == ""


def test_the_beginning_of_one_id_is_enough(stored: Storing, two: list[Any], call: Call) -> None:
    stored().write("xyz", [])
    assert call("status", "x").out.startswith("experiment xyz: ")
    ambiguous = call("status", "ab")
    assert (ambiguous.code, "abc, abd" in ambiguous.err) == (2, True)


def test_an_experiment_is_named_by_its_folder(
    two: list[Any], call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("status", two[0].path).out.startswith("experiment abc: ")
    monkeypatch.chdir(two[0].path.parent.parent)
    assert call("status", "experiments/abc").out.startswith("experiment abc: ")
    monkeypatch.setenv("PITCHPIPE_DIR", "elsewhere")
    monkeypatch.chdir(two[0].path.parent)
    assert call("status", "abc").out.startswith("experiment abc: ")  # no id of elsewhere, but a folder here
    wrong = call("status", two[0].path / "logs")
    assert (wrong.code, "is not the folder of an experiment" in wrong.err) == (2, True)


@pytest.mark.parametrize("words", [("--dir=~/experiments",), ("--dir", "~/experiments"), ()])
def test_directory_may_begin_with_the_home_directory(
    words: tuple[str, ...], two: list[Any], call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(two[0].path.parent.parent))
    monkeypatch.setenv("PITCHPIPE_DIR", "/nowhere" if words else "~/experiments")
    assert call("status", "abc", *words).out.startswith("experiment abc: ")


@pytest.mark.parametrize("given", ["experiments", "./experiments", None])
def test_advice_holds_in_another_folder(
    stored: Storing, call: Call, monkeypatch: pytest.MonkeyPatch, given: str | None
) -> None:
    made = stored(status="STOPPED").write("abc", [])
    monkeypatch.setenv("PITCHPIPE_DIR", "/nowhere")
    monkeypatch.chdir(made.path.parent.parent)
    advice = call("status", "abc", "--dir", given or made.path.parent).out.partition("to continue: ")[2]
    words = shlex.split(advice.splitlines()[0])
    assert words[:3] == ["pitchpipe", "resume", "abc"]
    monkeypatch.chdir("/")
    assert call("status", *words[2:]).out.startswith("experiment abc: ")


def test_home_of_an_unknown_user_makes_no_folder(
    call: Call, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    for words in (("run", config, "--dir=~no-such-user/x"), ("init", "-o", "~no-such-user"), ("list",)):
        monkeypatch.setenv("PITCHPIPE_DIR", "~no-such-user/x")
        assert call(*words).code == 2
    assert sorted(tmp_path.iterdir()) == before


def test_without_a_name_the_newest_is_meant(two: list[Any], call: Call) -> None:
    called = call("status")
    assert called.out.startswith("experiment abd: ")
    assert "abd (the newest" in called.err


def test_without_a_name_the_only_running_one_is_meant(two: list[Any], call: Call) -> None:
    two[0].own()
    called = call("status")
    assert called.out.startswith("experiment abc: ")
    assert "abc (which is running" in called.err


def test_without_a_name_several_running_ones_are_listed(two: list[Any], call: Call) -> None:
    for folder in two:
        folder.own()
    called = call("status")
    assert called.code == 2
    assert "give the ID of one: abc, abd" in called.err
