"""The experiments that the pages show: all of a directory, or one, each with one view for all who look."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..reading import ExperimentView

__all__ = ["Site"]


@dataclass(frozen=True, slots=True)
class Site:
    """`view` gives the view of an experiment by its id or raises `LookupError`; `views` those of all experiments.

    `place` is where they are, as people are told; `root` the path of the pages.
    """

    place: Path
    view: Callable[[str], ExperimentView]
    views: Callable[[], Iterable[ExperimentView]]
    root: str = "/ui"
