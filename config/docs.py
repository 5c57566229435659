"""Writes docs/config.md from the models: `python -P -m pitchpipe.config.docs > docs/config.md`."""

from __future__ import annotations

import types
import typing
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from .models import AlgorithmConfig, CheckpointConfig, ConfigFields
from .objectives import ObjectiveConfig
from .platforms import PLATFORMS
from .repeats import RepeatsConfig
from .resources import ResourcesConfig
from .section import Section
from .start_fields import Confidence, EarlierSearches, Points, PriorConfig
from .stopping import GainLimit, StopConfig
from .values import (
    Directory,
    Duration,
    Environment,
    ExistingFile,
    GpuIndices,
    MaxFailures,
    Memory,
    PositiveDuration,
    Storage,
    WorkingDirectory,
)

__all__ = ["render_reference"]

_HEAD = """\
# The config file

Every field of `experiment.yml`. Field names may be written `trial_command`, `trialCommand` or with any other
mix of case and underscores; `null` means not set. YAML 1.2 or JSON. Relative paths start from the folder of
the file, `~` is the home directory. `pitchpipe validate experiment.yml` lists all problems of a file.

- **duration**: a number of seconds, or text with a unit: `30s`, `10m`, `1.5h`, `2d`.
- **memory**: a whole number of bytes, or text with a unit: `512mb`, `4gb`.
- **GPU indices**: an index, a list of them, or text such as `"0,1"`.

The smallest config:

```yaml
search_space:
  lr: {_type: loguniform, _value: [1e-5, 1e-1]}
trial_command: python train.py
trial_concurrency: 2
max_trial_number: 20
```
"""
_OBJECTIVES = """\
A list of these. An entry with a `direction` is optimised, one with a `constraint` limits a metric, and one entry can do
both:

```yaml
objectives:
  - {name: accuracy, direction: maximize, reference: 0.5}
  - {name: size_mb, direction: minimize, reference: 50}
  - {name: latency_ms, constraint: "<= 20"}
```

A trial reports one dict with all of these metrics as its final result; if one is missing, is not a number or is NaN,
the trial fails and the reason names it. With a single entry it may report a bare number. Intermediate results need the
main objective only.

- **Several directions**: the best trials are the Pareto front, those that no other trial beats in every objective.
  Its hypervolume is measured from the `reference` of each objective; one that is not set is a little worse than the
  worst value on the front, by 10 % of the front's range. Trials that do not beat the reference add nothing.
- **Limits** (`constraint`): only trials that keep all of them can be the best, or be on the front. Until one does,
  there is no best trial, and the one that exceeds them least is named as the closest: each excess is divided by its
  limit, unless that is 0. Limits are for reported metrics; the root's `constraints` are for parameters.
- **The main objective** is the one named `default`, else the first with a direction. Tuners and assessors that know
  only one objective optimise it alone, and get its value as `default`; for such a tuner, if it learns from results,
  `pitchpipe validate` and `pitchpipe run` print a warning. It also gives the direction to the tuner and the assessor:
  their `optimize_mode` must agree with it.

A config without `objectives` has one objective, `default`. The first of these that exists sets its direction:

1. `optimize_mode` in the `class_args` of the tuner, or else of the assessor;
2. the default of the tuner's argument `optimize_mode` ([tuners](tuners.md)), also for your own class;
3. the default of the assessor ([assessors](assessors.md));
4. `minimize`, if the classes have no default (such as `Random` and `GridSearch`); in NNI's form, v1 or with names
   such as `trialCommand`, it is `maximize`: NNI ranks the highest result first.

`pitchpipe validate`, `pitchpipe run` and the log name the direction if it is such a default (2 to 4). All tables,
pages and files use this direction to find the best trials."""
_STARTING_POINTS = """\
A search need not start from nothing:

```yaml
defaults: {lr: 0.01, layers: 2}          # your present setting: trial 0
initial_points:                          # then these, in order
  - {lr: 0.003, layers: 3}
priors:                                  # where you expect good values
  lr: {centre: 0.01, confidence: high}
  layers: 2                              # short for {centre: 2}
warm_start: [k3x9a2bq, old.csv]          # earlier searches
```

- **`defaults` and `initial_points`** are whole points of the search space, with nested choices as trials get them;
  constants of the space may be left out. They count as trials, and every tuner that learns gets their results. A
  point that repeats an earlier one runs once. `pitchpipe status`, the end of a run, the report, the pages and
  `Experiment` say how much better the best trial is than the defaults; with several objectives, how many trials of
  the front beat the defaults in every one.
- **`keep_close: true`** asks for a small change: beside the best trial, the same places then name the one that
  changes the defaults least, of those nearly equal to the best, which lose at most 5 % of what the best gains over
  the defaults (over the median, if the defaults have no result). Changes are added up over the parameters, each in
  the units of its range, on a logarithmic scale if it is searched on one; another option of a choice counts 1. With
  10 results or more, a Gaussian process of the results also says which changes matter, in that trial and in the best
  one: those without which it expects to lose more than the same 5 %, or to violate a limit. It may miss effects up
  to a few times the noise of the results. With several objectives the best trial is the knee of the front (without a
  knee, the front's best in the first objective), and the range of the front takes the place of the gain. It needs
  `defaults`.
- **`warm_start`** names earlier searches for a similar problem. Of each, the three best configurations that fit this
  search space are tried after the initial points: the best of each source first, then the second best; in all at most
  a quarter of `max_trial_number`. Parameters are matched by name, nested ones by their path (`layer.kernel`). A
  result that lacks a parameter gets its value from `defaults`; without them, or with a value outside this space, it
  is left out. `pitchpipe validate` and the start of a run say what was used, what was left out and how many points
  are tried first, and warn of a source of which nothing fits. With several objectives the main one decides which are
  the best. An experiment, also of NNI, and a study are read in their own direction: of one that maximized `default`
  the highest results are tried first, also where this experiment minimizes it (the two may be different metrics); of
  an experiment of Pitchpipe a line says so. If you only changed the direction, export it as CSV. Results that break a
  limit of `objectives` are left out. An experiment is named by its folder, or by its id if it is in the same
  `experiment_working_directory`. A CSV file has a column for each parameter and one for the result, named `value`,
  `final`, or like the objective, whose direction it shares; a limited metric may have one, too. `pitchpipe export
  --format csv` writes such files, and every value in them is read as it was. In other files a cell is the option that
  it equals, or the only one that it can mean: `0.1` and `TRUE` may be texts. Write `'0.1` for the text if the number
  is an option, too, and `null` for null; an empty cell is no value.
  `Auto` also models each source and weighs it by how well it ranks the new results; a
  useless one soon counts for nothing.
- **`priors`** are for the tuners `Auto`, `TPE` and `NSGA`. Part of the first suggestions is drawn near the centres.
  `Auto` and `TPE` weight later ones by the prior, less and less as results arrive, and not at all once the better
  results are elsewhere, so that a wrong prior costs little (Hvarfner et al., πBO, ICLR 2022). Parameters without a
  prior are searched as usual. A nested parameter is named as in constraints: `layer.kernel`."""
