"""The check of a configuration before anything starts: its plug-ins, and whether they accept its search space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..protocol import Config, Objective, main_objective, objectives_of
from ..search_space import Problem, SearchSpaceError, impossible
from .dispatcher_settings import DispatcherSettings
from .errors import PluginNotLoaded
from .msg_dispatcher_base import MsgDispatcherBase
from .plugin import PluginChoice, find_class, load_plugin, plugin_direction

_OF_SEVERAL = "ASHA, Hyperband and Medianstop"  # assessors that judge by all objectives
_WITHOUT_SAMPLES = ("gridsearch", "batch", "batchtuner")


def check(config: Config) -> list[Problem]:
    """Return what is wrong with the tuner, the assessor, their arguments and the search space; start nothing.

    >>> [problem.path for problem in check({"tuner": {"name": "Random", "classArgs": {"sead": 1}}})]
    [('tuner', 'classArgs', 'sead')]
    """
    try:
        settings = DispatcherSettings.read(config, {})
    except ValueError as error:
        return [Problem(("tuner",), str(error))]
    problems, tuner = _loaded(settings.tuner, settings)
    if settings.assessor is not None:
        problems += _loaded(settings.assessor, settings)[0]
    if tuner is not None and settings.has_repeats:
        problems += _problems_of_repeats(tuner)
    if tuner is not None and "searchSpace" in config and hasattr(tuner, "update_search_space"):
        refused = _space_problems(tuner, config["searchSpace"], settings.constraints)
        problems += refused or _impossible(settings.tuner, config["searchSpace"], settings.constraints)
    return problems


def directions(config: Config) -> dict[str, str]:
    """Return the default directions of the tuner and the assessor, for those that have one and are given none.

    >>> directions({"tuner": {"name": "TPE"}, "assessor": {"name": "Medianstop"}})
    {'tuner': 'minimize', 'assessor': 'maximize'}
    """
    chosen = [PluginChoice.of(role, config.get(role) or {}) for role in ("tuner", "assessor")]
    defaults = {choice.role: _direction(choice) for choice in chosen}
    return {role: direction for role, direction in defaults.items() if direction is not None}


def warnings(config: Config) -> list[str]:
    """Return a sentence for each part of a config that a plug-in ignores: objectives, limits, stop_when, the assessor.

    >>> warnings({"tuner": {"name": "BOHB"}, "objectives": [{"direction": "minimize", "constraint": "<= 3"}]})
    ['the tuner optimises default alone, without its limit (unlike Auto, TPE and NSGA)']
    """
    tuner = PluginChoice.of("tuner", config.get("advisor") or config.get("tuner") or {})
    assessor = PluginChoice.of("assessor", config.get("assessor") or {})
    try:
        cls = find_class(tuner)
    except PluginNotLoaded:  # `check` says why
        return []
    ignored = [] if config.get("stopWhen") is None else _of_stop_rule(cls)
    objectives = objectives_of(config.get("objectives") or ())
    learns = vars(cls).get("learns") is not False  # otherwise it optimises none of them
    of_tuner = _alone(cls, tuner, objectives, "tuner optimises", "Auto, TPE and NSGA") if learns else []
    # A user's own class may follow trials to learn from them.
    scheduler = cls.__name__ if tuner.name and _follows_trials(cls) else ""
    return [*of_tuner, *ignored, *_of_assessor(assessor, objectives, scheduler)]


def _of_stop_rule(cls: type) -> list[str]:
    """Return a warning about a rule that ends the search, if it does not suit the tuner."""
    if issubclass(cls, MsgDispatcherBase):
        return [f"stop_when has no effect: {cls.__name__} is an advisor"]
    if any(base.__name__ == "PBTTuner" for base in cls.__mro__):  # also PB2, and a user's own
        why = f"{cls.__name__} changes the parameters of a trial as it runs, and only its last ones count"
        return [f"stop_when may end the search too early or too late: {why}"]
    return []


def _of_assessor(assessor: PluginChoice, objectives: Sequence[Objective], scheduler: str) -> list[str]:
    """Return warnings about the assessor of a config; `scheduler` is the name of a tuner that stops trials itself."""
    try:
        cls = find_class(assessor)
    except PluginNotLoaded:  # there is none, or `check` says why
        return []
    ignored = _alone(cls, assessor, objectives, "assessor judges", _OF_SEVERAL)
    if _are_several(objectives) and not getattr(cls, "judges_several", True):
        ignored.append(
            f"the assessor stops no trial: there are several objectives or limits (unlike {_OF_SEVERAL})"
        )
    if scheduler:
        ignored.append(f"{scheduler} stops trials itself, and counts those that the assessor stops as failed")
    return ignored


def _alone(
    cls: type, choice: PluginChoice, objectives: Sequence[Objective], does: str, others: str
) -> list[str]:
    """Return a warning about a plug-in that leaves out some of the objectives or limits."""
    if not _are_several(objectives) or hasattr(cls, "update_objectives"):
        return []
    why = f"unlike {others}" if choice.name else f"{cls.__name__} has no update_objectives"
    without = "its limit" if len(objectives) == 1 else "the other objectives and limits"
    return [f"the {does} {main_objective(objectives).name} alone, without {without} ({why})"]


def _are_several(objectives: Sequence[Objective]) -> bool:
    """Return whether there is more than one objective, or a limit."""
    return len(objectives) > 1 or any(objective.is_limited for objective in objectives)


def _follows_trials(tuner: type) -> bool:
    """Return whether a tuner is a scheduler: it judges single trials by their intermediate results."""
    is_advisor = hasattr(tuner, "handle_request_trial_jobs")
    return is_advisor or getattr(tuner, "wants_periodical", False) is True


def _direction(choice: PluginChoice) -> str | None:
    if "optimize_mode" in choice.class_args:
        return None
    try:
        return plugin_direction(choice)
    except (PluginNotLoaded, ValueError):  # `check` says why; a class without a signature has no direction
        return None


def _loaded(choice: PluginChoice, settings: DispatcherSettings) -> tuple[list[Problem], Any]:
    try:
        plugin = load_plugin(choice, settings.shared, settings.objectives, settings.priors)
    except PluginNotLoaded as error:
        return list(error.problems), None
    return _missing_methods(choice, plugin), plugin


def _missing_methods(choice: PluginChoice, plugin: Any) -> list[Problem]:
    """Return a problem for a class that is not a tuner (or an assessor) at all."""
    if choice.role == "assessor":
        wanted = ("assess_trial",)
    else:
        wanted = ("generate_parameters", "generate_multiple_parameters", "handle_request_trial_jobs")
    if any(hasattr(plugin, name) for name in wanted):
        return []
    path = choice.role, "name" if choice.name else "className"
    what = "an assessor" if choice.role == "assessor" else "a tuner"
    return [Problem(path, f"{find_class(choice).__name__} is not {what}: it has no {wanted[0]}")]


def _problems_of_repeats(tuner: Any) -> list[Problem]:
    """Return a problem for a tuner that needs the single trials: of a repeated configuration it gets the mean."""
    if not _follows_trials(type(tuner)):
        return []
    why = f"{type(tuner).__name__} follows single trials, and cannot take the mean of several"
    return [Problem(("repeats",), why, "remove repeats, or use another tuner, such as Auto or TPE")]


def _space_problems(tuner: Any, space: Any, constraints: tuple[str, ...]) -> list[Problem]:
    try:
        if constraints and hasattr(tuner, "update_constraints"):
            tuner.update_constraints(list(constraints))
        tuner.update_search_space(space)
    except SearchSpaceError as error:
        return [
            Problem(("searchSpace", *problem.path), problem.message, problem.hint)
            for problem in error.problems
        ]
    except Exception as error:  # noqa: BLE001 - a plug-in may refuse with any exception
        return [Problem(("searchSpace",), f"{type(tuner).__name__} refuses it: {error!r}")]
    return []


def _impossible(tuner: PluginChoice, space: Any, constraints: tuple[str, ...]) -> list[Problem]:
    """Return the constraints that no sample of a search space satisfies.

    A tuner that draws samples would give up, too. A grid search or the user's own class may find rarer points.
    """
    name = tuner.name.replace("_", "").lower()
    if not constraints or name in ("", *_WITHOUT_SAMPLES):
        return []
    return impossible(space, constraints)
