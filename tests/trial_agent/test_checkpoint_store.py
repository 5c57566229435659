"""Which checkpoints of a trial stay and which go."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.sdk import remove
from pitchpipe.sdk.checkpoint import ABOUT
from pitchpipe.trial_agent import Keeping, Saved, SpoolProblem
from pitchpipe.trial_agent.checkpoint_store import CheckpointStore


def saved(
    name: str, sequence: int = 0, value: float | None = None, time: float = 1.0, attempt: int = 1
) -> Saved:
    return Saved(trial="AbCdE", attempt=attempt, name=name, sequence=sequence, value=value, time=time)


class Saver:
    """Saves checkpoints as an attempt does; the manager confirms each before the next by default."""

    def __init__(self, folder: Path, attempt: int = 1, restored: str | None = None, **keeping: Any) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        path = None if restored is None else str(folder / restored)
        self.store = CheckpointStore(str(folder), attempt, Keeping.of(keeping), path)
        self.attempt = attempt
        self.number = 0

    def save(
        self, value: float | None = None, confirmed: int | None = None, sent: int = 0
    ) -> Saved | SpoolProblem:
        self.number += 1
        name = f"{self.attempt}-{self.number}"
        (self.folder / name).mkdir()
        time = self.attempt * 100.0 + self.number
        event = saved(name, self.number, value, time, self.attempt)
        answer = self.store.admit(event)
        confirmed = self.number if confirmed is None else confirmed
        self.store.prune(self.number, confirmed, max(sent, confirmed))
        return answer

    @property
    def names(self) -> list[str]:
        return sorted(os.listdir(self.folder))


@pytest.mark.parametrize(
    ("keeping", "values", "stay"),
    [
        pytest.param({}, [None] * 3, ["1-3"], id="the last one by default"),
        pytest.param({"keep": 2}, [None] * 4, ["1-3", "1-4"], id="as many as configured"),
        pytest.param({"rank_by": "score"}, [0.9, 0.9, 0.1], ["1-2", "1-3"], id="the later one of two equals"),
        pytest.param({"keep": None}, [None] * 4, ["1-1", "1-2", "1-3", "1-4"], id="all without a number"),
        pytest.param(
            {"keep": 1, "rank_by": "score", "mode": "maximize"},
            [0.1, 0.9, 0.5, None, 0.6],
            ["1-2", "1-5"],
            id="the best one and the latest",
        ),
        pytest.param(
            {"keep": 1, "rank_by": "score", "mode": "minimize"},
            [0.1, 0.9, 0.5, None, 0.6],
            ["1-1", "1-5"],
            id="the lowest one and the latest",
        ),
        pytest.param(
            {"keep": 1, "rank_by": "score"},
            [None, -5.0, None, None],
            ["1-2", "1-4"],
            id="one with a score rather than one without",
        ),
    ],
)
def test_these_stay(
    keeping: dict[str, Any], values: list[float | None], stay: list[str], tmp_path: Path
) -> None:
    saver = Saver(tmp_path, **keeping)
    for value in values:
        saver.save(value)
    assert saver.names == stay


@pytest.mark.parametrize(
    ("confirmed", "sent", "stay"),
    [
        pytest.param([0, 1, 1, 1], [0, 0, 0, 0], ["1-1", "1-4"], id="the one that the manager knows"),
        pytest.param([0, 1, 1, 1, 4], [0] * 5, ["1-4", "1-5"], id="not when it knows a later one"),
        pytest.param([0, 1, 1, 1, 1], [0, 0, 2, 2, 2], ["1-1", "1-2", "1-5"], id="one that was just sent"),
    ],
)
def test_these_stay_before_the_manager_knows_the_latest(
    confirmed: list[int], sent: list[int], stay: list[str], tmp_path: Path
) -> None:
    saver = Saver(tmp_path)
    for number, last in zip(confirmed, sent, strict=True):
        saver.save(confirmed=number, sent=last)
    assert saver.names == stay


def test_latest_one_stays_before_the_manager_knows_it(tmp_path: Path) -> None:
    saver = Saver(tmp_path, rank_by="score")
    for value in (0.9, 0.5, 0.1):
        saver.save(value, confirmed=0)
    assert saver.names == ["1-1", "1-3"]


def test_the_latest_of_several_that_are_admitted_at_once_stays(tmp_path: Path) -> None:
    store = CheckpointStore(str(tmp_path), 1, Keeping(), None)
    for number in (1, 2, 3):
        (tmp_path / f"1-{number}").mkdir()
        store.admit(saved(f"1-{number}", number, None, float(number)))
    store.prune(3, 0, 0)
    assert os.listdir(tmp_path) == ["1-3"]


def test_one_that_the_attempt_came_from_stays(tmp_path: Path) -> None:
    first = Saver(tmp_path, keep=3)
    for _ in range(3):
        first.save()
    second = Saver(tmp_path, attempt=2, restored="1-2")
    for _ in range(2):
        second.save()
    assert second.names == ["1-2", "2-2"]
    third = Saver(tmp_path, attempt=3, restored="2-2")
    third.save()
    assert third.names == ["2-2", "3-1"]


def test_scores_of_earlier_attempts_count(tmp_path: Path) -> None:
    first = Saver(tmp_path, rank_by="score", keep=2)
    first.save(0.9)
    first.save(0.1)
    second = Saver(tmp_path, attempt=2, restored="1-2", rank_by="score", keep=1)
    second.save(0.5)
    assert second.names == ["1-1", "1-2", "2-1"]


def test_description_says_where_to_continue(tmp_path: Path) -> None:
    Saver(tmp_path).save(0.5)
    about = json.loads((tmp_path / "1-1" / "checkpoint.json").read_text())
    assert about == {"sequence": 1, "value": 0.5, "time": 101.0}
    assert os.listdir(tmp_path / "1-1") == ["checkpoint.json"]


def test_hard_link_to_a_description_keeps_what_it_says(tmp_path: Path) -> None:
    saver = Saver(tmp_path / "store")
    (tmp_path / "store" / "1-1").mkdir()
    (tmp_path / "store" / "1-1" / "checkpoint.json").write_text("mine")
    os.link(tmp_path / "store" / "1-1" / "checkpoint.json", tmp_path / "link")
    saver.store.admit(saved("1-1"))
    assert (tmp_path / "link").read_text() == "mine"


def test_missing_folder_and_a_name_used_twice_are_problems(tmp_path: Path) -> None:
    saver = Saver(tmp_path)
    event = saver.save()
    assert isinstance(event, Saved)
    again = saver.store.admit(event)
    assert isinstance(again, SpoolProblem)
    assert "saved before" in again.message
    missing = saver.store.admit(saved("1-7"))
    assert isinstance(missing, SpoolProblem)
    assert "there is no folder" in missing.message


def test_unfinished_checkpoint_is_removed(tmp_path: Path) -> None:
    for name in (".1-draft", "1-3", "1-4", "2-half", ".2-draft"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "deep").mkdir()
    saver = Saver(tmp_path, attempt=2, restored="1-4")
    saver.save()
    assert saver.names == [".2-draft", "1-4", "2-1", "2-half"]  # the attempt itself may still write
    saver.store.tidy()
    assert saver.names == ["1-4", "2-1"]


def test_empty_folder_goes_at_the_end(tmp_path: Path) -> None:
    saver = Saver(tmp_path / "store")
    saver.store.tidy()
    assert not saver.folder.exists()
    saver.store.tidy()


def test_checkpoint_with_a_damaged_description_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "1-1").mkdir()
    (tmp_path / "1-1" / "checkpoint.json").write_text("{")
    (tmp_path / "1-2").mkdir()
    (tmp_path / "1-2" / "checkpoint.json").write_text('{"sequence": 1, "value": "?", "time": 3}')
    saver = Saver(tmp_path, attempt=2, keep=5)
    saver.save()
    assert saver.names == ["1-2", "2-1"]


def test_checkpoint_that_is_half_removed_has_lost_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that finds the folder has found all of it; the next attempt removes what is left."""
    (tmp_path / "1-1").mkdir()
    for name in ("a", "b", ABOUT):
        (tmp_path / "1-1" / name).write_text('{"value": null, "time": 1}')
    unlink, found = os.unlink, []

    def unlink_and_look(path: str) -> None:
        found.append((tmp_path / "1-1").exists())
        unlink(path)
        raise OSError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", unlink_and_look)
        patch.setattr(shutil, "rmtree", lambda *path, **options: None)
        remove(str(tmp_path / "1-1"))
    assert found == [False]
    assert len(os.listdir(tmp_path)) == 1
    store = CheckpointStore(str(tmp_path), 2, Keeping(keep=None))
    store.prune(0, 0, 0)
    assert os.listdir(tmp_path) == []