_REPEATS = """\
Where a result depends on luck (a random initialisation, a shuffled data set, a simulation), one run says little about a
configuration, and the best of many runs is mostly the luckiest:

```yaml
repeats: {count: 5, seed: true}          # repeats: 5 is short for {count: 5}
```

- The trials of one configuration are a family, named by the number of its first trial. Each is a trial like any other,
  and `max_trial_number` counts trials. A family that is cut off by `max_trial_number` continues when the experiment is
  resumed with more.
- **Seeds** follow from the experiment's `seed`, so that a resumed experiment uses the same ones. A script calls
  `pitchpipe.get_seed()`, one in another language reads `PITCHPIPE_SEED`.
- **The race**: a family gets two repeats. Then, before each further one, its mean is compared with that of the best
  complete family, by a one-sided t test at 5 % (of several objectives, it must be clearly worse in each of them).
  A family that clearly violates a limit loses, too, once another one keeps all limits.
  A family that loses gets no further repeats. The idea is that of F-Race (Birattari et al., GECCO 2002).
- **The tuner** learns one result for each family, the mean of each metric; one that has a method `receive_repeats` also
  gets the single results.
- **The best** is the family with the best mean, shown with the 95 % confidence interval of the mean (Student's t).
  Families that still run, or were cut off, count only while no other has ended.
- **Repeats that fail** are left out of the mean. A family none of whose first repeats succeeds has failed and gets no
  further ones; the first repeats are the two before the race. The assessor judges each trial on its own; a family
  with a repeat that it stops gets no further ones, and has no result. A repeat that you kill is left out of the mean,
  too.
- **Defaults, initial points, warm starts and added trials** are families as well.

Tuners that follow the intermediate results of single trials (Hyperband, ASHA, BOHB, DEHB, PBT, PB2) and advisors cannot
be combined with repeats."""
_RESOURCES = """\
Trials can consist of several processes, on one node or more:

```yaml
resources: {processes: 4, gpus_per_process: 1, nodes: 2}   # 2 processes on each of 2 nodes
```

Each process runs `trial_command` and finds the variables that `torchrun` sets: `RANK`, `WORLD_SIZE`, `LOCAL_RANK`,
`LOCAL_WORLD_SIZE`, `NODE_RANK`, `MASTER_ADDR` and `MASTER_PORT`. [Trials of several
processes](cluster.md#trials-of-several-processes) says what they share and how they end. `resources` replaces
`trial_cpu_number` and `trial_gpu_number`. `trial_memory_size` and `trial_resources` are of the whole trial; each node
provides an equal part."""
_STOP = """\
A search can end when little is left to gain:

```yaml
stop_when: {expected_gain_below: 0.001}   # or {expected_gain_below: noise}
```

After a trial has succeeded, a Gaussian process of the results estimates how much better the best one would become if
the search continued until nothing was left to find. When that is below the given number, the tuner is not asked for
more trials, the running ones finish, and the experiment is DONE. The reason is in `pitchpipe status`, on the pages and
in the report: `expected gain 0.0004 is below 0.001 after 45 trials`. A running trial with a surprising result
can raise the estimate; then the search continues. Every estimate is in `logs/dispatcher.log`. Beyond 30 trials there is
one for every fourth trial, beyond 100 for every eighth, beyond 200 for every twelfth.

- **`noise`** is the standard deviation of the results of repeated trials with the same parameters, as the model
  estimates it: a smaller gain could not be told from chance.
- `min_trials` must not exceed `max_trial_number`: a search of fewer than 20 trials must set it lower.
- With limits (`constraint`), only trials that keep them count for `min_trials` and for the gain. Failed trials and
  those that were stopped early do not count. Several objectives are an error.
- With `repeats`, families count, by their means, and `noise` is that of a mean.
- Results of `defaults`, `initial_points`, added trials and imports count; those of a `warm_start` do not.
- The rule needs a tuner with one configuration for each trial: with `PBT` and `PB2`, which change the parameters of a
  trial as it runs, `validate` and `run` warn of it. Trials whose parameters are not a point of the search space do
  not count, and advisors (a tuner and an assessor in one class) do not use the rule.
- A search that ended this way ends again when it is resumed. To search longer, start an experiment with `warm_start`.

[The notes on the search](notes/search-quality.md#the-expected-gain) say how good the estimate is."""
# Defaults that depend on other fields.
_DEFAULTS_IN_WORDS = {"objectives": "direction of the tuner", "assessor": "see there"}
_SECTIONS: list[tuple[str, type[Section], str]] = [
    ("Root", ConfigFields, ""),
    (
        "tuner, assessor",
        AlgorithmConfig,
        "`tuner: TPE` is short for `tuner: {name: TPE}`. `advisor` is an older name of `tuner`.",
    ),
    ("objectives", ObjectiveConfig, _OBJECTIVES),
    ("priors", PriorConfig, _STARTING_POINTS),
    ("repeats", RepeatsConfig, _REPEATS),
    ("resources", ResourcesConfig, _RESOURCES),
    ("stop_when", StopConfig, _STOP),
    ("checkpoint", CheckpointConfig, ""),
    *((f"training_service, platform: {name}", model, "") for name, model in PLATFORMS.items()),
]
_SHARED = (
    "`trial_command`, `trial_code_directory`, `trial_gpu_number`, `nni_manager_ip` and `debug` may also "
    "appear in `training_service`, where they override the root."
)
_NAMES: list[tuple[Any, str]] = [
    (Duration, "duration"),
    (PositiveDuration, "duration"),
    (Memory, "memory"),
    (GpuIndices, "GPU indices"),
    (Directory, "directory"),
    (WorkingDirectory, "directory"),
    (ExistingFile, "file"),
    (Environment, "mapping of text"),
    (Points, "list of mappings"),
    (EarlierSearches, "list of text"),
    (Confidence, "word or number"),
    (GainLimit, "number or `noise`"),
    (MaxFailures, "integer or mapping of integers"),
    (Storage, "directory or URL"),
]
_SIMPLE = {
    Any: "any value",
    str: "text",
    int: "integer",
    float: "number",
    bool: "true or false",
    tuple: "list",
    dict: "mapping",
}


