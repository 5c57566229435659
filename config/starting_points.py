"""Where a search starts: the user's present setting, points to try first, and priors; checked against the space."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..protocol import Json, JsonPath, Parameters, format_path
from .problems import Finding, did_you_mean, fold
from .root_fields import ConfigFields

if TYPE_CHECKING:
    from ..search_space import SearchSpace


_WITH_PRIORS = ("auto", "tpe", "nsga")


@dataclass(frozen=True, slots=True)
class StartingPoint:
    """Parameters that run before the tuner proposes any, and the field that they come from."""

    source: Literal["defaults", "initial"]
    parameters: Parameters


def check_starting_points(config: ConfigFields, priors: Json) -> list[Finding]:
    """Return the problems of defaults, initial points and priors in a valid search space.

    The `priors` are those that the user wrote, so that a malformed one does not hide the problems of another.
    """
    points, centres = dict(_points(config)), _centres(priors)
    findings = []
    if config.keep_close and config.defaults is None:
        message = "needs `defaults`: the parameters to which the proposal is to be close"
        findings.append(Finding(path=("keep_close",), message=message, at_key=True))
    if not points and not centres:
        return findings
    from ..search_space import SearchSpace

    space = SearchSpace.parse(config.search_space, config.constraints)
    for place, point in points.items():
        findings += _faults(space, place, point)
    for name, centre in centres.items():
        findings += _faults_of_prior(space, name, centre)
    return findings


def _centres(priors: Json) -> dict[str, Json]:
    given = priors.items() if isinstance(priors, Mapping) else ()
    return {name: prior["centre"] for name, prior in given if isinstance(name, str) and "centre" in prior}


def _points(config: ConfigFields) -> Iterator[tuple[JsonPath, Parameters]]:
    """Yield all points with their paths in the config; the constants of the search space need not be written."""
    if config.defaults is None and not config.initial_points:
        return
    from ..search_space import with_constants

    space = config.search_space or {}
    if config.defaults is not None:
        yield ("defaults",), with_constants(space, config.defaults)
    for index, point in enumerate(config.initial_points):
        yield ("initial_points", index), with_constants(space, point)


def _faults(space: SearchSpace, place: JsonPath, point: Parameters) -> list[Finding]:
    problems = space.validate(point)
    if not problems:
        broken = space.violations(point)
        return [Finding(path=place, message=f"violates the constraint {text}") for text in broken]
    return [
        Finding(path=(*place, *problem.path), message=problem.message, hint=problem.hint)
        for problem in problems
    ]


def _faults_of_prior(space: SearchSpace, name: str, centre: Json) -> list[Finding]:
    """Return why a centre is not a value of any parameter of this name; branches of a choice may share one."""
    from ..search_space import unit_map

    named = [parameter for parameter in space.parameters if parameter.path == name]
    if not named:
        hint = did_you_mean(name, [parameter.path for parameter in space.parameters])
        return [Finding(path=("priors", name), message="there is no such parameter", hint=hint, at_key=True)]
    faults = [unit_map(parameter).fault(centre) for parameter in named]
    return [Finding(path=("priors", name, "centre"), message=faults[0])] if all(faults) else []


def starting_points(config: ConfigFields) -> list[StartingPoint]:
    """Return the points that run first, in order, each once."""
    repeated = _repeated(config)
    return [
        StartingPoint("defaults" if place == ("defaults",) else "initial", point)
        for place, point in _points(config)
        if place not in repeated
    ]


def _repeated(config: ConfigFields) -> Mapping[JsonPath, JsonPath]:
    """Return the path of each point that repeats an earlier one, with the path of that one."""
    from ..search_space import identity

    first: dict[Any, JsonPath] = {}
    return {
        place: first[key]
        for place, point in _points(config)
        if first.setdefault(key := identity(point), place) != place
    }


def warnings_about_start(config: ConfigFields) -> list[str]:
    """Return what is probably a mistake: points or sources given twice, too many points, unused priors."""
    warnings = [
        f"{format_path(place)} repeats {format_path(other)}: it runs once"
        for place, other in _repeated(config).items()
    ]
    warnings += [
        f"warm_start names {source} {count} times: it is read once"
        for source, count in Counter(config.warm_start).items()
        if count > 1
    ]
    count, most, tuner = len(starting_points(config)), config.max_trial_number, config.tuner.name
    if most is not None and count > most:
        rest = f"{count - most} of the {count} points of defaults and initial_points"
        warnings.append(f"max_trial_number ({most}) leaves out {rest}")
    if config.priors and tuner is not None and fold(tuner) not in _WITH_PRIORS:
        warnings.append(f"priors have no effect: the tuner {tuner} does not use them")
    return warnings
