"""`logs/events.jsonl`: what happened to an experiment, in full, so that it can be replayed.

A line is an event as `recorded` writes it, in the order in which the runner handled them. Each manager begins with a
line of the kind `Begin`: how it found the experiment. The file's size at the last commit is `recorded` in the snapshot
that it found; what an earlier manager wrote after that was never committed, and a replay leaves it out.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..runner import Event, Totals, TrialRunner, recorded

_log = logging.getLogger(__name__)


class EventLog:
    """Appends events to a file; a file that cannot be written any more is logged once and left as it is."""

    def __init__(self, folder: Path) -> None:
        self._file = (folder / "logs" / "events.jsonl").open("ab", buffering=0)
        self.size = self._file.tell()

    def begin(self, runner: TrialRunner, totals: Totals, snapshot: Mapping[str, Any], now: float) -> None:
        """Note how a manager found the experiment."""
        facts = {"run_time": runner.elapsed(now), "limits": asdict(runner.limits), "totals": asdict(totals)}
        self._write({"kind": "Begin", "time": now, "snapshot": snapshot, **facts})

    def add(self, event: Event) -> None:
        """Note an event that is about to be handled."""
        self._write(recorded(event))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, row: Mapping[str, Any]) -> None:
        if self._file.closed:
            return
        try:
            self.size += self._file.write(json.dumps(row).encode() + b"\n")
        except OSError as error:
            _log.error("events are not recorded any more: %s", error)
            self._file.close()
