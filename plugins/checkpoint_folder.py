"""Where plug-ins keep their own state."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["CheckpointFolder"]


class CheckpointFolder:
    """The folder for the checkpoints of tuners, assessors and dispatchers."""

    def get_checkpoint_path(self) -> str | None:
        """Return the folder for checkpoints, or None when there is none."""
        path = os.environ.get("NNI_CHECKPOINT_DIRECTORY")
        return path if path and Path(path).is_dir() else None
