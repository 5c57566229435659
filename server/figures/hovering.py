"""The hover texts of trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .dimensions import Dimension
from .drawing import short, value_name, written
from .tables import ExperimentTable, Objective, TrialRecord

HOVER_TRIALS = 3000  # beyond this many trials, only number and result are shown: texts would be megabytes
_LINES = 16
_BRIEF = "<b>trial %{customdata}</b><br>%{y:.5g}<extra></extra>"


@dataclass(frozen=True, slots=True)
class Hover:
    """The texts of some trials, shape (n,), or only their numbers where there are too many of them."""

    numbers: NDArray[np.int64]
    texts: NDArray[np.object_] | None

    @classmethod
    def of(cls, table: ExperimentTable, trials: Sequence[TrialRecord], panels: int = 1) -> Hover:
        """Return the texts of these trials: number, results, end, parameters; markup in them is escaped.

        `panels` is how often each is drawn in the figure.

        >>> trials = [TrialRecord(7, "SUCCEEDED", {"x": 0.25}, {"default": 2.0})]
        >>> Hover.of(ExperimentTable.of("demo", [Objective()], trials), trials).texts[0]
        '<b>trial 7</b><br>result: <b>2</b><br>x = 0.25'
        """
        numbers = np.array([trial.number for trial in trials], dtype=np.int64)
        if len(trials) * panels > HOVER_TRIALS:
            return cls(numbers, None)
        texts = np.empty(len(trials), dtype=object)
        texts[:] = [_text(trial, table.objectives, table.dimensions) for trial in trials]
        return cls(numbers, texts)

    def at(self, where: Any = slice(None), more: Sequence[str] = ()) -> dict[str, Any]:
        """Return the fields of a trace for some of the trials (indices or a mask); `more` adds a line to each text."""
        if self.texts is None:
            return {"customdata": self.numbers[where], "hovertemplate": _BRIEF}
        texts = self.texts[where]
        if len(more):
            texts = [f"{text}<br>{line}" for text, line in zip(texts, more, strict=True)]
        return {"customdata": self.numbers[where], "text": texts, "hovertemplate": "%{text}<extra></extra>"}


def _text(trial: TrialRecord, objectives: Sequence[Objective], dimensions: Sequence[Dimension]) -> str:
    lines = [f"<b>trial {trial.number}</b>"]
    for objective in objectives:
        if (value := trial.values.get(objective.name)) is not None:
            lines.append(f"{short(value_name(objective))}: <b>{written(float(value))}</b>")
    if trial.status != "SUCCEEDED":
        lines.append(short(f"{trial.status} {trial.reason}".strip(), 80))
    pairs = [(one.name, one.value(trial.parameters)) for one in dimensions]
    known = [f"{short(name)} = {short(written(value))}" for name, value in pairs if value is not None]
    more = [f"and {len(known) - _LINES} more"] if len(known) > _LINES else []
    return "<br>".join([*lines, *known[:_LINES], *more])
