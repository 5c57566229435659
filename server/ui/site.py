"""What the pages show: the experiments of a server, below one path."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...store.reading import ExperimentView
    from ..experiments import Experiments

__all__ = ["Site"]


@dataclass(frozen=True, slots=True)
class Site:
    """`root` is the path of the pages."""

    experiments: Experiments
    root: str = "/ui"

    @property
    def place(self) -> Path:
        """Where the experiments are, as people are told."""
        return self.experiments.directory

    def view(self, name: str) -> ExperimentView:
        """The view of an experiment; raises `LookupError` if there is none."""
        return self.experiments.view(name)

    def views(self) -> list[ExperimentView]:
        """The views of all experiments there are."""
        return self.experiments.views()
