"""Simulated experiments: each is whole, in one process, on a virtual clock, with faults that a seed draws.

    python -P tests/faults/simulation/simulate.py --seed 1 --minutes 60    as many as fit; how often what happened
    python -P tests/faults/simulation/simulate.py --seed 7 --only 3        one of them again, exactly

See docs/reference/faults.md. `machine.py` is the machine: its scheduler and its clock. `edges.py` and `processes.py`
put it under the product. `plan.py` draws an experiment, `experiment.py` runs it, and `checker.py` compares its end with
what users saw.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import logging
import os
import pickle
import select
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import edges  # noqa: E402

edges.install()  # before the product is imported: defaults of its functions name the clock

import processes  # noqa: E402
from experiment import Result, run_experiment  # noqa: E402
from plan import plan_of  # noqa: E402
from planted import PLANTED  # noqa: E402
from rare_branches import BRANCHES  # noqa: E402

__all__ = ["main"]

_PATIENCE = 120  # real seconds for one experiment
_HOUR = 60


def prepare() -> None:
    """Import all that experiments need, and put the simulated edges into it: children inherit it."""
    import numpy.random  # noqa: F401

    import pitchpipe.assessors.medianstop
    import pitchpipe.compat.nni.alias.finder
    import pitchpipe.dispatcher.__main__
    import pitchpipe.dispatcher.origin
    import pitchpipe.executors.local
    import pitchpipe.manager.control.host
    import pitchpipe.store.reading.view
    import pitchpipe.telling.code_story
    import pitchpipe.telling.failed_trials
    import pitchpipe.trial_agent.core
    import pitchpipe.trial_agent.unix_server  # noqa: F401
    from pitchpipe.tuners import asha, evolution, hyperband, pbt, random, tpe  # noqa: F401

    tempfile.gettempdir()
    processes.install(_refused_now)


def _refused_now() -> OSError | None:
    """Return why the disk has no room now."""
    at = edges.machine()
    number = edges.refusal(at.current.process, "space")
    return OSError(number, os.strerror(number)) if number == edges.ENOSPC else None


def _begin(asked: argparse.Namespace, number: int) -> tuple[int, int]:
    """Begin an experiment in a process of its own; return its id, and where its result comes from."""
    reader, writer = os.pipe()
    if child := os.fork():
        os.close(writer)
        return child, reader
    try:
        os.close(reader)
        faulthandler.dump_traceback_later(_PATIENCE, exit=True)
        gc.disable()
        logging.raiseExceptions, logging.lastResort = False, None
        keep = None if asked.keep is None else asked.keep / f"{asked.seed}-{number}"
        root = asked.scratch / str(number)
        result = run_experiment(plan_of(asked.seed, number), root, logged=asked.log, keep=keep)
        with os.fdopen(writer, "wb") as out:
            pickle.dump(result, out)
        edges.REAL.exit(0)
    except BaseException:  # noqa: BLE001 (the parent counts it)
        traceback.print_exc()
    finally:
        edges.REAL.exit(1)


def _results(
    asked: argparse.Namespace, numbers: Iterator[int], until: float
) -> Generator[tuple[int, Result | None], None, None]:
    """Yield number and result of experiments, several at a time, until the time is over."""
    running: dict[int, tuple[int, int, bytearray]] = {}
    poll = edges.REAL.poll()
    left = True
    try:
        while left or running:
            while left and len(running) < asked.jobs:
                number = next(numbers, None)
                left = number is not None and edges.REAL.monotonic() < until
                if left:
                    child, reader = _begin(asked, number)
                    running[reader] = child, number, bytearray()
                    poll.register(reader, select.POLLIN)
            for reader, _ in poll.poll() if running else ():
                child, number, data = running[reader]
                data += (part := os.read(reader, 1 << 20))
                if not part:
                    poll.unregister(reader)
                    os.close(reader)
                    os.waitpid(child, 0)
                    del running[reader]
                    yield number, pickle.loads(bytes(data)) if data else None
    finally:
        for child, _, _ in running.values():
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


@dataclass
class Tally:
    """What all experiments did and found."""

    count: int = 0
    found: int = 0
    lives: int = 0
    turns: int = 0
    acknowledged: int = 0
    virtual: float = 0.0
    hits: Counter[str] = field(default_factory=Counter)

    def add(self, name: str, result: Any) -> None:
        """Count an experiment, and print what is wrong with it."""
        self.count += 1
        problems = ["the simulation itself has failed, or hangs"] if result is None else result.problems
        if problems:
            self.found += 1
            print(f"{name}: " + "\n    ".join(problems), flush=True)
        if result is not None:
            self.hits += result.hits
            self.lives += result.lives
            self.turns += result.turns
            self.acknowledged += result.acknowledged
            self.virtual += result.virtual

    def report(self, seconds: float) -> str:
        """Return how often everything happened, and how fast."""
        names = (*BRANCHES, *sorted(set(self.hits) - set(BRANCHES)))
        lines = ["| what | times |", "|---|---:|", *(f"| {name} | {self.hits[name]} |" for name in names), ""]
        missed = [name for name in BRANCHES if not self.hits[name]]
        if missed:
            lines.append(f"never: {', '.join(missed)}")
        an_hour = self.count / seconds * 3600
        lines += [
            f"{self.count} experiments with {self.lives} lives of managers, {self.acknowledged} results and"
            f" {self.turns} turns; {self.virtual / 3600:.1f} virtual hours in {seconds:.0f} s",
            f"{an_hour:.0f} experiments an hour; {self.found} with findings",
        ]
        return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> int:
    """Run experiments and print what was found; return 1 if anything was, or if an hour missed a rare branch."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--experiments", type=int, default=10**9, help="at most this many")
    parser.add_argument("--only", type=int, nargs="*", help="the numbers of the experiments to run")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="where the folders of experiments with findings go")
    parser.add_argument("--log", action="store_true", help="print every turn, with --only NUMBER")
    parser.add_argument("--digests", action="store_true", help="print the digest of each experiment")
    parser.add_argument("--until-found", action="store_true", help="end with the first finding")
    parser.add_argument("--plant", choices=PLANTED, help="a fault that the simulation must find")
    asked = parser.parse_args(words)
    prepare()
    if asked.plant:
        PLANTED[asked.plant]()
    home = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # memory: nothing is synced to a disk
    with tempfile.TemporaryDirectory(prefix="pp-", dir=home) as scratch:
        asked.scratch = Path(scratch)
        return _run(asked)


def _run(asked: argparse.Namespace) -> int:
    tally, began = Tally(), edges.REAL.monotonic()
    numbers = iter(range(asked.experiments) if asked.only is None else asked.only)
    until = began + 60 * asked.minutes
    results = _results(asked, numbers, until)
    for number, result in results:
        name = f"{asked.seed}/{number}"
        tally.add(name, result)
        if result is not None and asked.log:
            print("\n".join(result.log))
        if result is not None and asked.digests:
            print(f"{name} has the digest {result.digest}", flush=True)
        if tally.found and asked.until_found:
            break
    results.close()
    print(tally.report(edges.REAL.monotonic() - began))
    is_missing = asked.minutes >= _HOUR and any(not tally.hits[name] for name in BRANCHES)
    return 1 if tally.found or is_missing else 0


if __name__ == "__main__":
    sys.exit(main())
