"""A slice of the simulation (`make simulate`), and tests that it is exact and finds what is wrong."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .test_campaign import HERE

SIMULATE = HERE / "simulation" / "simulate.py"
pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it simulates Linux"),
    pytest.mark.slow,
    pytest.mark.timeout(300),
]


def simulate(*words: str, hash_seed: int = 0) -> tuple[int, str]:
    """Run experiments; return the exit code and what was printed."""
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    line = [sys.executable, "-P", str(SIMULATE), *words]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=280, check=False)
    return done.returncode, done.stdout + done.stderr


def digests(said: str) -> dict[str, str]:
    return dict(re.findall(r"^(\S+) has the digest (\w+)$", said, re.MULTILINE))


def test_same_seed_gives_the_same_story_turn_by_turn() -> None:
    """In another process, with other hashes, and beside another experiment."""
    words = ("--seed", "7", "--only", "0", "1", "2", "--digests")
    first, again = (simulate(*words, "--jobs", str(1 + seed), hash_seed=seed) for seed in (0, 1))
    assert first[0] == again[0] == 0, first[1]
    assert len(set(digests(first[1]).values())) == 3
    assert digests(first[1]) == digests(again[1])


def test_slice_of_the_simulation_finds_nothing(tmp_path: Path) -> None:
    code, said = simulate(
        "--seed", "1", "--experiments", "30", "--minutes", "4", "--jobs", "1", "--keep", str(tmp_path)
    )
    assert code == 0, said
    assert re.search(r"^30 experiments with \d{2,} lives", said, re.MULTILINE), said


@pytest.mark.parametrize("fault", ["granted-early", "attempt-off-by-one", "forgotten-early"])
def test_planted_fault_is_found(fault: str) -> None:
    code, said = simulate(
        "--seed", "100", "--experiments", "60", "--minutes", "4", "--plant", fault, "--until-found"
    )
    assert code == 1, said
    assert re.search(r"^100/\d+: (failed|lost|doubled|stuck|unended): ", said, re.MULTILINE), said
