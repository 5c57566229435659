"""Texts by which a failed attempt names its cause to another process."""

from __future__ import annotations

__all__ = ["CHECKPOINT_GONE", "LED_TO"]

# The attempt was to start from a checkpoint that no longer exists.
CHECKPOINT_GONE = "its checkpoint is gone"
# What Python writes between two tracebacks if the first exception led to the second one.
LED_TO = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
