"""Configs that were written for any version of NNI: what they say in other words, and what has no effect here.

`draft_of` is the only way in: it says everything with today's fields, which is all that the rest of `config` knows, and
leaves a `Form` for what is decided later. The first format of NNI has a module of its own, `config_v1`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...config import (
    Draft,
    Finding,
    Form,
    Source,
    fold,
    make_draft,
    origin_of,
)
from ...protocol import JsonObject, JsonPath, brief_json, camel_case, format_path
from .config_v1 import NAMES as V1_NAMES
from .config_v1 import Rewritten, is_v1, nearest_v1, rewritten

OTHER_PLATFORMS = (
    *("remote", "openpai", "pai", "paiyarn", "dlts", "aml", "dlc"),
    *("kubeflow", "frameworkcontroller", "adl", "hybrid"),
)
_HOST = re.compile(r"[\w.@:-]+")  # others are placeholders to fill in
_ALGORITHMS = ("tuner", "assessor", "advisor")
_NOT_SET = "_none_"
_OF_A_TRIAL = ("trial_command", "trial_code_directory", "trial_gpu_number")
_RAY_IN_V1 = ("training_service: {platform: ray, ", "trainingServicePlatform: ray and rayConfig: {")
_SPACE_KEYS = ("_type", "_value")
_LIES = {"min": "best", "max": "worst", "mean": "mean", "best": "best", "worst": "worst"}
_LIE_ARGUMENTS = ("parallel_optimize", "constant_liar_type")


@dataclass(frozen=True)
class NniForm(Form):
    """NNI's form: what it decides where a config says nothing, and how it reads a search space."""

    default_direction: str = "maximize"
    why: str = "NNI ranks the highest result first (for the lowest: objectives: [{direction: minimize}])"
    own_tuner_needs_space: bool = False

    def read_words(self, source: Source) -> str:
        """Turn the words that are booleans in YAML 1.1 into booleans, and return a remark; empty without any."""
        turned = source.turn_old_booleans()
        if not turned:
            return ""
        others = f" and {len(turned) - 1} more" if len(turned) > 1 else ""
        what = "yes, no, on and off without quotes are true and false, as in NNI"
        return f"{format_path(turned[0])}{others}: {what}"

    def read_space(self, space: JsonObject, at: JsonPath) -> tuple[JsonObject, list[str]]:
        """Return the search space without what NNI passes over, and remarks."""
        return todays_space(space, at)


def draft_of(data: Any, source: Source | None = None, *, stored: bool = False) -> Draft:
    """Return the draft of a config in Pitchpipe's form or in one of NNI's; never raises.

    The words of NNI's `source` become booleans in `data`, which came from it. A `stored` config has keys as NNI's have,
    but is Pitchpipe's.
    """
    if not isinstance(data, Mapping):
        return make_draft(data)
    form = NniForm() if is_v1(data) or (not stored and any(map(_has_capitals, data))) else Form()
    remark = "" if source is None else form.read_words(source)
    draft = _draft_of_v1(data) if is_v1(data) else _draft_of_todays(data, stored=stored)
    draft.form = form
    draft.notes += filter(None, [remark])
    if isinstance(form, NniForm):
        draft.values = {"assessor": None} | draft.values  # where none is named, none is chosen
    return draft


def _has_capitals(key: object) -> bool:
    return isinstance(key, str) and key != key.lower()


def _draft_of_v1(data: Mapping[Any, Any]) -> Draft:
    old = rewritten(data)
    service = old.values.get("training_service")
    if isinstance(service, dict) and str(service.get("platform")).lower() in OTHER_PLATFORMS:
        # How a trial runs is in the terms of that platform.
        old.values = {name: value for name, value in old.values.items() if name not in _OF_A_TRIAL}
        machines = next((value for key, value in data.items() if fold(str(key)) == "machinelist"), None)
        old.values["training_service"] = {"platform": service["platform"], "machine_list": machines}
        old.findings = [finding for finding in old.findings if fold(str(finding.path[0])) != "trial"]
        old.meant.add(("trial_command",))
    draft = _draft_of_todays(old.values)
    draft.notes = [note.replace(*_RAY_IN_V1) for note in draft.notes]
    draft.findings = [replace(each, hint=each.hint.replace(*_RAY_IN_V1)) for each in draft.findings]
    draft = _at_origins(draft, old)
    draft.origins.setdefault(("trial_command",), ("trial", "command"))  # if it is missing
    draft.findings = [
        replace(each, hint=f"did you mean {near}?")
        if each.message == "unknown field" and (near := nearest_v1(each.path))
        else each
        for each in draft.findings
    ]
    return draft


