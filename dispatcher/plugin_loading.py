"""Loads the tuner or the assessor of a configuration: by name, or by class from the user's folder.

Errors are problems whose paths point into the configuration.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

from ..assessors import REGISTRY as ASSESSORS
from ..plugins import Registered, UnknownAlgorithm, check, registered, signature_problems
from ..protocol import Config, foreign
from ..search_space import Problem
from ..tuners import REGISTRY as TUNERS
from .errors import PluginNotLoaded

_REGISTRIES: dict[str, Any] = {"tuner": TUNERS, "assessor": ASSESSORS}
_DIRECTIONS = ("minimize", "maximize")
_SEARCHES_ARCHITECTURES = ("ppo", "ppotuner", "regularizedevolutiontuner", "networkmorphism")


def load_plugin(
    role: str,
    config: Config,
    injected: Mapping[str, Any],
    objectives: Sequence[Config] = (),
    priors: Mapping[str, Mapping[str, Any]] | None = None,
) -> Any:
    """Return a new "tuner" or "assessor"; raise `PluginNotLoaded` if there is none.

    `injected` are arguments for a class whose signature has them, unless the configuration gives them; the direction
    among them replaces that of a registered name. A direction that is the class's own default is left out: the class
    may write its default in another form, such as an enum.
    `objectives` and `priors` are those of the configuration, for a plug-in that takes them.

    >>> load_plugin("tuner", {"name": "Random"}, {"seed": 1, "optimize_mode": "minimize"}).__class__.__name__
    'RandomTuner'
    """
    cls = find_class(role, config)
    accepted, given = _accepted(cls, injected), _class_args(role, config)
    if "optimize_mode" in accepted and "optimize_mode" not in (config.get("classArgs") or {}):
        given = {name: value for name, value in given.items() if name != "optimize_mode"}
    plugin = construct(role, cls, {**_without_default(cls, accepted), **given})
    if objectives and hasattr(plugin, "update_objectives"):
        plugin.update_objectives(list(objectives))
    if priors and hasattr(plugin, "update_priors"):
        plugin.update_priors(priors)
    return plugin


def find_class(role: str, config: Config) -> type:
    """Return the class that `name`, or `className` with `codeDirectory`, names; raise `PluginNotLoaded`."""
    if config.get("name"):
        own = _registered(role, str(config["name"]))
        return _named(role, str(config["name"])) if own is None else _class(role, own, own.class_name)
    class_name = config.get("className")
    if not class_name:
        raise _problem((role,), "has neither a name nor a class name")
    return _custom(role, str(class_name), config.get("codeDirectory"))


def _custom(role: str, class_name: str, code_directory: Any) -> type:
    module_name, _, attribute = class_name.rpartition(".")
    if not module_name:
        hint = f"write it as file.{class_name}, with the name of the file that holds it"
        raise _problem((role, "className"), f"{class_name!r} has no module", hint)
    return _attribute(role, _module(role, module_name, code_directory), attribute)


def _registered(role: str, name: str) -> Registered | None:
    """Return what the user registered under a name; a built-in algorithm comes first."""
    if name in _REGISTRIES[role]:
        return None
    try:
        algorithms = [algorithm for algorithm in registered() if algorithm.kind == role]
    except ValueError as error:
        raise _problem((role, "name"), str(error)) from error
    return next((algorithm for algorithm in algorithms if algorithm.name.lower() == name.lower()), None)


def _class(role: str, own: Registered, class_name: str) -> type:
    """Return a class of a registered algorithm; raise `PluginNotLoaded` with the name that a config has."""
    try:
        return _custom(role, class_name, own.code_directory)
    except PluginNotLoaded as error:
        why = f"{class_name}, the class of {own.name}, cannot be loaded: {error.problems[0].message}"
        raise _problem((role, "name"), why, f"nnictl algo show {own.name} says where it should be") from error


def _class_args(role: str, config: Config) -> Mapping[str, Any]:
    """Return the arguments in a config, over those of a registered name, which may have a check of its own."""
    given = config.get("classArgs") or {}
    own = _registered(role, str(config["name"])) if config.get("name") else None
    if own is None:
        return given
    if given and not own.accepts_class_args:
        raise _problem((role, "classArgs"), f"{own.name} takes no arguments")
    if own.validator:
        validator = _class(role, own, own.validator)()
        try:
            validator.validate_class_args(**given)
        except Exception as error:
            raise _problem((role, "classArgs"), f"{own.name} refuses them: {error}") from error
    return {**own.class_args, **given}


def construct(role: str, cls: type, class_args: Config) -> Any:
    """Return an instance of the class; raise `PluginNotLoaded`, naming the arguments at fault."""
    problems = signature_problems(cls, class_args)
    if problems:
        raise PluginNotLoaded(_below(role, problems))
    try:
        return cls(**class_args)
    except Exception as error:
        raise PluginNotLoaded(_refusal(role, cls, class_args, error)) from error


def _refusal(role: str, cls: type, class_args: Config, error: Exception) -> list[Problem]:
    """Return the problems behind a constructor's error, with the argument at fault if it is known."""
    try:
        problems = check(cls, class_args)
    except Exception:  # noqa: BLE001 - the same failure again: `error` is reported
        problems = []
    return _below(role, problems or [Problem((), f"{cls.__name__} cannot be made: {error!r}")])


