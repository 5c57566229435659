"""A plug-in, the tuner or the assessor of an experiment: how it is chosen, loaded and called.

Errors of loading are problems whose paths point into the configuration; errors inside a call are the plug-in's fault.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from ..assessors import REGISTRY as ASSESSORS
from ..plugins import Registered, Registry, UnknownAlgorithm, check, registered, signature_problems, taken
from ..protocol import Config, Direction, foreign, loading
from ..search_space import Problem
from ..tuners import REGISTRY as TUNERS
from .errors import PluginFailed, PluginNotLoaded, PluginReturnedInvalid

_PACKAGE = __name__.partition(".")[0]
_REGISTRIES: Mapping[str, Registry[Any]] = {"tuner": TUNERS, "assessor": ASSESSORS}
_DIRECTIONS = ("minimize", "maximize")
_SEARCHES_ARCHITECTURES = ("ppo", "ppotuner", "regularizedevolutiontuner", "networkmorphism")


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginChoice:
    """The choice of a "tuner" or an "assessor", its `role`: an algorithm by `name`, or a class in the user's folder."""

    role: str
    name: str
    class_name: str
    code_directory: str
    class_args: Config

    @classmethod
    def of(cls, role: str, section: Config) -> PluginChoice:
        """Return what a section of a configuration chooses; an empty one chooses nothing."""
        return cls(
            role=role,
            name=str(section.get("name") or ""),
            class_name=str(section.get("className") or ""),
            code_directory=str(section.get("codeDirectory") or ""),
            class_args=section.get("classArgs") or {},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedArguments:
    """What the experiment gives to each class whose signature has it, unless the configuration gives another value.

    The direction replaces that of a registered name. If it is the class's own default it is left out: the class may
    write its default in another form, such as an enum.
    """

    optimize_mode: Direction | None = None
    seed: int | None = None
    all_checkpoint_dir: str | None = None


def load_plugin(
    choice: PluginChoice,
    shared: SharedArguments,
    objectives: Sequence[Config] = (),
    priors: Config | None = None,
) -> Any:
    """Return a new tuner or assessor; raise `PluginNotLoaded` if there is none.

    `objectives` and `priors` are those of the configuration, for a plug-in that takes them.

    >>> load_plugin(PluginChoice.of("tuner", {"name": "Random"}), SharedArguments(seed=1)).__class__.__name__
    'RandomTuner'
    """
    cls = find_class(choice)
    accepted, class_args = _accepted(cls, shared), _class_args(choice)
    if "optimize_mode" in accepted and "optimize_mode" not in choice.class_args:
        class_args = _without_direction(class_args)
    if accepted.get("optimize_mode") == own_direction(cls):
        accepted = _without_direction(accepted)
    plugin = _construct(choice.role, cls, {**accepted, **class_args})
    if objectives and hasattr(plugin, "update_objectives"):
        plugin.update_objectives(list(objectives))
    if priors and hasattr(plugin, "update_priors"):
        plugin.update_priors(priors)
    return plugin


def find_class(choice: PluginChoice) -> type:
    """Return the class that is chosen; raise `PluginNotLoaded`."""
    role = choice.role
    if choice.name:
        own = _registered(choice)
        return _named(role, choice.name) if own is None else _class(own, own.class_name)
    if not choice.class_name:
        raise _problem((role,), "has neither a name nor a class name")
    return _custom(role, choice.class_name, choice.code_directory)


def _custom(role: str, class_name: str, code_directory: str) -> type:
    module_name, _, attribute = class_name.rpartition(".")
    if not module_name:
        hint = f"write it as file.{class_name}, with the name of the file that holds it"
        raise _problem((role, "className"), f"{class_name!r} has no module", hint)
    return _attribute(role, _module(role, module_name, code_directory), attribute)


def _registered(choice: PluginChoice) -> Registered | None:
    """Return what the user registered under a name; a built-in algorithm comes first."""
    role, name = choice.role, choice.name
    if not name or name in _REGISTRIES[role]:
        return None
    try:
        algorithms = registered()
    except ValueError as error:
        raise _problem((role, "name"), str(error)) from error
    return next((own for own in algorithms if (own.kind, own.name.lower()) == (role, name.lower())), None)


def _class(own: Registered, class_name: str) -> type:
    """Return a class of a registered algorithm; raise `PluginNotLoaded` with the name that a config has."""
    try:
        return _custom(own.kind, class_name, own.code_directory or "")
    except PluginNotLoaded as error:
        why = f"{class_name}, the class of {own.name}, cannot be loaded: {error.problems[0].message}"
        hint = f"nnictl algo show {own.name} says where it should be"
        raise _problem((own.kind, "name"), why, hint) from error


def _class_args(choice: PluginChoice) -> Config:
    """Return the chosen arguments, over those of a registered name, which may have a check of its own."""
    role, given, own = choice.role, choice.class_args, _registered(choice)
    if own is None:
        return given
    if given and not own.accepts_class_args:
        raise _problem((role, "classArgs"), f"{own.name} takes no arguments")
    if own.validator:
        validator = _class(own, own.validator)()
        try:
            validator.validate_class_args(**given)
        except Exception as error:
            raise _problem((role, "classArgs"), f"{own.name} refuses them: {error}") from error
    return {**own.class_args, **given}


def _accepted(cls: type, shared: SharedArguments) -> Config:
    parameters = inspect.signature(cls).parameters
    return {name: value for name, value in asdict(shared).items() if value is not None and name in parameters}


def _without_direction(class_args: Config) -> Config:
    return {name: value for name, value in class_args.items() if name != "optimize_mode"}


def _construct(role: str, cls: type, class_args: Config) -> Any:
    """Return an instance of the class; raise `PluginNotLoaded`, naming the arguments at fault."""
    problems, cause = signature_problems(cls, class_args), None
    if not problems:
        try:
            return cls(**class_args)
        except Exception as error:  # noqa: BLE001 - a constructor may raise anything
            problems, cause = _refusal(cls, class_args, error), error
    raise PluginNotLoaded(
        [Problem((role, "classArgs", *p.path), p.message, p.hint) for p in problems]
    ) from cause


def _refusal(cls: type, class_args: Config, error: Exception) -> list[Problem]:
    """Return the problems behind a constructor's error, with the argument at fault if it is known."""
    try:
        problems = check(cls, class_args)
    except Exception:  # noqa: BLE001 - the same failure again: `error` is reported
        problems = []
    return problems or [Problem((), f"{cls.__name__} cannot be made: {error!r}")]


def plugin_direction(choice: PluginChoice) -> str | None:
    """Return the direction of a plug-in that is given none: that of its registered name, or of its class."""
    own = _registered(choice)
    direction = None if own is None else own.class_args.get("optimize_mode")
    return direction if direction in _DIRECTIONS else own_direction(find_class(choice))


def own_direction(cls: type) -> str | None:
    """Return the default direction of a class: the default of its `optimize_mode`.

    >>> own_direction(TUNERS.find("GP")), own_direction(TUNERS.find("Random"))
    ('maximize', None)
    """
    parameter = inspect.signature(cls).parameters.get("optimize_mode")
    default = None if parameter is None else parameter.default
    value = default.value if isinstance(default, Enum) else default
    return value if value in _DIRECTIONS else None


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


def _module(role: str, name: str, code_directory: str) -> ModuleType:
    folder = Path(code_directory or ".").resolve()
    if code_directory and not folder.is_dir():
        raise _problem((role, "codeDirectory"), f"there is no folder {folder}")
    _make_importable(folder)
    for alias in foreign("import alias"):
        alias.activate()
    try:
        with loading("plug-in"):
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


class Plugin:
    """A tuner or an assessor with its role; `call` runs a method of it.

    >>> Plugin("tuner", object()).call("trial_end", 0, True)
    Traceback (most recent call last):
    pitchpipe.dispatcher.errors.PluginFailed: trial_end of the tuner raised AttributeError: 'object' object has no attribute 'trial_end'
    """  # noqa: E501

    def __init__(self, role: str, instance: Any) -> None:
        self.role, self.instance = role, instance

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Return what the method returns; raise `PluginFailed` from anything that it raises, even exit().

        A child process that the method forks ends here when it returns: it would continue as a second dispatcher.
        """
        process = os.getpid()
        try:
            bound = getattr(self.instance, method)
            returned = bound(*args, **taken(bound, kwargs))
            if os.getpid() != process:
                os._exit(0)
            return returned
        except BaseException as error:
            if os.getpid() != process:
                _end_child(error)
            module = sys.modules.get(type(self.instance).__module__)
            raise PluginFailed(self.role, method, error, getattr(module, "__file__", None) or "") from error

    def has(self, method: str) -> bool:
        """Return whether the plug-in has this method."""
        return callable(getattr(self.instance, method, None))

    def is_users(self, method: str) -> bool:
        """Return whether a method was written outside Pitchpipe."""
        module = getattr(getattr(self.instance, method, None), "__module__", None) or ""
        return not module.startswith(f"{_PACKAGE}.")

    def invalid(self, method: str, value: Any, why: str) -> PluginReturnedInvalid:
        """Return the error for a value that the method must not return."""
        return PluginReturnedInvalid(self.role, method, value, why)


def _end_child(error: BaseException) -> NoReturn:
    """End this process with the exit code that a program of its own would have."""
    code = 1
    try:
        if isinstance(error, SystemExit) and isinstance(error.code, int | None):
            code = error.code or 0
        else:
            traceback.print_exception(error)
    finally:  # a signal may interrupt what it prints; it would serve the manager as well
        os._exit(code & 0xFF)
