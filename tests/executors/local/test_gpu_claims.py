"""Which experiment holds which GPU of this machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pitchpipe.executors.local.gpu_claims import GpuClaims


def claims(tmp_path: Path, name: str, alive: set[str], cards: dict[int, str] | None = None) -> GpuClaims:
    folder = tmp_path / name
    sockets = tmp_path / f"{name}-sockets"
    return GpuClaims(tmp_path, folder, sockets, lambda path: path.name in alive, cards or {})


def test_claimed_device_is_refused_to_others_until_it_is_given_back(tmp_path: Path) -> None:
    alive = {"one", "other"}
    one, other = claims(tmp_path, "one", alive), claims(tmp_path, "other", alive)
    assert one.take("A", (0, 1)) == ()
    assert one.take("B", (1,)) == ()  # within an experiment its ledger counts
    assert other.take("C", (1, 2)) == (1,)
    assert other.busy() == {0, 1}
    one.give_back("A")
    assert other.busy() == {1}
    one.give_back("B")
    assert other.take("C", (1, 2)) == ()


def test_claims_of_a_dead_experiment_are_void(tmp_path: Path) -> None:
    alive = {"one", "other"}
    one, other = claims(tmp_path, "one", alive), claims(tmp_path, "other", alive)
    one.take("A", (0,))
    alive.remove("one")
    assert other.take("B", (0,)) == ()


def test_damaged_file_starts_empty(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    one = claims(tmp_path, "one", {"one"})
    one.path.write_text("[[0, 1")
    assert one.take("A", (0,)) == ()
    assert "damaged" in caplog.text
    assert json.loads(one.path.read_text())[0][0] == 0
