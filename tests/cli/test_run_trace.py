"""The trace of an experiment: every turn, suggestion and attempt, where it belongs in time."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

from .conftest import Call, Start


def test_spans_lie_in_each_other_and_trials_of_a_slot_one_after_the_other(
    call: Call, config: Path, tmp_path: Path
) -> None:
    called = call("run", config, "--quiet", "--trace", tmp_path / "trace.json")
    assert called.code == 0, called.err
    rows = json.loads((tmp_path / "trace.json").read_text())
    spans = [row for row in rows if row["ph"] == "X"]
    assert sorted(s["name"] for s in spans if s["name"].startswith("trial")) == [
        f"trial {n}" for n in range(4)
    ]
    assert sum(span["name"] == "suggestion" for span in spans) >= 4
    turns = [span for span in spans if span["name"] == "turn"]
    for part in (span for span in spans if span["name"] in ("decide", "act")):
        assert any(turn["ts"] <= part["ts"] and _end(part) <= _end(turn) for turn in turns), part
    by_slot: dict[int, list[dict[str, Any]]] = {}
    for span in spans:
        if span["name"] == "start" or span["name"].startswith("trial"):
            by_slot.setdefault(span["tid"], []).append(span)
    assert sorted(by_slot) == [0, 1]
    for attempts in by_slot.values():
        for before, after in pairwise(sorted(attempts, key=lambda span: (span["ts"], span["dur"]))):
            assert _end(before) <= after["ts"], (before, after)


def test_full_disk_ends_the_trace_and_not_the_experiment(start: Start, config: Path) -> None:
    called = start("run", config, "--trace", "/dev/full").finish()
    assert called.code == 0
    assert "DONE" in called.out
    assert called.err.count("the trace is not continued: [Errno 28]") == 1


def test_trace_that_cannot_be_written_is_refused_before_anything_is_made(
    call: Call, config: Path, directory: Path, tmp_path: Path
) -> None:
    called = call("run", config, "--trace", tmp_path / "nowhere" / "trace.json")
    assert called.code == 2
    assert re.search(r"--trace: .*trace.json cannot be written", called.err)
    assert not directory.exists()


def _end(span: dict[str, Any]) -> int:
    return span["ts"] + span["dur"]
