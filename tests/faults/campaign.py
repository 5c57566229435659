"""The fault campaign: many small experiments whose processes are killed; nothing may be lost or counted twice.

    python tests/faults/campaign.py --seed 1 --minutes 10 [--experiments N] [--jobs 2] [--simulated N] [--ray N]

Every experiment is drawn from the seed and its number: `--only NUMBER` runs one again. The table shows how often
processes died at each named crash point (hooks/crash_points.py), and how many results were acknowledged, lost, doubled
or different. The exit code is 1 if there was any problem, or if a point was never hit: after its minutes, a campaign
runs a few experiments for each that is missing. Not so with --only or --experiments. See docs/reference/faults.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from check import COUNTED, Findings
from laboratory import Outcome, SmallDisk, run_experiment
from plan import DEEDS, FULL_DISK, POINTS, Plan, plan_for, possible_points
from simulated import POINTS as SIMULATED_POINTS
from simulated import run_simulated

__all__ = ["Campaign", "main"]


Job = Callable[[], Outcome]
TRIES = 6  # experiments for a point that was not hit
LATER = 1_000_000  # the numbers of these experiments


class Campaign:
    """Runs experiments in parallel and adds up their findings."""

    def __init__(self, jobs: int = 2) -> None:
        self.jobs = jobs
        self.outcomes: list[Outcome] = []
        self.hits: Counter[str] = Counter()
        self.skipped = set() if can_mount() else {FULL_DISK}

    def run(self, experiments: Iterator[Job], until: float = float("inf")) -> None:
        """Run experiments until there are no more, or until this time of the monotonic clock."""
        with ThreadPoolExecutor(self.jobs) as pool:
            running: set[Future[Outcome]] = set()
            for experiment in experiments:
                if time.monotonic() > until:
                    break
                running.add(pool.submit(experiment))
                if len(running) == self.jobs:
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    self._take(done)
            self._take(running)

    def _take(self, done: set[Future[Outcome]]) -> None:
        for future in done:
            outcome = future.result()
            self.outcomes.append(outcome)
            self.hits += outcome.hits
            plan = outcome.plan
            for problem in outcome.findings.problems:
                print(
                    f"{plan.place} ({plan.kind}; {self.again(plan)}): {problem} [{outcome.kept}]", flush=True
                )

    def again(self, plan: Plan) -> str:
        """Return the arguments that run one experiment again."""
        return f"--only {plan.number}" + (f" --favour {plan.favoured}" if plan.favoured else "")

    def favour(self, number: int) -> str:
        """Return the crash point with the fewest hits that this experiment can reach; none before the first hit."""
        if not self.hits:
            return ""
        points = set(possible_points(number, "local")) - self.skipped
        return min(sorted(points), key=lambda name: self.hits[name])

    def missed(self) -> list[str]:
        """Return the points that were never hit, other than those that are skipped."""
        simulated = any(outcome.plan.place == "simulated" for outcome in self.outcomes)
        points = [*POINTS, *DEEDS, *(SIMULATED_POINTS if simulated else ())]
        return [name for name in points if not self.hits[name] and name not in self.skipped]

    def reach(self, seed: int, keep: Path) -> None:
        """Run a few experiments for each point of this machine that was not hit so far."""
        for number in range(2 * TRIES):
            for point in self.missed():
                if point in possible_points(number, "local") and not self.hits[point]:
                    self.run(
                        experiments_of(seed, [LATER + number], "local", keep, lambda _, name=point: name)
                    )

    @property
    def findings(self) -> Findings:
        """All findings together."""
        total = Findings()
        for outcome in self.outcomes:
            total.add(outcome.findings)
        return total

    def table(self) -> str:
        """Return the report."""
        hits = self.hits
        kills = sum((outcome.kills for outcome in self.outcomes), Counter[str]())
        places = Counter(outcome.plan.place for outcome in self.outcomes)
        lines = ["| died at | times |", "|---|---:|"]
        lines += [f"| {name} | {hits[name]} |" for name in (*POINTS, *DEEDS, *SIMULATED_POINTS)]
        lines += [f"| {role}, at a random moment | {count} |" for role, count in sorted(kills.items())]
        lines += ["", "| found | number |", "|---|---:|"]
        lines += [f"| experiments ({place}) | {count} |" for place, count in sorted(places.items())]
        lines += [f"| lives of managers | {sum(outcome.lives for outcome in self.outcomes)} |"]
        found = self.findings
        lines += [f"| {_NAMES.get(name, name)} | {getattr(found, name)} |" for name in COUNTED]
        return "\n".join(lines)


def can_mount() -> bool:
    """Return whether this user may mount a disk."""
    with tempfile.TemporaryDirectory() as folder:
        disk = SmallDisk(Path(folder))
        is_allowed = disk.mount()
        disk.end(keep=False)
    return is_allowed


_NAMES = {
    "acknowledged": "results acknowledged",
    "differing": "sequences or values differing",
    "orphans": "orphans left",
    "stuck": "experiments stuck",
    "repeated": "finished trials run again",
    "superseded": "results superseded by a later attempt",
}


def experiments_of(
    seed: int,
    numbers: Sequence[int],
    place: str,
    keep: Path,
    favour: Callable[[int], str] = lambda number: "",
) -> Iterator[Job]:
    """Yield the experiments with these numbers, on this machine (`local`), on `ray`, or `simulated`."""
    for number in numbers:
        if place == "simulated":
            yield partial(run_simulated, seed, number)
        else:
            yield partial(run_experiment, plan_for(seed, number, place, favour(number)), keep)


def main(words: Sequence[str] | None = None) -> int:
    """Run a campaign and print its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--experiments", type=int, help="at most this many on this machine")
    parser.add_argument(
        "--simulated", type=int, default=20, help="this many with simulated trials, before those"
    )
    parser.add_argument("--ray", type=int, default=0, help="this many on Ray, after those")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", type=int, nargs="*", help="the numbers of the experiments to run")
    parser.add_argument("--favour", default="", help="with --only: the crash point that was favoured")
    parser.add_argument("--keep", type=Path, help="where the folders of experiments with findings go")
    asked = parser.parse_args(words)
    keep = (asked.keep or Path(tempfile.mkdtemp(prefix="faults-"))).resolve()
    keep.mkdir(parents=True, exist_ok=True)
    campaign = Campaign(asked.jobs)
    until = time.monotonic() + asked.minutes * 60
    if asked.only is not None:
        place = "ray" if asked.ray else "local"
        campaign.run(experiments_of(asked.seed, asked.only, place, keep, lambda number: asked.favour), until)
    else:
        campaign.run(experiments_of(asked.seed, range(asked.simulated), "simulated", keep), until)
        numbers = range(LATER if asked.experiments is None else asked.experiments)
        campaign.run(experiments_of(asked.seed, numbers, "local", keep, campaign.favour), until)
        if asked.experiments is None:
            campaign.reach(asked.seed, keep)
        campaign.run(experiments_of(asked.seed, range(asked.ray), "ray", keep), float("inf"))
    print(campaign.table())
    for name in sorted(campaign.skipped):
        print(f"skipped: {name} (only root may mount a disk)")
    missed = campaign.missed()
    if missed:
        print(f"never hit: {', '.join(missed)}")
    is_whole = asked.only is None and asked.experiments is None
    return 1 if campaign.findings.problems or not campaign.outcomes or (is_whole and missed) else 0


if __name__ == "__main__":
    sys.exit(main())
