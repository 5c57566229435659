"""When to end a search: as soon as a model of the results expects no further gain that is worth a trial."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ..protocol import (
    EXPECTED_GAIN,
    NO_GAIN,
    STARTING_POINTS,
    Config,
    Json,
    JsonError,
    MetricError,
    MetricMessage,
    ParameterRecord,
    Parameters,
    loads,
    objectives_of,
)
from .checkpointing import Checkpointed

_log = logging.getLogger(__name__)


class StopRule(Checkpointed):
    """Says why the tuner need not be asked for more trials: the expected gain is below a number, or below the noise.

    `rule` and `objectives` are as in the configuration. First, `minTrials` trials must have succeeded within all
    limits. Points outside the search space, and results without a finite number for every objective, do not count.
    With `has_repeats` the results are means of families.

    >>> rule = StopRule({"expectedGainBelow": "noise", "minTrials": 5}, [{"direction": "minimize"}])
    >>> rule.update_search_space({"x": {"_type": "uniform", "_value": [0, 1]}})
    >>> rule.import_data([{"parameter": {"x": x / 5}, "value": 0.3} for x in range(5)])
    >>> rule.why_stop()
    'no further gain is expected after 5 trials'
    """

    KEPT: ClassVar = ("_space", "_results", "_reported")

    def __init__(self, rule: Config, objectives: Sequence[Config], *, has_repeats: bool = False) -> None:
        self._nouns = ("family", "families") if has_repeats else ("trial", "trials")
        self._below: float | str = rule["expectedGainBelow"]
        self._fewest: int = rule["minTrials"]
        parsed = objectives_of(objectives or [{"direction": "minimize"}])
        self._goal = next(objective for objective in parsed if objective.direction is not None)
        self._limits = [objective for objective in parsed if objective.is_limited]
        self._space: Json = {}
        # Parameters, and the loss with the excesses over the limits.
        self._results: list[tuple[Parameters, list[float]]] = []
        self._reported: dict[str, str] = {}  # final results (JSON texts) of trials that have not ended
        self._decided: tuple[int, str] = -1, ""  # the number of results, and the reason then

    def update_search_space(self, space: Any) -> None:
        """Take the search space; earlier results count where they are points of it."""
        self._space, self._decided = space, (-1, "")

    def final(self, data: MetricMessage) -> None:
        """Take the record of a final result, which counts when its trial has succeeded."""
        self._reported.setdefault(data["trial_job_id"], data["value"])

    def trial_end(self, record: ParameterRecord, trial_job_id: str, success: bool) -> None:
        """Take the end of a trial."""
        value = self._reported.pop(trial_job_id, None)
        parameters = record.get("parameters")
        if success and value is not None:
            self._add(parameters, value)
        elif not success and record.get("parameter_source") in STARTING_POINTS:
            # Its result was imported before it failed.
            self._results = [result for result in self._results if result[0] != parameters]

    def import_data(self, data: Sequence[Any]) -> None:
        """Take results measured elsewhere; those of earlier searches, which have a `source`, do not count."""
        for item in data:
            if isinstance(item, Mapping) and "source" not in item:
                self._add(item.get("parameter"), item.get("value"))

    def _add(self, parameters: Any, value: Any) -> None:
        """Note a result; its value may be JSON text."""
        try:
            report = loads(value) if isinstance(value, str) else value
            numbers = [self._goal.loss(report), *(limit.excess(report) for limit in self._limits)]
        except (JsonError, MetricError):
            return
        if isinstance(parameters, dict) and all(map(math.isfinite, numbers)):
            self._results.append((parameters, numbers))

    def why_stop(self) -> str:
        """Return why the search can end, with the expected gain; empty while it should continue."""
        if len(self._results) < self._fewest:
            return ""
        from ..tuners.models import interval_after  # needs numpy, and most experiments have no rule

        count = len(self._results)
        due = max(self._fewest, count - count % interval_after(count))
        if self._decided[0] != due:
            self._decided = due, self._decide(due)
        return self._decided[1]

    def _decide(self, count: int) -> str:
        """Return the reason after the first `count` results."""
        import numpy as np

        from ..search_space import SearchSpace
        from ..tuners.base import Embedding
        from ..tuners.models import expected_gain

        space = SearchSpace.parse(self._space)
        inside = [result for result in self._results[:count] if not space.validate(result[0])]
        numbers = np.array([row for _, row in inside]).reshape(len(inside), 1 + len(self._limits))
        feasible = int(np.all(numbers[:, 1:] <= 0, axis=1).sum())
        if feasible < max(self._fewest, 1):
            return ""
        units = np.array([space.encode(parameters) for parameters, _ in inside])
        outlook = expected_gain(Embedding.of(space), units, numbers[:, 0], numbers[:, 1:])
        least = outlook.noise if self._below == "noise" else float(self._below)
        _log.info(
            "After %d %s the expected gain is %.3g, the noise %.3g",
            count,
            self._nouns[count > 1],
            outlook.gain,
            outlook.noise,
        )
        if outlook.gain > 0 and outlook.gain >= least:
            return ""
        after = f"after {count} {self._nouns[count > 1]}"
        if outlook.gain <= 0:
            return f"{NO_GAIN} {after}"
        named = f"the noise {least:.3g}" if self._below == "noise" else f"{least:.12g}"
        return f"{EXPECTED_GAIN}{outlook.gain:.3g} is below {named} {after}"
