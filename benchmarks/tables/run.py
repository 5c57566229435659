"""Other people's tables, with `Auto` beside its peers: public benchmarks as they are, nothing of them is kept here.

    python -m benchmarks.tables bayesmark                       108 tasks, 3 seeds: about a day of CPU time
    python -m benchmarks.tables bayesmark --subset 36 --seeds 1 --optimisers Auto optuna-tpe Random
    python -m benchmarks.tables bbob-mixint --tasks '*_d05' --processes 2
    python -m benchmarks.tables hpo-2                           two objectives (hpo-3: three)
    python -m benchmarks.tables formulas --quick                seconds, without any download

The tables: bayesmark, bbob, bbob-mixint, bbob-biobj-mixint, hpo-2, hpo-3, formulas. The libraries are installed by pip
into environments of their own (`--environments`) when they are first needed. What was run is not run again, so a run
may be interrupted and extended: `results/` beside this file has the searches of the repository, `--results` those run
since then, and `--keep` moves these to those. The tables go to stdout as Markdown.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

from definitions import TABLES, Scale, own_scale, shipped_scale
from environments import Environments, EnvironmentUnavailable
from reference import reached_2009
from runs import Plan, Runs
from scores import by_task, differences, plot, scores_of, summary
from worker import Tasks

__all__ = ["chosen"]

_ROOT = Path(__file__).parents[2]
_SHARES = (0.25, 0.5, 1.0)


def main() -> int:
    """Run what is missing, then print the tables."""
    options = _options()
    table = TABLES[options.table]
    kept, new = (folder / f"{options.table}.jsonl" for folder in (options.kept, options.results))
    runs = Runs(options.table, table, kept, new, Environments(options.environments))
    try:
        plan = _plan(options, runs)
        if not options.print_only:
            runs.run(plan)
        if options.keep:
            print(f"{kept}: {runs.keep()} searches", file=sys.stderr)
    except (EnvironmentUnavailable, ValueError) as error:
        print(f"python -m benchmarks.tables: {error}", file=sys.stderr)
        return 1
    _print(options, runs, plan)
    return 0


def _plan(options: argparse.Namespace, runs: Runs) -> Plan:
    table = runs.table
    quick = options.quick
    patterns = options.tasks or ([table.quick_task] if quick else ["*"])
    optimisers = options.optimisers or (["Auto", "Random"] if quick else list(table.optimisers))
    if table.needs_scale and options.baseline is None and "Random" not in optimisers:
        optimisers.append("Random")  # its points make the scale
    return Plan(
        tasks=chosen(_names(runs, options), options.subset, patterns),
        optimisers=optimisers,
        seeds=range(options.seeds or (1 if quick else table.seeds)),
        budget=options.budget or (table.quick_budget if quick else table.budget),
        processes=options.processes,
    )


def _names(runs: Runs, options: argparse.Namespace) -> list[str]:
    if options.print_only and options.subset is None:
        return sorted({row["task"] for row in runs.all()})  # needs no library of the table
    with Tasks(runs.environments.python(runs.table.environment), runs.name) as tasks:
        return tasks.ask("list")


def chosen(names: Sequence[str], count: int | None, patterns: Sequence[str]) -> list[str]:
    """Return the tasks that match a pattern; with a count, of so many that are drawn at random, always the same."""
    drawn = list(names) if count is None else random.Random(0).sample(names, len(names))[:count]
    found = [name for name in drawn if any(fnmatch(name, pattern) for pattern in patterns)]
    if not found:
        raise ValueError(f"no task matches {' '.join(patterns)!r}; these are the tasks: {' '.join(drawn)}")
    return found


def _print(options: argparse.Namespace, runs: Runs, plan: Plan) -> None:
    scale = Scale({}, {})
    if runs.table.needs_scale:
        scale = shipped_scale(options.baseline) if options.baseline else own_scale(list(runs.all()))
    rows = [row for row in runs.of(plan) if not runs.table.needs_scale or row["task"] in scale.worst]
    for optimiser, count in runs.outdated().items():
        print(f"left out, because another version ran them: {count} of {optimiser}", file=sys.stderr)
    scores = scores_of(rows, plan.optimisers, runs.table, scale, _SHARES)
    if not scores:
        print("there is no task that all of these optimisers have run", file=sys.stderr)
        return
    tasks = list(scores[0].tasks)
    print(f"{runs.name}: {runs.table.about}")
    searches = sum(map(len, scores[0].tasks.values()))
    all_searches = len(plan.tasks) * len(plan.seeds)
    print(f"{len(tasks)} of {len(plan.tasks)} tasks, {searches} of {all_searches} searches of each optimiser")
    print("\n" + "\n".join(summary(scores, _SHARES)))
    print("\n" + "\n".join(differences(scores)))
    if runs.name == "bbob" and not options.quick:
        share = reached_2009(runs.environments, tasks, plan.budget)
        print(
            f"\nthe best of 2009 for each function and target (cocopp): {share:.2f} for the same evaluations"
        )
    if options.by_task:
        print("\n" + "\n".join(by_task(scores)))
    if options.plot is not None:
        shares = [step / 16 for step in range(1, 17)]
        title = f"{runs.name}, {len(tasks)} tasks"
        plot(scores_of(rows, plan.optimisers, runs.table, scale, shares), shares, options.plot, title)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tables",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--tasks", nargs="+", metavar="PATTERN", help="such as 'SVM_*'; all of them")
    parser.add_argument(
        "--subset", type=_count, metavar="N", help="of N tasks, drawn at random, always the same"
    )
    parser.add_argument("--seeds", type=_count, help="searches on each task")
    parser.add_argument(
        "--optimisers", "--optimizers", nargs="+", metavar="NAME", help="the first is compared"
    )
    parser.add_argument("--budget", type=_count, help="evaluations a search (COCO: for each parameter)")
    parser.add_argument("--processes", type=_count, default=1, help="searches at a time")
    parser.add_argument("--baseline", type=Path, help="a baseline file of Bayesmark, for its scale")
    parser.add_argument("--print-only", action="store_true", help="print what has been run, run nothing")
    parser.add_argument("--by-task", action="store_true", help="print the score of each task, too")
    parser.add_argument("--plot", type=Path, help="an SVG file to draw; needs matplotlib")
    parser.add_argument("--results", type=Path, default=_ROOT / "build" / "tables")
    parser.add_argument("--keep", action="store_true", help="move what was run into the repository's file")
    parser.add_argument(
        "--kept", type=Path, default=Path(__file__).parent / "results", help=argparse.SUPPRESS
    )
    parser.add_argument("--environments", type=Path, default=_ROOT / ".tables")
    parser.add_argument("--quick", action="store_true", help="one task, one seed, few evaluations")
    return parser.parse_args()


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not an integer of at least 1")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
