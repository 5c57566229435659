"""`replay_schedule`: the schedule of parameters that a population found, for your own training script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .store.reading import Schedule, ScheduleStep


def replay_schedule(source: str | Path, trial: int | str | None = None) -> Schedule:
    """Return with which parameters the best trial of a population, or another `trial`, was trained when.

    `source` is the folder of an experiment, or a file that `pitchpipe trial show ID TRIAL --schedule --json` has
    written. The schedule has `parameters_at(epoch)`, the number of `results`, and the `steps`: `begin` and `parameters`
    of each. An epoch is what makes one intermediate result. Raises `LookupError` if there is no such trial or if no
    trial of the experiment has changed its parameters, `ValueError` for a file with anything else, `StoreError` if the
    experiment cannot be read, and `OSError` for a file that cannot.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "schedule.json")
    >>> steps = '{"begin": 0, "parameters": {"lr": 0.1}}, {"begin": 20, "parameters": {"lr": 0.01}}'
    >>> _ = path.write_text(f'{{"sequence_id": 3, "results": 60, "steps": [{steps}]}}')
    >>> schedule = replay_schedule(path)
    >>> [schedule.parameters_at(epoch)["lr"] for epoch in (0, 19, 20, 59)]
    [0.1, 0.1, 0.01, 0.01]
    """
    from .store import absolute

    path = absolute(source)
    if not path.is_dir():
        if trial is not None:
            raise ValueError(f"{path} has the schedule of one trial: leave out trial={trial!r}")
        return _read(path)
    from .store.reading import ExperimentView

    with ExperimentView(path) as view:
        if trial is None:
            best = view.best(1)
            if not best:
                raise LookupError(
                    f"no trial of experiment {view.experiment_id} has succeeded: name one by trial="
                )
            trial = best[0].sequence_id
        return view.schedule(trial)


def _read(path: Path) -> Schedule:
    """Return the schedule in a file."""
    from .store.reading import Schedule

    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        steps = [_step(item, data["sequence_id"]) for item in data["steps"]]
        begins = [step.begin for step in steps]
        if begins[0] != 0 or begins != sorted(set(begins)):
            raise ValueError("its steps do not follow each other from 0 on")
        return Schedule(
            sequence_id=data["sequence_id"],
            results=data["results"],
            steps=steps,
            own=steps,
            own_results=data["results"],
        )
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        how = "pitchpipe trial show ID TRIAL --schedule --json > FILE writes one"
        raise ValueError(f"{path} has no schedule: {how} ({type(error).__name__}: {error})") from error


def _step(item: Any, number: int) -> ScheduleStep:
    """Return a step from its JSON; only `begin` and `parameters` are needed."""
    from .store.reading import ScheduleStep

    begin, parameters = item["begin"], item["parameters"]
    if type(begin) is not int or not isinstance(parameters, dict):
        raise TypeError(f"{item!r:.80} is not a step")
    return ScheduleStep(
        begin=begin,
        parameters=parameters,
        trial=item.get("trial", number),
        first=item.get("first", begin),
        copied_from=item.get("copied_from"),
        copied_at=item.get("copied_at"),
    )
