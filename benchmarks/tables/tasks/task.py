"""What a task is, in every environment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Task"]


@dataclass(frozen=True)
class Task:
    """A search space in NNI's form, the names of the objectives, and a function that returns their values."""

    space: dict[str, Any]
    evaluate: Callable[[dict[str, Any]], list[float]]
    objectives: list[str] = field(default_factory=lambda: ["default"])
    facts: dict[str, Any] = field(default_factory=dict)
