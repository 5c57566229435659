"""Stand-ins for the programs of ssh and Slurm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Return a function that makes programs from lines of shell; each writes its calls to the file returned."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")

    def make(**scripts: str) -> Path:
        for name, script in scripts.items():
            (tmp_path / name).write_text(f"#!/bin/sh\necho {name} $* >> {tmp_path}/calls\n{script}\n")
            (tmp_path / name).chmod(0o755)
        return tmp_path / "calls"

    return make
