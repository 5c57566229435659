"""Plant known faults in the installed package, one at a time, and see that the tests find each of them.

`make mutants`, or `.venv/bin/python -P tests/mutants/run.py --only NAME`. The mutants are in `mutants.toml` (chosen by
hand: each breaks a guarantee) and `drawn.toml` (drawn by a tool). Each job has a virtual environment of its own, with
the libraries of `.venv` and its own copy of the package, so that the child processes of a test run the mutant, too.
A mutant first meets its own tests; one that survives them meets those of its room, and the wider ones at last.
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import tomllib
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from pitchpipe.trial_agent import ProcessTree

TREE = Path(__file__).resolve().parents[2]
# A mutant that hangs is found by its time: seconds of a test, and of all tests of a selection.
_TEST_SECONDS, _SECONDS = 60, 1800
_QUICK = "not slow and not ray and not cluster"
_LEAN = ["-p", "no:cacheprovider", "-p", "no:xdist"]  # both cost time in a small file
_FOUND = re.compile(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", re.MULTILINE)


class Mutant(NamedTuple):
    """A fault: `new` in place of `old`, which occurs once in `file`; `tests` are the selections to meet, in order."""

    name: str
    file: str
    old: str
    new: str
    breaks: str
    tests: Sequence[Sequence[str]]

    def problem(self) -> str:
        """Return why the mutant cannot be run; empty if it can."""
        path = TREE / self.file
        count = path.read_text().count(self.old) if path.exists() else 0
        if count != 1:
            return f"no longer applies: its old text occurs {count} times in {self.file}"
        lost = [each for each in chain(*self.tests) if not (TREE / each.partition("::")[0]).exists()]
        return f"cannot be run: there is no {', '.join(lost)}" if lost else ""


class Result(NamedTuple):
    """What became of a mutant: `found_by` a test; it is `bad` that it survived, or cannot be run."""

    mutant: Mutant
    found_by: str
    bad: str
    seconds: float


class Bench:
    """A virtual environment in which one mutant at a time is tested."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        home = Path(sysconfig.get_path("purelib"))
        (site,) = folder.glob("lib/python*/site-packages")
        self._package = site / "pitchpipe"
        for path in home.glob("pitchpipe*"):
            shutil.copytree(path, site / path.name)
        # After the copy on the path: all else that is installed.
        (site / "libraries.pth").write_text(f"import site; site.addsitedir({str(home)!r})\n")
        for script in filter(Path.is_file, Path(sys.executable).parent.iterdir()):
            head, _, rest = script.read_bytes().partition(b"\n")
            if head == f"#!{sys.executable}".encode():
                copy = folder / "bin" / script.name
                copy.write_bytes(f"#!{folder}/bin/python\n".encode() + rest)
                copy.chmod(0o755)

    def run(self, mutant: Mutant) -> Result:
        """Plant a mutant, run its tests until one fails, and take the mutant out again."""
        began = time.monotonic()
        if problem := mutant.problem():
            return Result(mutant, "", problem, 0.0)
        path, original = self._package / mutant.file.removeprefix("pitchpipe/"), self._folder / "original.py"
        shutil.copy2(path, original)
        # Another time than that of the original, or its bytecode would be taken.
        path.write_text(path.read_text().replace(mutant.old, mutant.new))
        try:
            found_by = next(filter(None, map(self._test, mutant.tests)), "")
        finally:
            shutil.copy2(original, path)
        return Result(mutant, found_by, "" if found_by else "SURVIVED", time.monotonic() - began)

    def _test(self, tests: Sequence[str]) -> str:
        """Run tests until one fails; return its id, or what else went wrong; empty if all pass."""
        name, value = "PPTEST_MUTANT", uuid.uuid4().hex
        path = f"{self._folder}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
        options = ["-x", "-q", "-m", _QUICK, *_LEAN, f"--timeout={_TEST_SECONDS}"]
        command = [self._folder / "bin" / "pytest", *options, f"--basetemp={self._folder}/tmp", *tests]
        environment = {**os.environ, "PATH": path, name: value}
        with (self._folder / "output").open("w") as output:
            process = subprocess.Popen(
                command, cwd=TREE, env=environment, stdout=output, stderr=output, start_new_session=True
            )
            try:
                code = process.wait(_SECONDS)
            except subprocess.TimeoutExpired:
                return f"timeout ({_SECONDS} s)"
            finally:
                ProcessTree(process.pid, f"{name}={value}".encode()).kill(time.monotonic())
                process.wait()
        text = (self._folder / "output").read_text(errors="replace")
        if "while loading conftest" in text:
            return "tests/conftest.py"
        if code in (0, 4, 5):  # 4: the test no longer exists; 5: all of them are deselected
            return ""
        found = _FOUND.search(text)
        return found[1] if found else f"exit code {code}: {text.strip()[-200:].splitlines()[-1:]}"


