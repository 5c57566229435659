"""Configs in NNI's first format (v1), rewritten with today's fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...config import PLATFORMS, AlgorithmConfig, ConfigFields, Finding, fold, nearest
from ...protocol import JsonObject, JsonPath, brief_json, format_path

_SERVICE = "training_service"
# Fields at the root; an empty path drops one that has no effect here.
_ROOT: Mapping[str, JsonPath] = {
    "trainingserviceplatform": (_SERVICE, "platform"),
    "maxexecduration": ("max_experiment_duration",),
    "maxtrialnum": ("max_trial_number",),
    "searchspacepath": ("search_space_file",),
    "logdir": ("experiment_working_directory",),
    "authorname": (),
    "description": (),
    "versioncheck": (),
    "logcollection": (),
    "multithread": (),
    "multiphase": (),
    "includeintermediateresults": (),
}
_TRIAL: Mapping[str, JsonPath] = {
    "command": ("trial_command",),
    "codedir": ("trial_code_directory",),
    "gpunum": ("trial_gpu_number",),
}
_LOCAL: Mapping[str, JsonPath] = {"maxtrialnumpergpu": (_SERVICE, "max_trial_number_per_gpu")}
_PLATFORMS = "trainingserviceplatforms"  # of the hybrid mode
_SERVICES = ("localconfig", "rayconfig")
_SERVICE_FIELDS = [field for model in PLATFORMS.values() for field in model.model_fields]
_ALGORITHM: Mapping[str, JsonPath] = {
    "codedir": ("code_directory",),
    "classfilename": (),  # becomes a part of className
    "checkpointdir": (),
    "includeintermediateresults": (),
}
_ALGORITHMS = ("tuner", "assessor", "advisor")
# Sections of platforms that are not supported; the problem of the platform is enough.
_ELSEWHERE = frozenset(
    {"machinelist", "remoteconfig", "paiconfig", "paiyarnconfig", "amlconfig", "dlcconfig", "dltsconfig"}
    | {"adlconfig", "kubeflowconfig", "frameworkcontrollerconfig", "hybridconfig", "sharedstorage"}
)
_TRIAL_ELSEWHERE = frozenset(
    {"cpunum", "memorymb", "shmmb", "image", "virtualcluster", "authfile", "portlist", "paiconfigpath"}
    | {"paistorageconfigname", "nnimanagernfsmountpath", "containernfsmountpath", "nasmode"}
    | {"ps", "worker", "master", "taskroles", "datadir", "outputdir", "namespace", "imagepullsecrets"}
    | {"nfs", "adaptive", "checkpoint", "memorysize"}
)
_NO_EFFECT = {
    "multithread": "a tuner is called by one thread at a time",
    "includeintermediateresults": "the tuner gets no result of a stopped trial",
}
# Its keys as they are written, by section; those of `trial` are checked here.
_ALGORITHM_KEYS = ("codeDir", "classFileName", "className", "classArgs", "gpuIndices")
_KEYS: Mapping[str, tuple[str, ...]] = {
    "": (
        *("experimentName", "trialConcurrency", "maxExecDuration", "maxTrialNum", "trainingServicePlatform"),
        *("searchSpacePath", "useAnnotation", "logDir", "logLevel", "nniManagerIp", "debug", "authorName"),
        *("tuner", "assessor", "advisor", "trial", "localConfig", "rayConfig"),
    ),
    "tuner": ("builtinTunerName", *_ALGORITHM_KEYS),
    "assessor": ("builtinAssessorName", *_ALGORITHM_KEYS),
    "advisor": ("builtinAdvisorName", *_ALGORITHM_KEYS),
    "localconfig": ("gpuIndices", "maxTrialNumPerGpu", "useActiveGpu"),
}
NAMES: Mapping[str, str] = {
    **{name: ".".join(path) for name, path in _ROOT.items()},
    "trial": "trial_command, trial_code_directory, trial_gpu_number",
    "localconfig": _SERVICE,
    "machinelist": "training_service (platform: ray with address)",
}
"""The fields of v1 at the root, in lower case, with today's names; empty for one without an effect."""


@dataclass(slots=True, kw_only=True)
class Rewritten:
    """A config with today's fields; `origins` has where in the v1 config each path was, `notes` what has no effect."""

    values: JsonObject = field(default_factory=dict)
    origins: dict[JsonPath, JsonPath] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    meant: set[JsonPath] = field(default_factory=set)  # the fields that mistyped keys probably mean
    notes: list[str] = field(default_factory=list)

    def put(self, new: JsonPath, value: Any, old: JsonPath) -> None:
        """Set the value at a path of one or two steps."""
        *section, name = map(str, new)
        target = self.values.setdefault(section[0], {}) if section else self.values
        target[name] = value
        self.origins[new] = old


def is_v1(data: Mapping[Any, Any]) -> bool:
    """Return whether a config is in the first format: only that one has `trainingServicePlatform`."""
    return any(_folded(key) == "trainingserviceplatform" for key in data)


