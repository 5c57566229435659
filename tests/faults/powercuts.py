"""A power cut at any moment: what an experiment does to the disk is recorded, and the disk rebuilt at many moments.

    python -P tests/faults/powercuts.py --cuts 1000 --jobs 2        [--seed 1] [--only POLICY KIND MOMENT]

A recorded experiment has two lives: its manager is killed and resumed. At each moment a part of what was not synced is
lost (disk.py), and the experiment is opened and resumed to its end. With `durability: power` nothing that was
acknowledged may be missing, and no trial fails for it. Without, the last commits may be missing, or the experiment as a
whole; what is there can be read, and comes to its end. See docs/reference/faults.md.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from campaign import Campaign
from check import beginnings
from disk import Disk
from laboratory import Laboratory, Outcome
from plan import Kill, Plan, Round
from system_calls import Change, build_library, read_record

from pitchpipe.store.errors import StoreError
from pitchpipe.store.store import Store

__all__ = ["POLICIES", "Recording", "main"]

POLICIES = ("power", "process")
KINDS = ("command", "function")
UNREADABLE = ("damaged", "its log is damaged")
_NEAR_A_SYNC = 0.5  # of the moments


def plan_of(durability: str, kind: str, seed: int) -> Plan:
    """Return the experiment that is recorded."""
    return Plan(
        number=0,
        kind=kind,
        place="local",
        seed=seed,
        assessor=False,
        slow_tuner=False,
        rounds=[Round(kills=[Kill("manager", 2.0)])],
        trials=3,
        steps=4,
        durability=durability,
    )


class Recording:
    """What one experiment did to the disk."""

    def __init__(self, plan: Plan, library: Path, folder: Path) -> None:
        self.plan = plan
        self._folder = folder
        folder.mkdir()
        record = folder.with_suffix(".record")
        record.touch()
        laboratory = Laboratory(plan, folder, library, record)
        outcome = Outcome(plan)
        try:
            laboratory.run(outcome)
        finally:
            laboratory.end(outcome)
        if outcome.findings.problems:
            raise SystemExit(f"recorded, {plan.durability} {plan.kind}: {outcome.findings.problems}")
        self.changes: list[Change] = list(read_record(record))

    def moments(self, count: int, draw: random.Random) -> list[int]:
        """Draw moments, counted in changes; many are just before or after a sync."""
        syncs = [number for number, change in enumerate(self.changes) if change.what == "s"]
        drawn = []
        for _ in range(count):
            near = syncs and draw.random() < _NEAR_A_SYNC
            moment = draw.choice(syncs) + draw.randint(0, 1) if near else draw.randint(0, len(self.changes))
            drawn.append(moment)
        return sorted(drawn)

    def disks(self, moments: Sequence[int]) -> Iterator[tuple[int, Disk]]:
        """Yield the disk at each of these moments, in their order."""
        disk, done = Disk(self._folder), 0
        for name in ("lab", "witness", "run", "hits-0"):  # made before anything was recorded
            disk.apply(Change("m", 0, 0, str(self._folder / name), "", b""))
        disk.apply(Change("s", 0, 0, str(self._folder), "", b""))
        for moment in moments:
            for change in self.changes[done:moment]:
                if not change.path.startswith((str(self._folder / "run"), str(self._folder / "hits"))):
                    disk.apply(change)
            done = moment
            yield moment, disk


class PowerCuts(Campaign):
    """A campaign of power cuts."""

    def __init__(self, keep: Path, jobs: int, seed: int) -> None:
        super().__init__(jobs)
        self._keep, self._seed = keep, seed
        self.endings: Counter[tuple[str, str, str]] = Counter()

    def cuts(self, recording: Recording, moments: Sequence[int]) -> Iterator[partial[Outcome]]:
        """Yield the experiment after a power cut at each of these moments."""
        plan = replace(recording.plan, rounds=())
        for number, (moment, disk) in enumerate(recording.disks(moments)):
            folder = self._keep / f"{plan.durability}-{plan.kind}-{moment}-{number}"
            self._rebuild(disk, folder, random.Random(f"{self._seed}/{moment}/{number}"))
            yield partial(self._resume, replace(plan, number=moment, favoured=folder.name), folder)

    def _rebuild(self, disk: Disk, folder: Path, draw: random.Random) -> None:
        for name, how in (("now", None), ("least", None), ("cut", draw)):
            target = folder / name
            target.mkdir(parents=True)
            if name == "least":
                disk.write_least(target)
            else:
                disk.write(target, how)
        # The witness stands outside of the disk that loses power.
        shutil.rmtree(folder / "cut" / "witness", ignore_errors=True)
        shutil.copytree(folder / "now" / "witness", folder / "cut" / "witness")

    def _resume(self, plan: Plan, folder: Path) -> Outcome:
        """Open, list and resume what the power cut left; the folder is kept if anything is wrong with it."""
        outcome = Outcome(plan)
        experiment = folder / "cut" / "lab" / "exp"
        least = folder / "least" / "lab" / "exp"
        safe = set(_rows(least))
        before = set(beginnings(folder / "cut" / "witness"))
        is_strict = plan.durability == "power"
        ending, reason = _state(experiment)
        self.endings[plan.durability, plan.kind, ending] += 1
        if ending in UNREADABLE or (ending != "readable" and _state(least)[0] == "readable"):
            outcome.findings.note("lost", f"the database is {ending}: {reason}")
        if ending in UNREADABLE:
            outcome.kept = folder
            return outcome
        laboratory = Laboratory(plan, folder / "cut")
        # What a script wrote may be gone until it is committed; a report of a function is safe when it returns.
        laboratory.forgotten = set() if is_strict and plan.kind == "function" else before
        try:
            laboratory.run(outcome)
        finally:
            laboratory.end(outcome)
        if is_strict and (lost := safe - set(_rows(experiment))):
            outcome.findings.note("lost", f"{sorted(lost)} were committed", len(lost))
        if not is_strict:
            outcome.findings.problems = [
                each for each in outcome.findings.problems if not each.startswith("differing: trial")
            ]
        if outcome.findings.problems:
            outcome.kept = folder
        else:
            shutil.rmtree(folder, ignore_errors=True)
        return outcome

    def again(self, plan: Plan) -> str:
        """Return where the disk is kept."""
        return plan.favoured

    def report(self) -> str:
        """Return a table of what was found."""
        lines = ["| durability | trials | the database after the cut | times |", "|---|---|---|---:|"]
        lines += [f"| {' | '.join(key)} | {count} |" for key, count in sorted(self.endings.items())]
        found = self.findings
        lines += [
            "",
            f"{len(self.outcomes)} power cuts, {found.acknowledged} results checked, {found.lost} lost",
        ]
        return "\n".join(lines)


def _state(experiment: Path) -> tuple[str, str]:
    """Return whether the database is readable, or the experiment was never started, and what the product says."""
    path = experiment / "experiment.db"
    if not path.exists():
        return "not there", ""
    try:
        Store.view(path).close()
    except StoreError as error:
        if "never started" in str(error):
            return "never started", str(error)
        return UNREADABLE["-wal" in str(error)], str(error)
    return "readable", ""


def _rows(experiment: Path) -> Iterator[tuple[int, str, int, str]]:
    """Yield the results in a database; none if there is no database."""
    path = experiment / "experiment.db"
    if not path.exists() or not path.stat().st_size:
        return
    with closing(sqlite3.connect(path)) as db:
        try:
            yield from db.execute("SELECT sequence_id, kind, sequence, value FROM metrics")
        except sqlite3.OperationalError as error:
            if "no such table" not in str(error):
                raise


def main(words: Sequence[str] | None = None) -> int:
    """Record, cut and resume; print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cuts", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--policies", nargs="+", default=POLICIES, choices=POLICIES)
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--keep", type=Path, help="where the disks with findings go")
    asked = parser.parse_args(words)
    keep = (asked.keep or Path(tempfile.mkdtemp(prefix="powercuts-"))).resolve()
    keep.mkdir(parents=True, exist_ok=True)
    library = build_library(keep)
    campaign = PowerCuts(keep, asked.jobs, asked.seed)
    mixes = [(durability, kind) for durability in asked.policies for kind in asked.kinds]
    for number, (durability, kind) in enumerate(mixes):
        draw = random.Random(f"{asked.seed}/{durability}/{kind}")
        plan = plan_of(durability, kind, draw.randrange(2**31))
        recording = Recording(plan, library, keep / f"recorded-{durability}-{kind}")
        count = asked.cuts // len(mixes) + (number < asked.cuts % len(mixes))
        print(f"{durability}, {kind}: {len(recording.changes)} changes of the disk", flush=True)
        campaign.run(campaign.cuts(recording, recording.moments(count, draw)))
    print(campaign.report())
    return 1 if campaign.findings.problems or not campaign.outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
