"""The data of a config under canonical field names, ready for the models.

Users write `trial_command`, `trialCommand` or `TRIALCOMMAND`: keys match after lower-casing and dropping
underscores, in config sections but not inside values that are passed on as they are. `null` means not set.
Each renamed path keeps its origin, so that problems show the field where and as the user wrote it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..protocol import JsonObject, JsonPath, brief_json, camel_case, foreign, scalar_item
from .problems import MISSING, OTHER_NAMES, Finding, did_you_mean, fold, nearest, origin_of
from .root_fields import ConfigFields, Form
from .sections import (
    PLATFORMS,
    AlgorithmConfig,
    CheckpointConfig,
    ObjectiveConfig,
    PriorConfig,
    RepeatsConfig,
    ResourcesConfig,
    Section,
    StopConfig,
)
from .source import Source

_HINT = " or ".join(f"platform: {name}" for name in PLATFORMS)
# These are also accepted in the training service, where they win over the root.
SHARED_WITH_ROOT = ("trial_command", "trial_code_directory", "trial_gpu_number", "nni_manager_ip", "debug")
_ALGORITHMS = ("tuner", "assessor", "advisor")


@dataclass(slots=True, kw_only=True)
class Draft:
    """Values under canonical names, the origin of each, and the problems so far (at the user's paths).

    `wrong` has the malformed top-level fields, `meant` the fields that mistyped keys probably mean; `stopped` means
    that further checks are pointless; `notes` are what was given and has no effect.
    """

    values: JsonObject = field(default_factory=dict)
    origins: dict[JsonPath, JsonPath] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    wrong: set[object] = field(default_factory=set)
    meant: set[JsonPath] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    stopped: bool = False
    form: Form = field(default_factory=Form)

    def origin(self, path: JsonPath) -> JsonPath:
        """Return the path as the user wrote it."""
        return origin_of(path, self.origins)

    def add(self, path: JsonPath, message: str, hint: str = "", at_key: bool = False) -> None:
        """Note a problem at a canonical path; the user's path is kept, so that later moves do not change it."""
        self.note(Finding(path=path, message=message, hint=hint, at_key=at_key))

    def note(self, finding: Finding) -> None:
        """Note a finding whose paths are canonical."""
        also = None if finding.also is None else self.origin(finding.also)
        # A field that is only mistyped is not missing as well.
        if finding.message != MISSING or finding.path not in self.meant:
            self.findings.append(replace(finding, path=self.origin(finding.path), also=also))
        # A value inside class_args may be wrong in a section that is well-formed.
        if finding.path[1:2] != ("class_args",) or len(finding.path) == 2:
            self.wrong.add(finding.path[0] if finding.path else None)


def draft_of(data: Any, source: Source | None = None, *, stored: bool = False) -> Draft:
    """Return the draft of a config in Pitchpipe's form or in that of another tuner; never raises.

    `source` is the file that `data` came from. A `stored` config is Pitchpipe's, whatever its keys look like.
    """
    (forms,) = foreign("config")
    return forms.draft_of(data, source, stored=stored)


def make_draft(data: Any, *, stored: bool = False) -> Draft:
    """Rename the keys of a config, drop fields that are not set, and resolve aliases; never raises.

    The `assessor` of a `stored` config is null if none is wanted.
    """
    draft = Draft()
    if not isinstance(data, Mapping):
        what = "is empty" if data is None else f"must be a mapping, not {brief_json(data)}"
        draft.add((), what, "a config has lines such as trial_command: python train.py")
        draft.stopped = True
    else:
        draft.values = _section(draft, data, (), [*ConfigFields.model_fields, "advisor"])
        _settle(draft)
        if stored and "assessor" in data:
            draft.values.setdefault("assessor", None)
    return draft


def _settle(draft: Draft) -> None:
    for name in _ALGORITHMS:
        _algorithm(draft, name)
    _advisor(draft)
    _objectives(draft)
    _priors(draft)
    _part(draft, "checkpoint", CheckpointConfig)
    _part(draft, "stop_when", StopConfig)
    _part(draft, "resources", ResourcesConfig)
    _repeats(draft)
    _training_service(draft)


def _section(draft: Draft, data: Mapping[Any, Any], at: JsonPath, fields: Iterable[str]) -> JsonObject:
    """Return `data` with canonical names; `at` is the canonical path of the section."""
    names = {fold(name): name for name in fields}
    origin = draft.origin(at)
    result: JsonObject = {}
    seen: set[str] = set()
    for key, value in data.items():
        name = names.get(fold(key)) if isinstance(key, str) else None
        if name is None:
            draft.meant.update((*at, meant) for meant in _meant(key, names, at))
            draft.add((*at, key), "unknown field", _unknown_hint(key, value, names, at), at_key=True)
        elif name in seen:
            other = draft.origins[*at, name]
            draft.findings.append(
                Finding(path=(*origin, key), message="is the same field as", at_key=True, also=other)
            )
        else:
            seen.add(name)
            draft.origins[*at, name] = (*origin, key)
            if value is not None:
                result[name] = value
    return result


def _unknown_hint(key: object, value: object, names: Mapping[str, str], at: JsonPath) -> str:
    if not isinstance(key, str):
        return "field names are text"
    camel = "_" not in key and key != key.lower()
    folded = fold(key)
    if not at and folded == "direction":
        return f"it belongs in objectives: [{{name: default, direction: {value}}}]"
    elsewhere = [p for p, model in PLATFORMS.items() if folded in map(fold, model.model_fields)]
    if at == ("training_service",) and elsewhere:
        return f"a field of platform {elsewhere[0]}"
    meant = (camel_case(name) if camel else name for name in _meant(key, names, at))
    return next((f"did you mean {name}?" for name in meant), "")


def _meant(key: object, names: Mapping[str, str], at: JsonPath) -> list[str]:
    """Return the field that a key probably means, if any; `names` are the fields by their folded names."""
    if not at:
        names = {**names, **{fold(other): name for other, name in OTHER_NAMES.items()}}
    close = nearest(fold(key), names) if isinstance(key, str) else None
    return [names[close]] if close else []


def _algorithm(draft: Draft, name: str) -> None:
    value = draft.values.get(name)
    if isinstance(value, str):
        value = {"name": value}
    if not isinstance(value, Mapping):
        return
    section = _section(draft, value, (name,), AlgorithmConfig.model_fields)
    given = section.get("name")
    # None is not the same as no assessor given.
    draft.values[name] = None if name == "assessor" and given in ("none", "None") else section


def _advisor(draft: Draft) -> None:
    if "advisor" not in draft.values:
        return
    advisor = draft.values.pop("advisor")
    if "tuner" in draft.values:
        draft.add(
            ("advisor",), "is another name of tuner, which is also there", "keep one of them", at_key=True
        )
        return
    draft.values["tuner"] = advisor
    _move(draft, ("advisor",), ("tuner",))


def _objectives(draft: Draft) -> None:
    value = draft.values.get("objectives")
    if isinstance(value, list | tuple):
        draft.values["objectives"] = [
            _section(draft, item, ("objectives", i), ObjectiveConfig.model_fields)
            if isinstance(item, Mapping)
            else item
            for i, item in enumerate(value)
        ]


def _priors(draft: Draft) -> None:
    value = draft.values.get("priors")
    if isinstance(value, Mapping):
        draft.values["priors"] = {
            name: _prior(draft, prior, ("priors", name)) if isinstance(prior, Mapping) else {"centre": prior}
            for name, prior in value.items()
        }


def _prior(draft: Draft, value: Mapping[Any, Any], at: JsonPath) -> JsonObject:
    section = _section(draft, value, at, PriorConfig.model_fields)
    if (*at, "centre") in draft.origins:
        section.setdefault("centre", None)  # an option of a choice
    return section


def _part(draft: Draft, name: str, model: type[Section]) -> None:
    value = draft.values.get(name)
    if isinstance(value, Mapping):
        draft.values[name] = _section(draft, value, (name,), model.model_fields)


def _repeats(draft: Draft) -> None:
    value = draft.values.get("repeats")
    if isinstance(value, bool):
        draft.values.pop("repeats")
        draft.add(("repeats",), f"must be a number or a mapping, not {brief_json(value)}", "repeats: 5")
    elif isinstance(value, int):
        draft.values["repeats"] = {"count": value}
    _part(draft, "repeats", RepeatsConfig)


def _training_service(draft: Draft) -> None:
    value = draft.values.get("training_service")
    at = ("training_service",)
    if isinstance(value, Mapping):
        platform = _platform(draft, value, at)
        if platform is None:
            draft.values.pop(at[0])
            return
        fields = [*PLATFORMS[platform].model_fields, *SHARED_WITH_ROOT]
        section = draft.values[at[0]] = _section(draft, value, at, fields)
        section["platform"] = platform
        _lift_shared(draft, section)


def _platform(draft: Draft, service: Mapping[Any, Any], at: JsonPath) -> str | None:
    """Return the platform, or None after noting a finding."""
    key = next((k for k in service if isinstance(k, str) and fold(k) == "platform"), "platform")
    value = service.get(key)
    place = (*at, key)
    platform = value.lower() if isinstance(value, str) else None
    if platform in PLATFORMS:
        return platform
    if value is None:
        draft.add(place, MISSING, _HINT)
    else:
        hint = did_you_mean(value, PLATFORMS) or _HINT
        draft.add(place, f"unknown platform {brief_json(value)}", hint)
    return None


def _lift_shared(draft: Draft, section: JsonObject) -> None:
    for name in SHARED_WITH_ROOT:
        if name in section:
            draft.values[name] = section.pop(name)
            _move(draft, ("training_service", name), (name,))


def _move(draft: Draft, old: JsonPath, new: JsonPath) -> None:
    """Rename the origins under `old` to `new`."""
    moved = {p: o for p, o in draft.origins.items() if p[: len(old)] == old}
    for path, origin in moved.items():
        del draft.origins[path]
        draft.origins[new + path[len(old) :]] = origin


def plain(data: Any) -> tuple[Any, list[Finding]]:
    """Return a deep copy of dicts, lists and JSON scalars, and a finding for everything that is not JSON.

    >>> plain({"tuner": {"class_args": {"sizes": (1, 2)}}})
    ({'tuner': {'class_args': {'sizes': [1, 2]}}}, [])
    """
    findings: list[Finding] = []
    return _copy(data, (), findings), findings


def _copy(value: Any, path: JsonPath, findings: list[Finding]) -> Any:
    if isinstance(value, Mapping):
        return _copy_mapping(value, path, findings)
    if isinstance(value, list | tuple):
        return [_copy(item, (*path, index), findings) for index, item in enumerate(value)]
    if value is None or isinstance(value, str | bool | int | float):
        return _scalar(value)
    if isinstance(value, Section):
        return _copy(value.canonical(), path, findings)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        listed = value.tolist() if getattr(value, "shape", ()) else scalar_item(value)
        if type(listed) is not type(value):  # a complex longdouble is its own item
            return _copy(listed, path, findings)
    findings.append(_not_json(value, path))
    return None


def _function_in_space(value: Any, path: JsonPath) -> Finding:
    """Say what to write in place of a function or a class: one that makes parameters was not called."""
    from ..search_space import uniform

    name = value.__name__
    if value.__module__ == uniform.__module__:
        return Finding(path=path, message=f"the function {name} is not a value", hint=f"call it: {name}(...)")
    what = "the class" if isinstance(value, type) else "the function"
    hint = "values are stored as JSON: write a text, and look it up in the trial"
    return Finding(path=path, message=f"{what} {name} is not a value", hint=hint)


def _not_json(value: Any, path: JsonPath) -> Finding:
    if path[:1] == ("search_space",) and hasattr(value, "__name__"):
        return _function_in_space(value, path)
    if path in (("tuner",), ("assessor",)):
        name = (value if isinstance(value, type) else type(value)).__name__
        example = f'{{"class_name": "FILE.{name}", "code_directory": "FOLDER", "class_args": {{...}}}}'
        return Finding(path=path, message="a class of your own is named by its file", hint=f"write {example}")
    return Finding(path=path, message=f"{type(value).__name__} cannot be stored as JSON")


def _copy_mapping(value: Mapping[Any, Any], path: JsonPath, findings: list[Finding]) -> JsonObject:
    result = {}
    for key, item in value.items():
        if isinstance(key, str):
            result[str(key)] = _copy(item, (*path, key), findings)
        else:
            findings.append(Finding(path=path, message=f"the key {brief_json(key)} is not text"))
    return result


def _scalar(value: Any) -> Any:
    # numpy.float64 is a float and numpy.str_ is a str, as are members of some enums: they count as what they hold.
    if isinstance(value, str):
        return str.__str__(value)
    return next((kind(value) for kind in (bool, int, float) if isinstance(value, kind)), None)
