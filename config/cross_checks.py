"""Checks across fields: problems, and warnings of what is allowed but probably a mistake."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from ..protocol import Direction, JsonObject, JsonPath, Objective, brief_json, format_path, main_objective
from .draft import Draft
from .problems import MISSING, Finding, did_you_mean
from .root_fields import ConfigFields
from .sections import AlgorithmConfig, LocalConfig, ObjectiveConfig, RepeatsConfig

DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
_FARTHER = "the reference is worse than every good value"
_EXCLUDED = {"trial_cpu_number": "cpus_per_process", "trial_gpu_number": "gpus_per_process"}
_PLACEHOLDER = re.compile(r"(?<!\$)\{([\w-]+)\}")
_SINGLE_QUOTED = re.compile("'[^']*'")  # often a program with braces of its own: awk '{print}'
_LISTED = 10
IGNORED: tuple[JsonPath, ...] = (
    ("nni_manager_ip",),
    ("shared_storage",),
    ("training_service", "reuse_mode"),
    ("training_service", "max_trial_number_per_gpu"),
)
"""The fields that are accepted and have no effect; the last one has an effect if trials take GPUs."""


def fill_defaults(values: JsonObject) -> None:
    """Set the fields whose default depends on other fields: log_level and objectives.

    If no algorithm has an `optimize_mode`, the objectives stay unset: only a dispatcher knows the default of a class
    (see `default_direction`).
    """
    if "log_level" not in values and values.get("debug") is True:
        values["log_level"] = "debug"
    if "objectives" not in values:
        modes = [mode for section in ("tuner", "assessor") if (mode := _raw_mode(values.get(section)))]
        if modes:
            values["objectives"] = [{"direction": modes[0]}]


def _raw_mode(section: Any) -> str | None:
    arguments = section.get("class_args") if isinstance(section, dict) else None
    mode = arguments.get("optimize_mode") if isinstance(arguments, dict) else None
    return mode if isinstance(mode, str) and mode in DIRECTIONS else None


def check_fields(config: ConfigFields, draft: Draft, needs_command: bool) -> list[Finding]:
    """Return the problems of all fields except the search space; malformed fields have defaults in `config`."""
    findings = []
    if needs_command and "trial_command" not in draft.values:
        findings.append(
            Finding(path=("trial_command",), message=MISSING, hint="trial_command: python train.py")
        )
    has_command = needs_command or config.trial_command is not None
    if config.trial_code == "snapshot" and not has_command:
        hint = "leave it out: a function is sent to its trials once, at the start"
        findings.append(Finding(path=("trial_code",), message="snapshot is for commands", hint=hint))
    for name in ("tuner", "assessor"):
        section = getattr(config, name)
        if section is not None and (section.name or (name, "name") not in draft.meant):
            findings += _check_algorithm(section, name)
    findings += _check_objectives(config, draft) + _check_directions(config, draft)
    return findings + _check_resources(config, has_command=has_command)


def _check_algorithm(section: AlgorithmConfig, name: str) -> list[Finding]:
    if section.name is None and section.class_name is None:
        hint = f"such as {name}.name: {'Auto' if name == 'tuner' else 'Medianstop'}"
        return [Finding(path=(name,), message="needs a name, or class_name and code_directory", hint=hint)]
    if section.name is not None and section.class_name is not None:
        return [
            Finding(
                path=(name, "class_name"),
                message="name and class_name exclude each other",
                hint="keep one",
                at_key=True,
            )
        ]
    if section.class_name is not None and section.code_directory is None:
        hint = "code_directory: . for the folder of this file"
        return [Finding(path=(name,), message="class_name needs a code_directory", hint=hint)]
    if section.name is not None and section.code_directory is not None:
        return [
            Finding(path=(name, "code_directory"), message="belongs to class_name, not to name", at_key=True)
        ]
    return []


def _check_objectives(config: ConfigFields, draft: Draft) -> list[Finding]:
    given = draft.values.get("objectives")
    items = given if isinstance(given, list) else []
    names = [item.get("name", "default") if isinstance(item, dict) else None for item in items]
    findings = [
        Finding(
            path=("objectives", index, "name"), message=f"there is another objective named {brief_json(name)}"
        )
        for index, name in enumerate(names)
        if name is not None and name in names[:index]
    ]
    if "objectives" in draft.wrong:
        return findings
    for index, objective in enumerate(config.objectives):
        if objective.direction is None and objective.constraint is None:
            hint = 'or a constraint, such as constraint: "<= 20"'
            findings.append(Finding(path=("objectives", index, "direction"), message=MISSING, hint=hint))
        elif objective.direction is None and objective.reference is not None:
            what = "belongs to an objective with a direction; this one is only limited"
            findings.append(Finding(path=("objectives", index, "reference"), message=what, at_key=True))
        elif objective.reference is not None and _is_out_of_reach(objective.parsed()):
            what = f"no value keeps {objective.constraint} and is better than the reference"
            findings.append(Finding(path=("objectives", index, "reference"), message=what, hint=_FARTHER))
    if not findings and all(objective.direction is None for objective in config.objectives):
        what, hint = "nothing is optimised: all of these are only limited", "give one of them a direction"
        findings.append(Finding(path=("objectives",), message=what, hint=hint))
    return findings


def _is_out_of_reach(objective: Objective) -> bool:
    """Return whether all values within the limits are worse than the reference, or as bad."""
    best = -objective.at_most if objective.direction == "maximize" else objective.at_least
    return objective.reference is not None and best >= objective.sign * objective.reference


def _check_directions(config: ConfigFields, draft: Draft) -> list[Finding]:
    """Return where tuner, assessor and objectives name different directions."""
    findings = []
    first: tuple[JsonPath, str] | None = None
    if "objectives" in draft.values and ("objectives",) in draft.origins and "objectives" not in draft.wrong:
        main = main_objective([objective.parsed() for objective in config.objectives])
        index = next((i for i, objective in enumerate(config.objectives) if objective.name == main.name), 0)
        first = (("objectives", index, "direction"), main.direction or DIRECTIONS[0])
    for name in ("tuner", "assessor"):
        section = getattr(config, name)
        mode = section.class_args.get("optimize_mode") if section is not None else None
        place: JsonPath = (name, "class_args", "optimize_mode")
        if mode in DIRECTIONS and first is not None and mode != first[1]:
            findings.append(Finding(path=place, message=f"{mode} contradicts {first[1]} of", also=first[0]))
        elif mode in DIRECTIONS:
            first = first or (place, mode)
        elif mode is not None and section is not None and section.name is not None:
            hint = did_you_mean(mode, DIRECTIONS)
            findings.append(
                Finding(
                    path=place, message=f"must be minimize or maximize, not {brief_json(mode)}", hint=hint
                )
            )
    return findings


def _check_resources(config: ConfigFields, *, has_command: bool) -> list[Finding]:
    """Return the problems of trials of several processes."""
    asked = config.resources
    if asked is None:
        return []
    findings = [
        Finding(
            path=("resources",),
            message="excludes",
            hint=f"use resources.{instead}",
            also=(name,),
            at_key=True,
        )
        for name, instead in _EXCLUDED.items()
        if getattr(config, name) is not None
    ]
    if not has_command:
        what, hint = (
            "needs a trial_command: a function trial is one process",
            "call the function in a script",
        )
        findings.append(Finding(path=("resources",), message=what, hint=hint, at_key=True))
    if asked.processes % asked.nodes:
        what = f"is {asked.processes}, which {asked.nodes} nodes cannot share equally"
        findings.append(
            Finding(path=("resources", "processes"), message=what, hint=f"a multiple of {asked.nodes}")
        )
    return findings + _check_nodes(config, asked.nodes)


def _check_nodes(config: ConfigFields, nodes: int) -> list[Finding]:
    service, path = config.training_service, ("resources", "nodes")
    if nodes == 1:
        return []
    if isinstance(service, LocalConfig):
        what = f"is {nodes}, and the platform local has one node"
        return [Finding(path=path, message=what, hint="join a cluster: platform: ray, and its address")]
    if service.address is None:
        what = f"is {nodes}, and a private Ray has one node"
        return [
            Finding(
                path=path,
                message=what,
                hint="set training_service.address: `pitchpipe cluster up` prints one",
            )
        ]
    return []


def check_stop(config: ConfigFields) -> list[Finding]:
    """Return the problems of the stop rule in a new config; users may change the limits of a stored one."""
    rule, most = config.stop_when, config.max_trial_number
    if rule is None:
        return []
    findings = []
    goals = [objective.name for objective in config.objectives if objective.direction is not None]
    if len(goals) > 1:
        what = f"needs a single objective with a direction, and there are {len(goals)}: {', '.join(goals)}"
        hint = "limit the others instead: constraint without direction"
        findings.append(Finding(path=("stop_when",), message=what, hint=hint, at_key=True))
    fewest = 1 if config.repeats is None else config.repeats.fewest
    if most is not None and rule.min_trials > most // fewest:
        default = "" if "min_trials" in rule.model_fields_set else " by default"
        over = f"more than max_trial_number ({most})"
        if fewest > 1:
            over = f"more than the {most // fewest} configurations of max_trial_number ({most}) with repeats"
        what = f"is {rule.min_trials}{default}, {over}: the search would never end early"
        findings.append(
            Finding(path=("stop_when", "min_trials"), message=what, hint=f"at most {most // fewest}")
        )
    return findings


def check_space(config: ConfigFields, *, stored: bool) -> list[Finding]:
    """Return the problems of the search space, new or stored, and of its constraints."""
    from ..search_space import check

    findings = []
    for problem in check(config.search_space, config.constraints, stored=stored):
        of_constraint = problem.path[:1] == ("constraints",) and isinstance((*problem.path, "")[1], int)
        path = problem.path if of_constraint else ("search_space", *problem.path)
        findings.append(Finding(path=tuple(path), message=problem.message, hint=problem.hint))
    return findings


def free_form_note(config: ConfigFields, findings: Sequence[Finding]) -> str:
    """Return a warning that replaces the findings in a search space if only a custom tuner reads it, else nothing."""
    readers = ("constraints", "defaults", "initial_points", "priors", "warm_start", "stop_when")
    if not findings or config.tuner.class_name is None or any(getattr(config, name) for name in readers):
        return ""
    why = f"{format_path(findings[0].path)}: {findings[0].message}"
    what = f"the search space is passed to {config.tuner.class_name} unread"
    return f"{what}, because it is not in the usual form ({why})"


def warnings_about_objectives(objectives: Sequence[ObjectiveConfig]) -> list[str]:
    """Return a warning of a reference that has no effect: with one goal, there is no hypervolume to measure from it.

    >>> warnings_about_objectives([ObjectiveConfig(direction="minimize", reference=2.0)])
    ['objectives[0].reference has no effect: there is one objective with a direction, so no hypervolume']
    """
    goals = [place for place, objective in enumerate(objectives) if objective.direction is not None]
    if len(goals) != 1 or objectives[goals[0]].reference is None:
        return []
    what = "has no effect: there is one objective with a direction, so no hypervolume"
    return [f"objectives[{goals[0]}].reference {what}"]


def warnings_about_repeats(repeats: RepeatsConfig | None, most: int | None) -> list[str]:
    """Return a warning of repeats that do not repeat: one of each configuration, or more than there are trials.

    >>> warnings_about_repeats(RepeatsConfig(count=1), 20)
    ['repeats has no effect: with count 1 each configuration runs once']
    """
    if repeats is None:
        return []
    if repeats.count == 1:
        return ["repeats has no effect: with count 1 each configuration runs once"]
    if most is not None and most < repeats.count:
        return [f"max_trial_number ({most}) counts trials: no configuration gets its {repeats.count} repeats"]
    return []


def warnings_about_command(config: ConfigFields) -> Iterator[str]:
    """Yield a warning for each `{NAME}` in the command that is not a parameter.

    Inside single quotes, or with a custom tuner (it may add parameters), only for a name that resembles a parameter.
    """
    command = config.trial_command or ""
    names = ["args", *dict.fromkeys(_names(config.search_space))]
    unquoted = _PLACEHOLDER.findall(_SINGLE_QUOTED.sub("", command))
    for name in dict.fromkeys(_PLACEHOLDER.findall(command)):
        if name in names:
            continue
        hint = did_you_mean(name, names)
        is_meant = name in unquoted and not name.isdigit()
        if not hint and is_meant and config.tuner.class_name is None:
            hint = f"there are {', '.join(names[:_LISTED])}" + (" ..." if len(names) > _LISTED else "")
        if hint:
            yield f"{{{name}}} in trial_command is not a parameter and is left unchanged: {hint}"


def _names(space: Any) -> Iterator[str]:
    """Yield the names of the parameters, those of nested choices and of the batches of a list included."""
    if isinstance(space, Mapping):
        for name, value in space.items():
            if not str(name).startswith("_"):
                yield str(name)
            yield from _names(value)
    elif isinstance(space, list | tuple):
        for item in space:
            yield from _names(item)


def warnings_about_ignored(config: ConfigFields, names: Mapping[JsonPath, str]) -> Iterator[str]:
    """Yield a warning for each field that has no effect; `names` are those in the file."""
    local = config.training_service if isinstance(config.training_service, LocalConfig) else None
    gpus_per_process = None if config.resources is None else config.resources.gpus_per_process
    takes_gpus = bool(config.trial_gpu_number or gpus_per_process)
    is_given = (
        config.nni_manager_ip is not None,
        config.shared_storage is not None,
        local is not None and local.reuse_mode,
        local is not None and local.max_trial_number_per_gpu > 1 and not takes_gpus,
    )
    for path, given in zip(IGNORED, is_given, strict=True):
        if given:
            why = " without trial_gpu_number" if path == IGNORED[-1] else ""
            yield f"{names.get(path, format_path(path))} has no effect{why}"