def read_mutants() -> tuple[list[Mutant], list[dict[str, str]]]:
    """Return all mutants, and those that were drawn and change nothing, with the reason."""
    paths = TREE / "tests/mutants/mutants.toml", TREE / "tests/mutants/drawn.toml"
    named, drawn = (tomllib.loads(path.read_text()) for path in paths)
    mutants: list[Mutant] = []
    for row in named["mutants"] + drawn["mutants"]:
        room = named["rooms"][row["file"].partition("/")[0]]
        tests = [row.pop("first", room["first"]), room["first"], room["wider"]]
        mutants.append(Mutant(**row, tests=list(dict.fromkeys(map(tuple, tests)))))
    return mutants, drawn["equivalent"]


def table_of(results: Sequence[Result], equal: Sequence[dict[str, str]], seconds: float) -> str:
    """Return the results as a page."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=TREE, capture_output=True, text=True)
    found = sum(not result.bad for result in results)
    lines = [
        f"# Mutants\n\n`make mutants` on {datetime.date.today()}, of commit {commit.stdout.strip() or 'unknown'}:"
        f" the tests found {found} of {len(results)} mutants in {seconds / 60:.0f} minutes.\n",
        "| mutant | what it breaks | found by | s |\n|---|---|---|---|",
    ]
    for mutant, found_by, bad, took in results:
        cells = mutant.name, mutant.breaks, bad or f"`{found_by}`", f"{took:.0f}"
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    lines.append("\nDrawn and left out, because they change nothing that a caller can see:\n")
    return "\n".join([*lines, *(f"- `{row['file']}`, {row['change']}: {row['why']}" for row in equal), ""])


def run_all(mutants: Sequence[Mutant], jobs: int) -> list[Result]:
    """Run mutants, several at once; print each result as it comes."""
    with tempfile.TemporaryDirectory(prefix="pp-mutants-", dir="/tmp") as folder:
        benches = SimpleQueue[Bench]()
        for number in range(jobs):
            benches.put(Bench(Path(folder, str(number))))

        def run(mutant: Mutant) -> Result:
            bench = benches.get()
            result = bench.run(mutant)
            benches.put(bench)
            print(f"{mutant.name}: {result.bad or result.found_by} ({result.seconds:.0f} s)", flush=True)
            return result

        with ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(run, mutants))


def main() -> int:
    """Run the mutants that the command line names; return 1 unless the tests found all of them."""
    parser = argparse.ArgumentParser(description="Plant known faults and see that the tests find them.")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at once (default: 2)")
    parser.add_argument("--only", action="append", metavar="NAME", help="run this mutant (repeatable)")
    parser.add_argument("--list", action="store_true", help="print the mutants, and which cannot be run")
    parser.add_argument("--table", type=Path, metavar="FILE", help="write the results as a page")
    options = parser.parse_args()
    mutants, equal = read_mutants()
    if unknown := set(options.only or ()) - {mutant.name for mutant in mutants}:
        parser.error(f"there is no mutant {', '.join(sorted(unknown))}")
    chosen = [mutant for mutant in mutants if not options.only or mutant.name in options.only]
    if options.list:
        print("\n".join(f"{each.name}: {each.breaks} {each.problem()}".rstrip() for each in chosen))
        return 0
    began = time.monotonic()
    results = run_all(chosen, options.jobs)
    if options.table is not None:
        options.table.write_text(table_of(results, equal, time.monotonic() - began))
    bad = [f"  {result.mutant.name} ({result.mutant.file}): {result.bad}" for result in results if result.bad]
    print("\n".join([f"{len(results) - len(bad)} of {len(results)} mutants were found", *bad]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
