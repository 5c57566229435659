"""From searches to the printed table: means over tasks of means over seeds, with 95 % intervals over tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
from definitions import Scale, Table

__all__ = ["Scores", "by_task", "differences", "plot", "scores_of", "summary"]

_DRAWS = 10_000
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Scores:
    """Of one optimiser: the scores of each task, a row for each seed with a score for each share of the budget."""

    optimiser: str
    tasks: Mapping[str, np.ndarray]
    seconds: float

    def means(self, share: int = -1) -> np.ndarray:
        """Return the mean over seeds for each task."""
        return np.array([scores[:, share].mean() for scores in self.tasks.values()])


def scores_of(
    rows: Sequence[Row], optimisers: Sequence[str], table: Table, scale: Scale, shares: Sequence[float]
) -> list[Scores]:
    """Return the scores of each optimiser that has searches, on the tasks and seeds that all of these have run."""
    found = [one for one in optimisers if any(row["optimiser"] == one for row in rows)]
    ran = [{(row["task"], row["seed"]) for row in rows if row["optimiser"] == one} for one in found]
    shared = set.intersection(*ran) if ran else set()
    compared = [row for row in rows if (row["task"], row["seed"]) in shared]
    return [_scores(one, compared, table, scale, shares) for one in found] if shared else []


def _scores(
    optimiser: str, rows: Sequence[Row], table: Table, scale: Scale, shares: Sequence[float]
) -> Scores:
    by_task: dict[str, np.ndarray] = {}
    seconds: list[float] = []
    for task in sorted({row["task"] for row in rows}):
        own = [row for row in rows if (row["optimiser"], row["task"]) == (optimiser, task)]
        own.sort(key=lambda row: row["seed"])
        seconds += [row["seconds"] / len(row["values"]) for row in own]
        by_task[task] = np.array(
            [
                [table.score(row, round(share * table.evaluations(row)), scale) for share in shares]
                for row in own
            ]
        )
    return Scores(optimiser, by_task, mean(seconds))


def summary(scores: Sequence[Scores], shares: Sequence[float]) -> Iterator[str]:
    """Yield a line for each optimiser, the best first."""
    early = [f"after {share:.0%}".replace("%", " %") for share in shares[:-1]]
    yield "| " + " | ".join(["optimiser", "searches", "score", "median", *early, "CPU s a suggestion"]) + " |"
    yield "|" + "---|" * (5 + len(early))
    for one in sorted(scores, key=lambda one: -one.means().mean()):
        low, high = _interval(one.means())
        cells = [one.optimiser, str(sum(map(len, one.tasks.values())))]
        cells += [f"{one.means().mean():.2f} ({low:.2f} to {high:.2f})", f"{median(one.means()):.2f}"]
        cells += [f"{one.means(share).mean():.2f}" for share in range(len(early))]
        yield "| " + " | ".join([*cells, f"{one.seconds:.2g}"]) + " |"


def differences(scores: Sequence[Scores]) -> Iterator[str]:
    """Yield the first optimiser's score less each other's, task by task: above 0 the first is better."""
    first = scores[0]
    yield f"| {first.optimiser} less | difference | better / equal / worse |"
    yield "|---|---|---|"
    for one in scores[1:]:
        apart = first.means() - one.means()
        low, high = _interval(apart)
        better, worse = int((apart > 1e-9).sum()), int((apart < -1e-9).sum())
        counts = f"{better} / {len(apart) - better - worse} / {worse}"
        yield f"| {one.optimiser} | {apart.mean():+.2f} ({low:+.2f} to {high:+.2f}) | {counts} |"


def by_task(scores: Sequence[Scores]) -> Iterator[str]:
    """Yield a line for each task."""
    yield "| task | " + " | ".join(one.optimiser for one in scores) + " |"
    yield "|---|" + "---|" * len(scores)
    for task in scores[0].tasks:
        yield f"| {task} | " + " | ".join(f"{one.tasks[task][:, -1].mean():.1f}" for one in scores) + " |"


def plot(scores: Sequence[Scores], shares: Sequence[float], path: Path, title: str) -> None:
    """Draw the mean score against the share of the budget into an SVG file, one line for each optimiser."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    pyplot.rcParams["svg.hashsalt"] = "pitchpipe"
    figure, axes = pyplot.subplots(figsize=(7.2, 3.4), layout="constrained")
    for one in sorted(scores, key=lambda one: -one.means().mean()):
        means = [one.means(index).mean() for index in range(len(shares))]
        first = one is scores[0]
        axes.plot([100 * share for share in shares], means, label=one.optimiser, lw=2 if first else 1)
    axes.set(xlabel="share of the evaluations, %", ylabel="mean score", title=title, xlim=(0, 100))
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right upper", fontsize=8)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def _interval(values: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval of the mean, by resampling the tasks."""
    rng = np.random.default_rng(0)
    drawn = values[rng.integers(len(values), size=(_DRAWS, len(values)))].mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)