def render_reference() -> str:
    """Return the whole page."""
    parts = [_HEAD, *(_section(*section) for section in _SECTIONS), _SHARED]
    return "\n".join(parts) + "\n"


def _section(title: str, model: type[Section], note: str) -> str:
    hints = typing.get_type_hints(model, include_extras=True)
    rows = [
        f"| `{name}` | {_type(hints[name])} | {_DEFAULTS_IN_WORDS.get(name) or _default(info)} | {info.description} |"
        for name, info in model.model_fields.items()
    ]
    head = [f"## {title}", "", *([note, ""] if note else [])]
    return "\n".join([*head, "| field | type | default | meaning |", "|---|---|---|---|", *rows, ""])


def _type(hint: Any) -> str:
    for known, name in _NAMES:
        if hint == known:
            return name
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return _type(arguments[0])
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if origin in (typing.Union, types.UnionType):
        kinds = dict.fromkeys(_type(part) for part in arguments if part is not type(None))
        return " or ".join(kinds)
    if isinstance(hint, type) and issubclass(hint, Section):
        return "section"
    return _SIMPLE[origin or hint]


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    value = info.get_default(call_default_factory=True, validated_data={})
    return "" if value is None or value is PydanticUndefined else f"`{_written(value)}`"


def _written(value: Any) -> str:
    if isinstance(value, Section):
        given = [name for name in type(value).model_fields if name in value.model_fields_set]
        return "{" + ", ".join(f"{name}: {getattr(value, name)}" for name in given) + "}"
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_written, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_written(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) if not isinstance(value, Path) else value.as_posix()


if __name__ == "__main__":
    print(render_reference(), end="")
