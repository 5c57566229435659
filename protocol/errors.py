"""Errors in what crosses the pipe."""

from __future__ import annotations


class ProtocolError(ValueError):
    """Anything wrong with what crosses the pipe."""


class JsonError(ProtocolError):
    """A text that is not JSON, or a value that cannot be written as JSON."""


class MetricError(ProtocolError):
    """A reported value that is not a metric; the message completes the sentence "the trial ..."."""