def rewritten(data: Mapping[Any, Any]) -> Rewritten:
    """Return a v1 config with today's fields; keys that v1 does not have stay as they are.

    >>> rewritten({"trainingServicePlatform": "local", "maxTrialNum": 8, "trial": {"command": "./train"}}).values
    {'training_service': {'platform': 'local'}, 'max_trial_number': 8, 'trial_command': './train'}
    """
    today = Rewritten()
    for key, value in data.items():
        name = _folded(key)
        if value is None or name in _ELSEWHERE:
            continue
        if (name == "trial" or name in _SERVICES) and not isinstance(value, Mapping):
            today.findings.append(Finding(path=(key,), message=f"must be a mapping, not {brief_json(value)}"))
        elif name == "trial":
            _trial(today, key, value)
        elif name in _SERVICES:
            for inner, item in value.items():
                if not _is_strange(today, (key, inner), [*_LOCAL, *_SERVICE_FIELDS]):
                    today.put(_LOCAL.get(_folded(inner), (_SERVICE, inner)), item, (key, inner))
        elif name in _ALGORITHMS and isinstance(value, Mapping):
            _algorithm(today, key, value)
        elif name not in _ROOT:
            if not _is_strange(today, (key,), [*_KEYS[""], *ConfigFields.model_fields]):
                today.put((key,), value, (key,))
        elif _ROOT[name]:
            today.put(_ROOT[name], value, (key,))
        elif value is True and name == "multiphase":
            what = "is not supported: a trial evaluates one set of parameters"
            today.findings.append(Finding(path=(key,), message=what, hint="remove it", at_key=True))
        elif value is True and name in _NO_EFFECT:
            today.notes.append(f"{key} of NNI v1 has no effect: {_NO_EFFECT[name]}")
    _hybrid(today, data)
    return today


def nearest_v1(path: JsonPath) -> str | None:
    """Return the key of v1 that an unknown one at a path of the v1 config probably means, if any.

    >>> nearest_v1(("tuner", "builtinTunerNam"))
    'builtinTunerName'
    """
    *section, key = path
    known = _KEYS.get(_folded(section[0]) if section else "", ())
    return nearest(str(key), known) if len(path) < 3 else None


def _trial(today: Rewritten, key: str, section: Mapping[Any, Any]) -> None:
    for inner, item in section.items():
        if new := _TRIAL.get(_folded(inner)):
            today.put(new, item, (key, inner))
        elif item is None or _folded(inner) in _TRIAL_ELSEWHERE:
            continue
        elif not _is_strange(today, (key, inner), ("command", "codeDir", "gpuNum")):
            near = nearest(str(inner), ("command", "codeDir", "gpuNum"))
            hint = "field names are text" if near is None else f"did you mean {near}?"
            today.meant.update(() if near is None else (_TRIAL[fold(near)],))
            today.findings.append(Finding(path=(key, inner), message="unknown field", hint=hint, at_key=True))


def _algorithm(today: Rewritten, key: str, section: Mapping[Any, Any]) -> None:
    """Rewrite the section of a tuner, an assessor or an advisor."""
    today.put((key,), {}, (key,))
    file = next((item for inner, item in section.items() if _folded(inner) == "classfilename"), None)
    for inner, item in section.items():
        name = _folded(inner)
        if item is None:
            continue
        if name.startswith("builtin") and name.endswith("name"):
            today.put((key, "name"), item, (key, inner))
        elif name == "gpuindices":
            today.put(("tuner_gpu_indices",), item, (key, inner))
        elif name == "classname" and isinstance(file, str):
            today.put((key, inner), f"{file.removesuffix('.py')}.{item}", (key, inner))
        elif _is_strange(
            today, (key, inner), [*_ALGORITHM, *_KEYS[_folded(key)], *AlgorithmConfig.model_fields]
        ):
            continue
        elif new := _ALGORITHM.get(name, (inner,)):
            today.put((key, *new), item, (key, inner))
            if str(nearest_v1((key, inner))).startswith("builtin"):
                today.meant.add((key, "name"))


def _is_strange(today: Rewritten, path: JsonPath, known: Iterable[str]) -> bool:
    """Return whether a key neither is a field nor resembles one; note that it is dropped, as NNI 3 drops it."""
    key = path[-1]
    if not isinstance(key, str) or fold(key) in map(fold, known) or nearest(key, known) is not None:
        return False
    today.notes.append(f"{format_path(path)} has no effect: it is not a field")
    return True


def _hybrid(today: Rewritten, data: Mapping[Any, Any]) -> None:
    """Make a list of the platforms in `hybridConfig`; without `local` among them, the platform stays `hybrid`."""
    service = today.values.get(_SERVICE)
    sections = {_folded(key): (key, value) for key, value in data.items()}
    section, given = sections.get("hybridconfig", ("", None))
    if not isinstance(service, dict) or service.get("platform") != "hybrid" or not isinstance(given, Mapping):
        return
    key, names = next((item for item in given.items() if _folded(item[0]) == _PLATFORMS), ("", None))
    if not isinstance(names, list) or "local" not in names:
        return
    machines = sections.get("machinelist", ("", None))[1]
    local = {**service, "platform": "local"}
    today.values[_SERVICE] = [
        local if name == "local" else {"platform": name, "machineList": machines} for name in names
    ]
    for path in [path for path in today.origins if path[:1] == (_SERVICE,)]:
        today.origins[_SERVICE, names.index("local"), *path[1:]] = today.origins.pop(path)
    today.origins[_SERVICE,] = (section, key)


def _folded(key: object) -> str:
    return fold(key) if isinstance(key, str) else ""
