"""Errors in what crosses the pipe, and the texts by which a failed attempt names its cause to another process."""

from __future__ import annotations

# The attempt was to start from a checkpoint that no longer exists.
CHECKPOINT_GONE = "its checkpoint is gone"
# What Python writes between two tracebacks if the first exception led to the second one.
LED_TO = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)


class ProtocolError(ValueError):
    """Anything wrong with what crosses the pipe."""


class JsonError(ProtocolError):
    """A text that is not JSON, or a value that cannot be written as JSON."""


class MetricError(ProtocolError):
    """A reported value that is not a metric; the message completes the sentence "the trial ..."."""
