"""One call to the kernel fails, or is the last: `nth.py --fail` or `nth.py --kill`; `--only CALL` runs one again.

    python -P tests/faults/nth.py --kill --jobs 2              every n of each role: killed before that call
    python -P tests/faults/nth.py --fail --minutes 10          calls drawn from the seed: they fail, once or for a while

A short experiment runs once undisturbed, and once more with its manager killed in the middle and resumed, which says
how many calls of each family its processes make. Then it runs again for each call, with one fault in its first life or
in its second, and is resumed without any: it has to come to its end with all results, or to stop with a sentence and be
resumed. See docs/reference/faults.md.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from campaign import Campaign
from laboratory import Outcome, run_experiment
from plan import Plan, Round
from system_calls import ERRORS, EVERY, Call, build_library

__all__ = ["calls_that_fail", "calls_to_die_at", "main", "plan_with"]

TRIALS, STEPS = 2, 3
KINDS = ("command", "function")
LIVES = ("run", "resume")
_NEVER = Call("manager", "open", 1 << 60)
_KILLED = Call("manager", EVERY, 60)  # in the middle of the experiment


def plan_with(call: Call, kind: str, life: str, number: int = 0) -> Plan:
    """Return a short experiment with a fault in its first life, or in its second, which resumes it."""
    return Plan(
        number=number,
        kind=kind,
        place="local",
        seed=7,
        assessor=False,
        slow_tuner=False,
        favoured=life,
        rounds=[Round(call=call)] if life == "run" else [Round(call=_KILLED), Round(call=call)],
        trials=TRIALS,
        steps=STEPS,
        durability="power",
    )


def calls_to_die_at(counts: dict[tuple[str, str], int], roles: Sequence[str]) -> Iterator[Call]:
    """Yield each call at which a process of these roles may be killed."""
    for role in roles:
        for n in range(1, counts[role, EVERY] + 1):
            yield Call(role, EVERY, n)


def calls_that_fail(counts: dict[tuple[str, str], int], roles: Sequence[str]) -> Iterator[Call]:
    """Yield each call of these roles with each error that it can have, once and for a while."""
    for role in roles:
        for family, errors in ERRORS.items():
            for n in range(1, counts[role, family] + 1):
                for error in errors:
                    yield Call(role, family, n, error)
                    yield Call(role, family, n, error, lasts=True)


class Nth(Campaign):
    """A campaign of short experiments, one for each call."""

    def __init__(self, library: Path, keep: Path, jobs: int) -> None:
        super().__init__(jobs)
        self.library, self.keep = library, keep

    def calls_of(self, kind: str, life: str) -> dict[tuple[str, str], int]:
        """Return how many calls the processes make in this life, by role and family, when none fails."""
        outcome = run_experiment(plan_with(_NEVER, kind, life), self.keep, library=self.library)
        if outcome.findings.problems:
            raise SystemExit(f"undisturbed, {kind}, {life}: {outcome.findings.problems}")
        return outcome.calls

    def _take(self, done: set[Future[Outcome]]) -> None:
        super()._take(done)
        if len(self.outcomes) % 100 < len(done):
            print(f"{len(self.outcomes)} done", flush=True)

    def again(self, plan: Plan) -> str:
        """Return the arguments that run one experiment again."""
        return f"--only '{plan.rounds[-1].call}' --kinds {plan.kind} --lives {plan.favoured}"

    def report(self) -> str:
        """Return a table: by role and family, how many calls failed or were the last, and what was found."""
        done = Counter[tuple[str, str, str, str]]()
        wrong = Counter[tuple[str, str, str, str]]()
        for outcome in self.outcomes:
            call = outcome.plan.rounds[-1].call
            assert call is not None
            key = outcome.plan.kind, outcome.plan.favoured, call.role, call.family
            done[key] += outcome.calls[call.role, call.family] >= call.n
            wrong[key] += bool(outcome.findings.problems)
        lines = ["| trials | life | process | call | times | with a problem |", "|---|---|---|---|---:|---:|"]
        lines += [f"| {' | '.join(key)} | {done[key]} | {wrong[key]} |" for key in sorted(done)]
        found = self.findings
        lines += ["", f"{len(self.outcomes)} experiments, {found.acknowledged} results acknowledged"]
        return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> int:
    """Run the experiments and print their table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--fail", action="store_true", help="calls fail")
    what.add_argument("--kill", action="store_true", help="processes are killed at their calls")
    parser.add_argument("--only", type=Call.parse, nargs="+", help="these calls, as the findings name them")
    parser.add_argument("--roles", nargs="+", default=["manager", "agent", "dispatcher", "trial"])
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--lives", nargs="+", default=LIVES, choices=LIVES)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--most", type=int, help="at most this many experiments")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="where the folders of experiments with findings go")
    asked = parser.parse_args(words)
    keep = (asked.keep or Path(tempfile.mkdtemp(prefix="nth-"))).resolve()
    keep.mkdir(parents=True, exist_ok=True)
    campaign = Nth(build_library(keep), keep, asked.jobs)
    until = time.monotonic() + 60 * asked.minutes
    calls = []
    for kind, life in product(asked.kinds, asked.lives):
        counts = campaign.calls_of(kind, life) if not asked.only else {}
        each = asked.only or (calls_that_fail if asked.fail else calls_to_die_at)(counts, asked.roles)
        calls += [(call, kind, life) for call in each]
    if not asked.only:
        print(f"{len(calls)} calls", flush=True)
        random.Random(asked.seed).shuffle(calls)
    plans = (plan_with(*each, number) for number, each in enumerate(calls[: asked.most]))
    jobs = (partial(run_experiment, plan, keep, library=campaign.library) for plan in plans)
    campaign.run(jobs, until)
    print(campaign.report())
    return 1 if campaign.findings.problems or not campaign.outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
