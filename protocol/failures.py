"""Texts by which a failed attempt names its cause to another process."""

from __future__ import annotations

__all__ = ["CHECKPOINT_GONE"]

# The attempt was to start from a checkpoint that no longer exists.
CHECKPOINT_GONE = "its checkpoint is gone"