def _draft_of_todays(data: Mapping[Any, Any], *, stored: bool = False) -> Draft:
    """Return the draft of a config with the fields of today; what only NNI says is said in another way first."""
    today = Rewritten(values=dict(data))
    for key, value in data.items():
        name = fold(key) if isinstance(key, str) else ""
        if name in _ALGORITHMS and _NOT_SET in (value, _field(value, "name")):
            today.values[key] = "none" if name == "assessor" else None
        elif name == "trainingservice":
            _say_service(today, key, value)
    draft = _at_origins(make_draft(today.values, stored=stored), today)
    draft.findings = [_with_todays_name(finding) for finding in draft.findings]
    for name in ("tuner", "assessor"):
        section = draft.values.get(name)
        if isinstance(section, dict) and "class_args" in section:
            section["class_args"] = with_todays_arguments(section.get("name"), section["class_args"])
    return draft


def _at_origins(draft: Draft, today: Rewritten) -> Draft:
    """Return a draft of rewritten values with what was found in rewriting, at the places of the original ones."""
    findings = [
        replace(
            each,
            path=origin_of(each.path, today.origins),
            also=None if each.also is None else origin_of(each.also, today.origins),
        )
        for each in draft.findings
    ]
    return replace(
        draft,
        origins={path: origin_of(origin, today.origins) for path, origin in draft.origins.items()},
        findings=today.findings + findings,
        meant=draft.meant | today.meant,
        notes=today.notes + draft.notes,
    )


def _say_service(today: Rewritten, key: str, service: Any) -> None:
    """Replace several training services by the local one, and drop one that is not run here."""
    if isinstance(service, list | tuple):
        platforms = [str(_field(each, "platform")).lower() for each in service]
        others = [platform for platform in platforms if platform != "local"]
        if len(others) != len(platforms) - 1 or not set(others) <= set(OTHER_PLATFORMS):
            hint = f"give one; to use other machines, {instead_of(service)}"
            what = "a list of training services is not supported"
            today.findings.append(Finding(path=(key,), message=what, hint=hint))
            today.values[key] = None
            return
        if others:
            where = f"on this machine only, not on {', '.join(others)}"
            today.notes.append(f"trials run {where}; for others, {instead_of(service)}")
        local = platforms.index("local")
        today.origins[key,] = (key, local)
        today.values[key] = service[local]
    elif isinstance(service, Mapping):
        place = next(
            (inner for inner in service if isinstance(inner, str) and fold(inner) == "platform"), "platform"
        )
        platform = service.get(place)
        if isinstance(platform, str) and platform.lower() in OTHER_PLATFORMS:
            what = f"platform {brief_json(platform)} is not supported"
            today.findings.append(Finding(path=(key, place), message=what, hint=instead_of([service])))
            today.values[key] = None


def _with_todays_name(finding: Finding) -> Finding:
    """Return a finding of an unknown field with the name that a field of NNI v1 has today."""
    key = finding.path[0] if len(finding.path) == 1 and finding.message == "unknown field" else None
    if not isinstance(key, str) or fold(key) not in V1_NAMES:
        return finding
    name = V1_NAMES[fold(key)]
    if "_" not in key and _has_capitals(key):
        name = re.sub(r"[a-z_]{2,}", lambda word: camel_case(word[0]), name)
    return replace(finding, hint=f"NNI v1's name of {name}" if name else "of NNI v1: remove it")


def instead_of(services: Sequence[Any]) -> str:
    """Return what to do instead of using these training services, with the names of their machines.

    >>> instead_of([{"platform": "remote", "machine_list": [{"host": "node1", "user": "ada"}, {"host": "node2"}]}])
    'start Ray there, `pitchpipe cluster up --hosts ada@node1,node2`, and write training_service: {platform: ray, ...
    """
    machines = [machine for service in services for machine in _machines(service)]
    hosts = ["@".join(filter(None, (user, host))) for host, user, _ in machines]
    ports = {port for _, _, port in machines}
    ssh = f' --ssh "ssh -p {ports.pop()}"' if len(ports) == 1 and ports != {22} else ""
    head = machines[0][0] if machines else "HOST"
    return (
        f"start Ray there, `pitchpipe cluster up --hosts {','.join(hosts) or 'A,B'}{ssh}`, and write"
        f" training_service: {{platform: ray, address: {head}:6379}}"
    )


