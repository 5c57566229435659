"""The experiments that the pages show, and the path of the pages."""

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
        """The place of the experiments, for people."""
        return self.experiments.directory

    def view(self, name: str) -> ExperimentView:
        """Return the view of an experiment; raise `LookupError` if there is none."""
        return self.experiments.view(name)

    def views(self) -> list[ExperimentView]:
        """Return the views of all experiments."""
        return self.experiments.views()
