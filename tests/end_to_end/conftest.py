"""Fixtures of the end-to-end tests."""

from .running import lab

__all__ = ["lab"]
