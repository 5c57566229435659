"""The tables, in Markdown, and the plots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import tasks
from results import Results
from scoring import Scores, mean_ranks

__all__ = ["differences", "per_task", "plot", "savings", "table"]


def table(scores: Sequence[Scores], index_of: dict[int, int]) -> Iterator[str]:
    """Yield mean regret with its interval and mean rank at each number of trials, the best at the last one first."""
    last = max(index_of.values())
    ordered = sorted(scores, key=lambda one: one.mean(last))
    ranks = {n: mean_ranks(ordered, index) for n, index in index_of.items()}
    yield "| optimiser | searches | " + " | ".join(f"regret@{n} | rank" for n in index_of) + " | ms |"
    yield "|---|---|" + "---|---|" * len(index_of) + "---|"
    for place, one in enumerate(ordered):
        searches = sum(len(regret) for regret in one.regrets.values())
        cells = []
        for n, index in index_of.items():
            low, high = one.interval(index)
            cells.append(f"{one.mean(index):.3f} ({low:.2f}-{high:.2f}) | {ranks[n][place]:.1f}")
        yield f"| {one.optimiser} | {searches} | {' | '.join(cells)} | {one.ms:.3g} |"


def differences(scores: Sequence[Scores], index_of: dict[int, int]) -> Iterator[str]:
    """Yield each regret less that of the first, seed by seed, with its interval: above 0 is worse."""
    first = scores[0]
    yield f"| less {first.optimiser} | " + " | ".join(f"@{n}" for n in index_of) + " |"
    yield "|---|" + "---|" * len(index_of)
    for one in scores[1:]:
        cells = [
            "{:+.3f} ({:+.2f} to {:+.2f})".format(*one.less(first, index)) for index in index_of.values()
        ]
        yield f"| {one.optimiser} | {' | '.join(cells)} |"


def per_task(scores: Sequence[Scores], index: int) -> Iterator[str]:
    """Yield the mean regret on each task; a dash where an optimiser could not run."""
    found = [
        name for name in [*tasks.names(), *tasks.curve_tasks()] if any(name in one.regrets for one in scores)
    ]
    yield "| optimiser | " + " | ".join(found) + " |"
    yield "|---|" + "---|" * len(found)
    for one in sorted(scores, key=lambda one: one.mean(index)):
        cells = [
            f"{one.regrets[name][:, index].mean():.2f}" if name in one.regrets else "-" for name in found
        ]
        yield f"| {one.optimiser} | {' | '.join(cells)} |"


def savings(
    results: Results, names: Sequence[str], methods: Sequence[str], budget: int, seeds: int
) -> Iterator[str]:
    """Yield the share of epochs that a rule saves: until the final hypervolume of the same tuner without it.

    A search that does not reach it has saved nothing.
    """
    found = {
        (method, row["task"], row["seed"]): row["truths"]
        for method in dict.fromkeys([*methods, "Random"])
        for row in results.of(method, budget, 4)
        if row["seed"] < seeds
    }
    yield "| task | method | seeds | hypervolume in the end | epochs saved |"
    yield "|---|---|---|---|---|"
    for task in names:
        for method in methods:
            searches = {
                seed: truths for (one, on, seed), truths in found.items() if (one, on) == (method, task)
            }
            volume = sum(-truths[-1] for truths in searches.values()) / max(len(searches), 1)
            tuner, _, rule = method.partition("+")
            saved = [
                1 - sum(value > found[tuner, task, seed][-1] for value in truths) / len(truths)
                for seed, truths in searches.items()
                if rule and (tuner, task, seed) in found
            ]
            shown = f"{100 * sum(saved) / len(saved):.0f} %" if saved else ""
            yield f"| {task} | {method} | {len(searches)} | {volume:.3f} | {shown} |"


def plot(
    scores: Sequence[Scores], path: Path, title: str, highlight: str | None = None, unit: str = "trials"
) -> None:
    """Draw mean regret against the number of trials (or epochs) into an SVG file, one line per optimiser."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    pyplot.rcParams["svg.hashsalt"] = "pitchpipe"
    figure, axes = pyplot.subplots(figsize=(7.2, 3.4), layout="constrained")
    if len(scores) > 10:
        axes.set_prop_cycle(color=pyplot.get_cmap("tab20").colors)  # type: ignore[attr-defined]
    for one in sorted(scores, key=lambda one: one.mean(len(one.trials) - 1)):
        means = [one.mean(index) for index in range(len(one.trials))]
        strong = highlight is None or one.optimiser == highlight
        [line] = axes.plot(
            one.trials, means, label=one.optimiser, lw=2 if strong else 1, alpha=1 if strong else 0.6
        )
        if strong and highlight is not None:
            bounds = [one.interval(index) for index in range(len(one.trials))]
            axes.fill_between(one.trials, *zip(*bounds, strict=True), color=line.get_color(), alpha=0.2, lw=0)
    axes.set(xlabel=unit, ylabel="normalised regret", title=title, ylim=(0, None))
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right upper", fontsize=8)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