def _machines(service: Any) -> Iterator[tuple[str, str, int]]:
    """Yield host, user and port of the machines of a training service, in the form of any version of NNI."""
    machines = _field(service, "machinelist")
    for machine in machines if isinstance(machines, list | tuple) else ():
        host = _field(machine, "host") or _field(machine, "ip")
        user = _field(machine, "user") or _field(machine, "username") or ""
        port = _field(machine, "port")
        if all(isinstance(part, str) and _HOST.fullmatch(part or "-") for part in (host, user)):
            yield host, user, port if isinstance(port, int) else 22


def _field(section: Any, name: str) -> Any:
    if not isinstance(section, Mapping):
        return None
    return next((value for key, value in section.items() if isinstance(key, str) and fold(key) == name), None)


def todays_space(space: JsonObject, at: JsonPath = ("search_space",)) -> tuple[JsonObject, list[str]]:
    """Return a search space without what NNI passes over, and remarks; what cannot be read stays.

    >>> todays_space({"lr": {"_type": " uniform", "_value": [0, 1]}})
    ({'lr': {'_type': 'uniform', '_value': [0, 1]}}, ['search_space.lr._type: " uniform" is read as uniform'])
    """
    remarks: list[str] = []
    return {name: _parameter(spec, (*at, name), remarks) for name, spec in space.items()}, remarks


def _parameter(spec: Any, at: JsonPath, remarks: list[str]) -> Any:
    if not isinstance(spec, dict) or not all(key in spec for key in _SPACE_KEYS):
        return spec
    kind, values = spec["_type"], spec["_value"]
    remarks += [
        f"{format_path((*at, key))} has no effect: NNI reads _type and _value"
        for key in spec
        if key not in _SPACE_KEYS
    ]
    if isinstance(kind, str) and kind != kind.strip():
        kind = kind.strip()
        remarks.append(f"{format_path(at)}._type: {brief_json(spec['_type'])} is read as {kind}")
    if kind == "choice":
        values = _options(values, (*at, "_value"), remarks)
    elif isinstance(values, list):
        values = _numbers(str(kind), values, (*at, "_value"), remarks)
    return {"_type": kind, "_value": values}


def _options(options: Any, at: JsonPath, remarks: list[str]) -> Any:
    """Return the options of a choice; those with a `_name` hold parameters."""
    if not isinstance(options, list) or not all(
        isinstance(option, dict) and "_name" in option for option in options
    ):
        return options
    todays = []
    for number, option in enumerate(options):
        inner, more = todays_space(option, (*at, number))
        remarks += more
        todays.append(inner)
    return todays


def _numbers(kind: str, values: list[Any], at: JsonPath, remarks: list[str]) -> list[Any]:
    most = 3 if kind.startswith("q") else 2
    if len(values) > most:
        values = values[:most]
        remarks.append(f"{format_path(at)}: only the first {most} numbers count: {brief_json(values)}")
    if kind == "randint" and any(isinstance(value, float) and math.isfinite(value) for value in values):
        values = [
            math.ceil(value) if isinstance(value, float) and math.isfinite(value) else value
            for value in values
        ]
        remarks.append(f"{format_path(at)}: randint has whole numbers: {brief_json(values)}")
    return values


def with_todays_arguments(name: object, arguments: Any) -> Any:
    """Return the arguments of an algorithm; those of TPE up to NNI 2.3 become `tpe_args`, others stay.

    >>> with_todays_arguments("TPE", {"optimize_mode": "maximize", "constant_liar_type": "min"})
    {'optimize_mode': 'maximize', 'tpe_args': {'constant_liar_type': 'best'}}
    """
    is_tpe = isinstance(name, str) and fold(name) in ("tpe", "tpetuner", "tpelegacy")
    if not is_tpe or not isinstance(arguments, Mapping) or not set(_LIE_ARGUMENTS) & set(arguments):
        return arguments
    parallel, lie = (arguments.get(key) for key in _LIE_ARGUMENTS)
    rest = {key: value for key, value in arguments.items() if key not in _LIE_ARGUMENTS}
    given = rest.get("tpe_args") or {}
    is_known = isinstance(parallel, bool | None) and (lie is None or _LIES.get(str(lie)) is not None)
    if not is_known or not isinstance(given, Mapping):
        return arguments  # they are refused by name
    if parallel is False:  # NNI then ignored running trials, and with them the lie
        return rest
    return {**rest, "tpe_args": {"constant_liar_type": _LIES[lie or "min"], **given}}
