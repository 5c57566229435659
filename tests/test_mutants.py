"""The planted faults of `make mutants` still apply: a moved line must not end the collection."""

from __future__ import annotations

from .mutants.run import read_mutants


def test_every_mutant_can_be_run() -> None:
    mutants, _ = read_mutants()
    assert [f"{mutant.name}: {problem}" for mutant in mutants if (problem := mutant.problem())] == []
    assert len({mutant.name for mutant in mutants}) == len(mutants) > 100
