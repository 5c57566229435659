"""Search quality: how close tuners come to the best value, side by side with their peers.

    python -m benchmarks.search_quality                         Auto, TPE, Random and the peers, 100 trials, 5 seeds
    python -m benchmarks.search_quality --optimisers all --seeds 10 --plots docs/images/search
    python -m benchmarks.search_quality --workers 8 --budget 100
    python -m benchmarks.search_quality --ordinary              what people tune, as they write it: 40 trials
    python -m benchmarks.search_quality --closed --seeds 10     the other half of it, kept back to confirm changes
    python -m benchmarks.search_quality --plateaus              metrics with few levels, as accuracy on few examples
    python -m benchmarks.search_quality --curves                early stopping: 4 workers, epochs are counted
    python -m benchmarks.search_quality --fronts                early stopping with two objectives
    python -m benchmarks.search_quality --objectives            two to four objectives, limits; 200 trials
    python -m benchmarks.search_quality --ablation --seeds 10   Auto without each of its parts
    python -m benchmarks.search_quality --optimisers Random TPE --tasks s1 s6 --budget 50 --quick

Searches are kept in a folder (`--results`): what was run is not run again, so a run may be interrupted and extended.
Peers run in the environment that `make peers` makes; without it they are left out. The tables go to stdout as Markdown.
An optimiser that cannot run on a task has a dash there, and its means are over the others.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import tasks
from optimisers import PEERS
from report import differences, per_task, plot, savings, table
from results import Plan, Results
from scoring import Scores, scale_of, score

OURS = ("Auto", "TPE", "GP", "SMAC", "DNGO", "Metis", "CMAES", "Anneal", "Evolution", "NSGA", "QMC")
# What Auto is without each of its parts.
WITHOUT = (
    '{"model_free_share": 0.0}',
    '{"local_share": 0.0, "late_local_share": 0.0}',
    '{"branch_share": 0.0, "early_branches": 0.0}',
    '{"compare_warpings": false}',
    '{"noises": [0.001]}',
    '{"noises": [0.01]}',
    '{"plateau_share": 2.0}',
    '{"centre_first": false}',
    '{"design_points": 20}',
    '{"ordered_choices": false}',
    '{"shared_names": false}',
    '{"climb_rounds": 0}',
)
USUAL = ("Auto", "TPE", "optuna-tpe", "optuna-gp", "optuna-cmaes", "nni-tpe")
STOPPING = ("Random", "Random+ASHA", "TPE+ASHA", "Auto+ASHA", "Auto+Hyperband", "Auto", "TPE+Medianstop")
STOPPING_FRONTS = ("Random", "Random+ASHA", "Random+Medianstop", "Auto", "Auto+ASHA")
SEVERAL = ("Auto", "NSGA", "TPE", "Evolution", "optuna-tpe", "optuna-nsga2")
PEERS_STOPPING = ("optuna-tpe", "optuna-tpe+asha", "optuna-tpe+hyperband", "optuna-tpe+median")
# Kinds of tasks: with what their names begin. Those with learning curves have one objective, or a front of two.
_USUAL_TASKS, _PLATEAUS, _CURVES, _FRONTS, _OBJECTIVES = "st", "p", "c", "f", "m"
_ORDINARY, _CLOSED = "o", "x"
_USUAL_OPTIMISERS = {
    _USUAL_TASKS: USUAL,
    _PLATEAUS: USUAL,
    _ORDINARY: ("Auto", "optuna-default"),
    _CLOSED: ("Auto", "optuna-default"),
    _CURVES: (*STOPPING, *PEERS_STOPPING),
    _FRONTS: STOPPING_FRONTS,
    _OBJECTIVES: SEVERAL,
}
# A full trial trains so many epochs.
_FULL = 27
_RANDOM_SEEDS = 15
_ROOT = Path(__file__).parents[2]


def main() -> None:
    """Run what is missing, then print the tables and draw the plots."""
    options = _options()
    has_epochs, is_front = options.kind in (_CURVES, _FRONTS), options.kind == _FRONTS
    if has_epochs:
        options.results /= "curves"
    if options.ablation:
        options.optimisers = ["Auto", *(f"Auto@{settings}" for settings in WITHOUT)]
    results = Results(options.results, options.peers)
    seeds = range(2 if options.quick else options.seeds)
    chosen = [*OURS, *PEERS] if options.optimisers == ["all"] else options.optimisers
    few = options.quick or is_front
    random_seeds = range(len(seeds) if few else max(_RANDOM_SEEDS, len(seeds)))
    results.run(Plan(["Random"], options.tasks, random_seeds, options.budget, options.workers))
    results.run(Plan(chosen, options.tasks, seeds, options.budget, options.workers))
    if is_front:
        print("\n".join(savings(results, options.tasks, chosen, options.budget, len(seeds))))
        return
    scores = _scores(results, [*chosen, "Random"], options, len(seeds))
    counted = (3 * _FULL, 10 * _FULL, 30 * _FULL) if has_epochs else (25, 50, 100, 200, 250, 500, 1000)
    counted = (10, 20, 40) if options.kind in (_ORDINARY, _CLOSED) else counted
    marks = {n: n - 1 for n in counted if n <= options.budget} or {options.budget: options.budget - 1}
    _print(scores, marks, options)
    if options.plots is not None:
        _plot(scores, options.plots, "epochs" if has_epochs else "trials")


def _scores(results: Results, optimisers: list[str], options: argparse.Namespace, seeds: int) -> list[Scores]:
    found = {
        name: [
            row for row in results.of(name, options.budget, options.workers) if row["task"] in options.tasks
        ]
        for name in dict.fromkeys(optimisers)
    }
    # The incumbent of any search may be the best known value: the scale is made from all of them.
    everything = [
        json.loads(line) for path in options.results.glob("*.jsonl") for line in path.read_text().splitlines()
    ]
    scale = scale_of(everything, found["Random"], options.budget)
    steps = range(1, options.budget + 1)
    scored = [
        score(name, [row for row in rows if name == "Random" or row["seed"] < seeds], scale, steps)
        for name, rows in found.items()
    ]
    return [one for one in scored if one.regrets]


def _print(scores: list[Scores], marks: dict[int, int], options: argparse.Namespace) -> None:
    workers = f", {options.workers} workers on a simulated clock" if options.workers > 1 else ""
    print(
        f"{options.budget} trials on {len(options.tasks)} tasks{workers}; ms: CPU time a trial, late in a search"
    )
    print()
    print("\n".join(table(scores, marks)))
    if options.ablation or options.kind in (_ORDINARY, _CLOSED):
        print("\nthe others less the first, seed by seed: above 0 is worse\n")
        print("\n".join(differences(scores, marks)))
    print(f"\nregret@{max(marks)} by task\n")
    print("\n".join(per_task(scores, marks[max(marks)])))
    print()
    curves = tasks.curve_tasks()
    made = [curves[name]() if name in curves else tasks.make(name) for name in options.tasks]
    print("; ".join(f"{task.name}: {task.about}" for task in made))


def _plot(scores: list[Scores], folder: Path, unit: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    plot(scores, folder / "all.svg", "all tasks", unit=unit)
    reference = [one for one in scores if one.optimiser in ("Random", "optuna-tpe")]
    for one in scores:
        if one not in reference:
            name = "".join(c if c.isalnum() else "-" for c in one.optimiser)
            plot(
                [*reference, one], folder / f"{name}.svg", f"{one.optimiser}, all tasks", one.optimiser, unit
            )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.search_quality",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--optimisers", nargs="+", help="names, or all")
    parser.add_argument("--tasks", nargs="+", metavar="TASK")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--budget",
        type=int,
        help="trials a search: 100, with --objectives 200, of ordinary tasks 40; of early stopping epochs, 810",
    )
    parser.add_argument("--ablation", action="store_true", help="Auto without each of its parts")
    parser.set_defaults(kind=_USUAL_TASKS)
    kinds = parser.add_mutually_exclusive_group()
    for name, kind, text in (
        ("--ordinary", _ORDINARY, "ordinary tasks instead"),
        ("--closed", _CLOSED, "the closed ordinary tasks instead"),
        ("--plateaus", _PLATEAUS, "tasks whose value has few levels instead"),
        ("--curves", _CURVES, "learning curves and early stopping instead"),
        ("--fronts", _FRONTS, "the same with two objectives instead"),
        ("--objectives", _OBJECTIVES, "tasks with several objectives instead"),
    ):
        kinds.add_argument(name, dest="kind", action="store_const", const=kind, help=text)
    parser.add_argument("--workers", type=int, help="trials at a time: 1, with early stopping 4")
    parser.add_argument("--results", type=Path, default=_ROOT / "build" / "search_quality")
    parser.add_argument("--peers", type=Path, default=_ROOT / ".peers", help="an environment with the peers")
    parser.add_argument("--plots", type=Path, help="a folder for SVG files; needs matplotlib")
    parser.add_argument("--quick", action="store_true", help="two seeds")
    options = parser.parse_args()
    has_epochs = options.kind in (_CURVES, _FRONTS)
    if options.budget is None:
        usual = {_OBJECTIVES: 200, _ORDINARY: 40, _CLOSED: 40}.get(options.kind, 100)
        options.budget = 30 * _FULL if has_epochs else usual
    if options.workers is None:
        options.workers = 4 if has_epochs else 1
    options.optimisers = options.optimisers or list(_USUAL_OPTIMISERS[options.kind])
    options.tasks = options.tasks or tasks.of_kind(options.kind)
    known = tasks.names() if options.kind == _USUAL_TASKS else tasks.of_kind(options.kind)
    if unknown := [name for name in options.tasks if name not in known]:
        parser.error(f"--tasks {' '.join(unknown)}: known here are {', '.join(known)}")
    if options.budget < 1 or options.workers < 1 or options.seeds < 1:
        parser.error("budget, workers and seeds are at least 1")
    return options


if __name__ == "__main__":
    sys.exit(main())