def _below(role: str, problems: list[Problem]) -> list[Problem]:
    return [Problem((role, "classArgs", *p.path), p.message, p.hint) for p in problems]


def plugin_direction(role: str, config: Config) -> str | None:
    """Return the direction of a tuner or an assessor that is given none: that of its registered name, or its class."""
    own = _registered(role, str(config["name"])) if config.get("name") else None
    direction = None if own is None else own.class_args.get("optimize_mode")
    return direction if direction in _DIRECTIONS else own_direction(find_class(role, config))


def own_direction(cls: type) -> str | None:
    """Return the default direction of a class: the default of its `optimize_mode`.

    >>> own_direction(TUNERS.find("GP")), own_direction(TUNERS.find("Random"))
    ('maximize', None)
    """
    parameter = inspect.signature(cls).parameters.get("optimize_mode")
    default = None if parameter is None else parameter.default
    value = default.value if isinstance(default, Enum) else default
    return value if value in _DIRECTIONS else None


def _accepted(cls: type, injected: Mapping[str, Any]) -> dict[str, Any]:
    parameters = inspect.signature(cls).parameters
    return {key: value for key, value in injected.items() if value is not None and key in parameters}


def _without_default(cls: type, accepted: Mapping[str, Any]) -> dict[str, Any]:
    is_default = accepted.get("optimize_mode") == own_direction(cls)
    return {key: value for key, value in accepted.items() if key != "optimize_mode" or not is_default}


def _named(role: str, name: str) -> type:
    try:
        return _REGISTRIES[role].find(name)
    except UnknownAlgorithm as error:
        if name.lower() in _SEARCHES_ARCHITECTURES:
            what = f"{name} searches for architectures, which Pitchpipe does not"
            raise _problem(
                (role, "name"), what, "for hyper-parameters there are Auto, TPE, Evolution"
            ) from error
        known = [*error.known, *(algorithm.name for algorithm in registered() if algorithm.kind == role)]
        raise _problem((role, "name"), str(UnknownAlgorithm(role, name, known))) from error


def _module(role: str, name: str, code_directory: Any) -> ModuleType:
    folder = Path(code_directory or ".").resolve()
    if code_directory and not folder.is_dir():
        raise _problem((role, "codeDirectory"), f"there is no folder {folder}")
    _make_importable(folder)
    for alias in foreign("import alias"):
        alias.activate()
    try:
        return _from_folder(role, name, folder) or importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and name.startswith(error.name):
            raise _problem((role, "className"), f"there is no module {name!r} in {folder}") from error
        missing = f"{name} needs the module {error.name!r}, which is missing"
        is_nni = (error.name or "").partition(".")[0] == "nni"
        hint = "docs/reference/nni.md lists the names of NNI that have a counterpart" if is_nni else ""
        raise _problem((role, "className"), missing, hint) from error
    except Exception as error:
        raise _problem((role, "className"), f"{name} cannot be imported: {error!r}") from error


def _make_importable(folder: Path) -> None:
    """Put the folder after the standard library, which it must not hide, and before installed packages."""
    if str(folder) in sys.path:
        return
    installed = (i for i, entry in enumerate(sys.path) if entry.endswith(("site-packages", "dist-packages")))
    sys.path.insert(next(installed, len(sys.path)), str(folder))


def _from_folder(role: str, name: str, folder: Path) -> ModuleType | None:
    """Return the module from its file in the folder, even if another module has its name; None without such a file."""
    stem = folder.joinpath(*name.split("."))
    for file in (stem.with_name(stem.name + ".py"), stem / "__init__.py"):
        if file.is_file():
            return _from_file(role, name, file)
    return None


def _from_file(role: str, name: str, file: Path) -> ModuleType:
    """Return the module in a file, under a name of its own if another module has the plain one.

    A tuner and an assessor in one file share it.
    """
    other_names = {kind: f"{kind}_plugin_{name.replace('.', '_')}" for kind in _REGISTRIES}
    for loaded in (name, *other_names.values()):
        module = sys.modules.get(loaded)
        if module is not None and Path(getattr(module, "__file__", None) or "") == file:
            return module
    if "." in name and not _is_taken(name.partition(".")[0]):
        return importlib.import_module(name)  # in a package: relative imports need its parents
    return _execute(name if "." not in name and not _is_taken(name) else other_names[role], file)


def _is_taken(name: str) -> bool:
    return name in sys.modules or name in sys.stdlib_module_names


def _execute(name: str, file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _attribute(role: str, module: ModuleType, name: str) -> type:
    cls = getattr(module, name, None)
    if isinstance(cls, type):
        return cls
    classes = [key for key, value in vars(module).items() if isinstance(value, type)]
    nearest = difflib.get_close_matches(name, classes, 1)
    hint = f"did you mean {nearest[0]!r}?" if nearest else ""
    raise _problem((role, "className"), f"{module.__name__} has no class {name!r}", hint)


def _problem(path: tuple[str, ...], message: str, hint: str = "") -> PluginNotLoaded:
    return PluginNotLoaded([Problem(path, message, hint)])
