"""The error of an executor."""

from __future__ import annotations


class ExecutorError(Exception):
    """The executor cannot do what the experiment asks; the message says what to do about it."""
