"""A damaged database is shown as damaged, with what to do; the experiments beside it as usual."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from pitchpipe.cli.verbs.doctor import checks
from pitchpipe.runner.effects import Changes
from pitchpipe.server.experiments import Experiments
from pitchpipe.store import Store, StoreTick
from pitchpipe.store.errors import StoreError
from pitchpipe.store.folder import ExperimentFolder
from pitchpipe.store.reading import Summary
from pitchpipe.store.reading.database import Database
from pitchpipe.store.reading.overview import read_summary
from pitchpipe.store.reading.view import ExperimentView

from ..server.asking import Asking
from ..store.kill_points import leave_journal
from ..stored import results
from .conftest import Call, Storing, make_trial

Damage = Callable[[str], None]
# What is done to the database, and a part of the reason that is given.
IN_LIST = {
    "status of a trial": ("UPDATE trials SET status = 'GONE' WHERE sequence_id = 0", "GONE"),
    "status": ("UPDATE experiment SET status = 'GONE'", "GONE"),
    "objective": (
        "UPDATE objective_values SET value = x'ff' WHERE sequence_id = 0",
        "objective_values.value",
    ),
    "record of another type": ("UPDATE trials SET record = x'ff'", "trials.record"),
    "config that is not JSON": ("UPDATE experiment SET config = '{'", "config"),
    "config that is not an object": ("UPDATE experiment SET config = '[1]'", "config: not an object"),
    "objective without direction": (
        """UPDATE experiment SET config = '{"objectives": [{"name": "default"}]}'""",
        "objectives: no 'direction'",
    ),
    "objectives of another type": ("""UPDATE experiment SET config = '{"objectives": [3]}'""", "objectives"),
    "limit": (
        """UPDATE experiment SET config = json_set(config, '$.maxTrialNumber', 'ten')""",
        "limits: 'ten' is not a number",
    ),
    "time": ("UPDATE experiment SET created = 'then'", "times"),
    "time that no calendar has": ("UPDATE experiment SET created = 1e300", "times: 1e+300 is not a time"),
    "end": ("UPDATE experiment SET end_time = 'then'", "times"),
}
IN_DOCTOR = {
    "metric": ("UPDATE metrics SET value = x'ff'", "metrics: bytes instead of JSON text"),
    "record that is not JSON": ("UPDATE trials SET record = '{' WHERE sequence_id = 1", "trial 1"),
    "record without parameters": ("UPDATE trials SET record = '{}' WHERE sequence_id = 1", "no 'parameters'"),
    "start": ("UPDATE trials SET start_time = 'then' WHERE sequence_id = 1", "trial 1"),
}


@pytest.fixture
def damage(stored: Storing, directory: Path) -> Damage:
    """Return a function that damages the database of experiment `bad`; `good` is in the same directory."""
    for name in ("good", "bad"):
        trials = [make_trial(number, "SUCCEEDED", None, 0.5 + number) for number in range(2)]
        stored().write(name, trials, results(trials[0], [0.5]))

    def damage(statement: str) -> None:
        db = sqlite3.connect(directory / "bad" / "experiment.db")
        db.execute(statement)
        db.commit()
        db.close()

    return damage


@pytest.mark.parametrize(("statement", "reason"), IN_LIST.values(), ids=IN_LIST)
def test_list_shows_what_is_damaged_and_the_others(
    statement: str, reason: str, damage: Damage, call: Call
) -> None:
    damage(statement)
    called = call("list")
    (bad,) = (line for line in called.out.splitlines() if line.startswith("bad"))
    (good,) = (line for line in called.out.splitlines() if line.startswith("good"))
    assert (called.code, bad.split()[1], good.split()[:4]) == (0, "UNREADABLE", ["good", "DONE", "2", "1.5"])
    assert "is damaged (" in bad
    assert reason in bad
    assert "restore it from a copy" in bad


@pytest.mark.parametrize(
    ("statement", "reason"), [*IN_LIST.values(), *IN_DOCTOR.values()], ids=[*IN_LIST, *IN_DOCTOR]
)
def test_doctor_names_what_is_damaged_and_verbs_do_or_are_not_concerned(
    statement: str, reason: str, damage: Damage, directory: Path, call: Call
) -> None:
    damage(statement)
    (finding,) = (found for found in checks(directory) if found.subject == "experiments")
    assert finding.level == "warn"
    assert finding.text.startswith(f"unreadable: bad ({directory}/bad/experiment.db is damaged (")
    assert reason in finding.text
    assert "good" not in finding.text
    for words in ("status bad", "trials bad", "export bad", "trial show bad 1", "resume bad"):
        called = call(*words.split())
        if called.code and "is DONE" not in called.err:
            assert called.err.startswith("error: "), words
            assert "is damaged (" in called.err, words
            assert len(called.err.splitlines()) == 1, words


def test_fault_of_computing_is_neither_damage_nor_hides_the_others(
    stored: Storing, directory: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("good", "bad"):
        stored(more={"trainingService": {"platform": "local"}}).write(name, [])

    def faulty(db: Database, folder: ExperimentFolder) -> Summary:
        return {"good": read_summary(db, folder)}[folder.experiment_id]

    monkeypatch.setattr("pitchpipe.store.reading.view.read_summary", faulty)
    bad, good = sorted(json.loads(call("list", "--json").out), key=lambda one: one["id"])
    assert (bad["status"], good["status"]) == ("UNREADABLE", "DONE")
    (finding,) = (found for found in checks(directory) if found.subject == "experiments")
    for said in (bad["reason"], finding.text, call("status", "bad").err):
        assert "is whole" in said
        assert "KeyError: 'bad', test_damaged.py:" in said
    assert finding.hint == ""  # nothing is to be restored or deleted
    with closing(Experiments(directory)) as experiments:
        shown = Asking(experiments)
        for place in ("/api/v1/experiments", "/api/v1/nni/experiments-info"):
            assert [one["id"] for one in shown.get(place).json] == ["good"]


@pytest.mark.parametrize(
    "words",
    [
        ("list",),
        ("status", "bad"),
        ("trials", "bad"),
        ("export", "bad"),
        ("trial", "show", "bad", "1"),
        ("stop", "bad"),
        ("stop", "--all"),
        ("resume", "bad"),
        ("update", "bad", "--max-trial-number", "9"),
        ("delete", "bad", "--yes"),
    ],
    ids=" ".join,
)
def test_verbs_read_what_a_killed_process_left_half_written(
    words: tuple[str, ...], damage: Damage, directory: Path, call: Call
) -> None:
    """As versions left it that opened and closed a database through a journal."""
    whole = shutil.copytree(directory / "bad", directory.with_name("whole"))
    expected = call(*words)
    shutil.copytree(whole, directory / "bad", dirs_exist_ok=True)
    leave_journal(directory / "bad" / "experiment.db")
    assert call(*words) == expected


def test_doctor_reads_what_a_killed_process_left_half_written(damage: Damage, directory: Path) -> None:
    leave_journal(directory / "bad" / "experiment.db")
    (finding,) = (found for found in checks(directory) if found.subject == "experiments")
    assert (finding.level, finding.text) == ("ok", "0 running, none left without a manager")


def damaged_bytes(data: bytes, chance: random.Random) -> bytes:
    """Return data with some bytes changed: here and there, or next to each other, in the header more often."""
    changed = bytearray(data)
    if chance.random() < 0.3:
        at = chance.randrange(len(data))
        changed[at : at + 500] = chance.randbytes(len(data[at : at + 500]))
    else:
        for _ in range(chance.choice([1, 3, 20, 100])):
            changed[chance.randrange(chance.choice([2048, len(data)]))] = chance.randrange(256)
    return bytes(changed[: chance.randrange(len(data))]) if chance.random() < 0.05 else bytes(changed)


def store_is_read(path: Path) -> None:
    with closing(Store.view(path)) as store:
        store.experiment()
        list(store.results(store.trials()))
        store.dispatcher_record()
        store.dispatcher_checkpoint()


def store_is_written(path: Path) -> None:
    with closing(Store.open(path)) as store:
        store.set_name("another")
        store.commit(StoreTick(changes=Changes(trials={}), status="DONE"))


def model_is_read(path: Path) -> None:
    with ExperimentView(path.parent) as view:
        view.summary()
        view.check()
        view.events()


@pytest.mark.slow
def test_changed_bytes_are_a_typed_error_at_most_and_do_not_hide_the_others(
    damage: Damage, directory: Path, call: Call
) -> None:
    chance = random.Random(0)
    path = directory / "bad" / "experiment.db"
    whole, unreadable = path.read_bytes(), 0
    for _ in range(25):
        for rest in path.parent.glob("experiment.db-*"):
            rest.unlink()
        path.write_bytes(damaged_bytes(whole, chance))
        for use in (store_is_read, model_is_read, store_is_written):
            with suppress(StoreError):
                use(path)
        path.write_bytes(path.read_bytes() or damaged_bytes(whole, chance))
        listed = call("list")
        assert (listed.code, listed.err) == (0, "")
        assert [line.split()[:2] for line in listed.out.splitlines() if line.startswith("good")] == [
            ["good", "DONE"]
        ]
        unreadable += "UNREADABLE" in listed.out
        (finding,) = (found for found in checks(directory) if found.subject == "experiments")
        assert "good" not in finding.text
        for words in (("stop", "--all"), ("status", "bad"), ("delete", "bad")):
            called = call(*words)
            assert called.code in (0, 1, 2)
            assert "Traceback" not in called.err
    assert unreadable > 5


def test_database_that_stop_cannot_read_can_be_deleted(damage: Damage, directory: Path, call: Call) -> None:
    local = """json_set(config, '$.trainingService', json('{"platform": "local"}'))"""
    damage(f"UPDATE experiment SET status = 'RUNNING', config = {local}")
    called = call("delete", "bad", "--yes")
    assert (called.code, called.err.endswith("may still be running: pitchpipe stop bad\n")) == (1, True)
    damage("UPDATE trials SET status = 'GONE'")
    assert (call("delete", "bad", "--yes").code, (directory / "bad").exists()) == (0, False)


def test_all_are_stopped_but_what_cannot_be_read(damage: Damage, call: Call) -> None:
    damage("UPDATE experiment SET status = 'GONE'")
    called = call("stop", "--all")
    assert called.code == 0
    assert called.err.startswith("experiment bad is left as it is: ")
    assert called.out.startswith("no experiment is running in ")


def test_experiment_that_never_began_is_deleted_and_started_again_under_its_id(
    directory: Path, config: Path, call: Call
) -> None:
    (directory / "exp").mkdir(parents=True)
    (directory / "exp" / "experiment.db").touch()
    refused = call("run", config, "--experiment-id", "exp")
    assert f"or delete that one: pitchpipe delete {directory / 'exp'}" in refused.err
    assert f"delete it (pitchpipe delete {directory / 'exp'}) and start it again" in call("status", "exp").err
    assert call("delete", directory / "exp", "--yes").code == 0
    assert call("run", config, "--experiment-id", "exp", "--quiet").code == 0
