"""The config classes of `nni.experiment`: the fields of docs/reference/config.md as attributes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from ...config import PLATFORMS, read_overridden, read_source
from ...config import ExperimentConfig as OwnConfig
from ...protocol import JsonObject

_PATHS = frozenset(
    {"trial_code_directory", "search_space_file", "experiment_working_directory", "code_directory"}
)
_ALGORITHMS = ("tuner", "assessor", "advisor")
_UNSET = {"name": "_none_"}
_SHARED = frozenset({"trial_command", "trial_code_directory", "trial_gpu_number", "nni_manager_ip", "debug"})


class ConfigBase:
    """A section of a config: fields as attributes, None if not set; others raise AttributeError.

    Fields may also be given by the names that they have in NNI's JSON, such as `trialCommand`.
    """

    _names: ClassVar[frozenset[str] | None] = None  # None: any

    def __init__(self, **fields: Any) -> None:
        for name, value in fields.items():
            setattr(self, _snake(name), value)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a field."""
        if self._names is not None and name not in self._names:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}")
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        """Return None for a field that is not set."""
        if name.startswith("_") or (self._names is not None and name not in self._names):
            raise AttributeError(f"{type(self).__name__} has no field {name!r}")

    def json(self) -> JsonObject:
        """Return the fields that are set by the names of NNI's JSON, paths being absolute."""
        return self.plain(_camel)

    def plain(self, named: Callable[[str], str] = str) -> JsonObject:
        """Return the fields that are set, paths being absolute; `named` gives a field its name."""
        fields = {name: value for name, value in vars(self).items() if value is not None}
        return {named(name): _plain(name, value, named) for name, value in fields.items()}


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _plain(name: str, value: Any, named: Callable[[str], str]) -> Any:
    if isinstance(value, ConfigBase):
        return value.plain(named)
    if isinstance(value, list | tuple):
        return [_plain(name, item, named) for item in value]
    if name in _PATHS:
        expanded = os.path.expanduser(value)
        # A user that does not exist is refused later.
        return expanded if expanded.startswith("~") else os.path.abspath(expanded)
    return os.fspath(value) if isinstance(value, os.PathLike) else value


class AlgorithmConfig(ConfigBase):
    """A tuner or an assessor by its name."""

    _names = frozenset({"name", "class_name", "code_directory", "class_args"})

    def __init__(self, name: str | None = None, class_args: JsonObject | None = None, **fields: Any) -> None:
        super().__init__(name=name, class_args=dict(class_args or {}), **fields)

    def plain(self, named: Callable[[str], str] = str) -> JsonObject:
        """Return the fields that are set; if it names no algorithm, NNI's name for that."""
        return super().plain(named) if self.name or self.class_name else dict(_UNSET)


class CustomAlgorithmConfig(AlgorithmConfig):
    """A tuner or an assessor of one's own: `class_name` in `code_directory`."""

    def __init__(self, class_name: str | None = None, code_directory: str = ".", **fields: Any) -> None:
        super().__init__(class_name=class_name, code_directory=code_directory, **fields)


class _ServiceConfig(ConfigBase):
    """Where trials run."""

    _platform: ClassVar[str]

    def __init__(self, **fields: Any) -> None:
        super().__init__(**{"platform": self._platform, **fields})


class LocalConfig(_ServiceConfig):
    """Trials run on this machine."""

    _names = _SHARED | frozenset(PLATFORMS["local"].model_fields)
    _platform = "local"


class RayConfig(_ServiceConfig):
    """Trials run on a Ray cluster: `address`."""

    _names = frozenset(PLATFORMS["ray"].model_fields)
    _platform = "ray"


class RemoteMachineConfig(ConfigBase):
    """A machine of the platform `remote`, which is refused at the start with what replaces it."""


class RemoteConfig(_ServiceConfig):
    """The platform `remote`, which is refused at the start with what replaces it."""

    _platform = "remote"


class ExperimentConfig(ConfigBase):
    """The config of an experiment: the fields of docs/reference/config.md as attributes.

    >>> config = ExperimentConfig("local", trial_command="python train.py", search_space={}, max_trial_number=4)
    >>> config.tuner.name = "Random"
    >>> config.max_trial_number, config.tuner.name, config.training_service.platform
    (4, 'Random', 'local')
    """

    _names = frozenset(OwnConfig.model_fields) | {"advisor"}

    def __init__(self, training_service_platform: str | list[str] | None = None, **fields: Any) -> None:
        preset: dict[str, object] = {name: AlgorithmConfig() for name in _ALGORITHMS}
        preset["trial_code_directory"] = "."
        if isinstance(training_service_platform, list):
            preset["training_service"] = [_service(name) for name in training_service_platform]
        elif training_service_platform is not None:
            preset["training_service"] = _service(training_service_platform)
        given = {name: _section(_snake(name), value) for name, value in fields.items()}
        super().__init__(**{**preset, **given})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ExperimentConfig:
        """Return the config in a file, of NNI or Pitchpipe; raise `ConfigError` with all problems."""
        folder = os.path.dirname(os.path.abspath(path))
        own = OwnConfig.from_dict(read_overridden(path, ()).data, folder)
        given = {name: getattr(own, name) for name in own.model_fields_set}
        for name in {*_ALGORITHMS, "training_service"} & given.keys():
            if (section := given[name]) is not None:
                given[name] = {key: getattr(section, key) for key in section.model_fields_set}
        return cls(**given)

    def json(self) -> JsonObject:
        """Return the fields that are set by the names of NNI's JSON, and the search space of `search_space_file`."""
        fields = {name: value for name, value in super().json().items() if name == "tuner" or value != _UNSET}
        if self.search_space_file is not None:
            fields["searchSpace"] = read_source(self.search_space_file).data
        return fields

    def plain(self, named: Callable[[str], str] = str) -> JsonObject:
        """Return the fields that are set; with one in NNI's spelling, NNI's defaults apply."""
        fields = super().plain(named)
        return {"experimentType": fields.pop(named("experiment_type"), "hpo"), **fields}

    def validate(self) -> None:
        """Raise `ConfigError` with all problems."""
        OwnConfig.from_dict(self.plain())


_SERVICES: Mapping[str, type[ConfigBase]] = {"local": LocalConfig, "ray": RayConfig}


def _service(platform: str) -> ConfigBase:
    return _SERVICES.get(platform, ConfigBase)(platform=platform)


def _section(name: str, value: Any) -> Any:
    """Return the section that a mapping describes, and any other value as it is."""
    if not isinstance(value, dict):
        return value
    if name in _ALGORITHMS:
        return AlgorithmConfig(**value)
    if name == "training_service":
        return _SERVICES.get(str(value.get("platform")), ConfigBase)(**value)
    return value
