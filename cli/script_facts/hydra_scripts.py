"""Scripts with configs of Hydra or OmegaConf, whose files are read: a trial overrides values with `name=value`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from .class_scripts import Style, options_of
from .script_options import CommandLine, ScriptOption
from .script_syntax import Script, called_name, keyword

# Trials that start in the same second would share the folder that Hydra names after the time.
_RUN_DIR_OVERRIDE = 'hydra.run.dir="$PITCHPIPE_OUTPUT_DIR"'
_PACKAGE = re.compile(r"^# *@package +(\S+)", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z][\w-]*")
_DEEPEST, _MOST_FILES = 8, 200


def hydra_options(script: Script) -> CommandLine | None:
    """Return what the config of a script with `@hydra.main` has; None if it cannot be found or read.

    >>> script = Script(ast.parse('''
    ... @dataclass
    ... class Config:
    ...     lr: float = 0.1
    ... ConfigStore.instance().store(name="config", node=Config)
    ... @hydra.main(config_name="config")
    ... def main(config): ...
    ... '''))
    >>> [option.passed for option in hydra_options(script).options]
    ['lr={lr}']
    """
    for function in script.functions:
        for decorator in function.decorator_list:
            if script.origin(decorator) == "hydra.main" and isinstance(decorator, ast.Call):
                options, is_complete = _of_config(script, decorator)
                return _command_line(options, is_complete, _RUN_DIR_OVERRIDE) if options else None
    return None


def omegaconf_options(script: Script) -> CommandLine | None:
    """Return what the file of a script has that merges `OmegaConf.load(...)` with `OmegaConf.from_cli()`.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "config.yml").write_text("model: {width: 8}")
    >>> text = "OmegaConf.merge(OmegaConf.load('config.yml'), OmegaConf.from_cli())"
    >>> [option.passed for option in omegaconf_options(Script(ast.parse(text), folder)).options]
    ['model.width={model.width}']
    """
    calls = {script.origin(call).removeprefix("omegaconf."): call for call in script.calls}
    load = calls.get("OmegaConf.load")
    if load is None or "OmegaConf.from_cli" not in calls or script.folder is None:
        return None
    name = script.value(keyword(load, "file_", 0))
    data = _read(script.folder / name) if isinstance(name, str) else {}
    options = [*_leaves(data, "")]
    return _command_line(options, is_complete=False) if options else None


def _command_line(options: list[ScriptOption], is_complete: bool, last: str = "") -> CommandLine:
    needs = [option.name for option in options if option.is_required]
    return CommandLine(options=options, last=last, needs=needs, is_complete=is_complete)


def _of_config(script: Script, decorator: ast.Call) -> tuple[list[ScriptOption], bool]:
    """Return the options of the main config, and whether all files that it names could be read."""
    name = script.value(keyword(decorator, "config_name", 1))
    path = script.value(keyword(decorator, "config_path", 0))
    if not isinstance(name, str):
        return [], False
    if (structured := _structured(script, name)) is not None:
        return structured, True
    if script.folder is None or (path is not None and not isinstance(path, str)):
        return [], False
    reader = _ConfigReader(script.folder / (path or "."))
    reader.read(name.removesuffix(".yaml"), "", 0)
    return [*reader.options.values()], reader.is_complete


def _structured(script: Script, name: str) -> list[ScriptOption] | None:
    """Return the fields of the class that the script stores as the config of this name."""
    for call in script.calls:
        if called_name(call) == "store" and script.value(keyword(call, "name", 0)) == name:
            node = keyword(call, "node", 1)
            found = script.definition(node.func if isinstance(node, ast.Call) else node)
            if found is not None:
                return [_without_dashes(option) for option in options_of(*found, Style())]
    return None


def _without_dashes(option: ScriptOption) -> ScriptOption:
    """Return an option as an override of Hydra; `???` is a value that the command line has to give.

    >>> override = _without_dashes(ScriptOption(name="lr", default="???", low=0.0, high=1.0))
    >>> override.dashes, override.is_required, override.high
    ('', True, 1.0)
    """
    is_required = option.is_required or option.default == "???"
    return replace(option, dashes="", is_required=is_required)


class _ConfigReader:
    """Composes a config as Hydra does: what its defaults list names comes before it, or where `_self_` is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.options: dict[str, ScriptOption] = {}
        self.is_complete = True
        self.files_left = _MOST_FILES

    def read(self, name: str, package: str, depth: int) -> None:
        """Read a file, and what its defaults list names, into a package such as `model`."""
        path = self.folder / f"{name}.yaml"
        self.files_left -= 1
        data = _read(path) if depth <= _DEEPEST and self.files_left >= 0 else {}
        if not data:
            self.is_complete = False
            return
        package = _package(path, package)
        defaults = data.pop("defaults", [])
        later: list[Any] = []
        if isinstance(defaults, list) and "_self_" in defaults:
            later = defaults[defaults.index("_self_") + 1 :]
            defaults = defaults[: defaults.index("_self_")]
        self._read_all(defaults, name, package, depth)
        self.options |= {option.name: option for option in _leaves(data, package)}
        self._read_all(later, name, package, depth)

    def _read_all(self, defaults: Any, name: str, package: str, depth: int) -> None:
        """Read the files that a defaults list names: `model: small` is model/small.yaml, in the package `model`."""
        inside = name.rpartition("/")[0]
        for item in defaults if isinstance(defaults, list) else []:
            if isinstance(item, str):
                self.read(_joined("/", inside, item), package, depth + 1)
                continue
            for group, choice in item.items() if isinstance(item, dict) else ():
                if group.startswith("override ") or group.lstrip("/").startswith("hydra/") or choice is None:
                    continue
                if not isinstance(choice, str) or "${" in choice:
                    self.is_complete = False
                    continue
                place, _, renamed = group.removeprefix("optional ").partition("@")
                folder = place.lstrip("/") if place.startswith("/") else _joined("/", inside, place)
                inner = renamed or place.lstrip("/").replace("/", ".")
                self.read(f"{folder}/{choice.removesuffix('.yaml')}", _joined(".", package, inner), depth + 1)


def _package(path: Path, package: str) -> str:
    """Return the package that the first lines of a file name, in place of that of its folder."""
    found = _PACKAGE.search(path.read_text(encoding="utf-8", errors="replace")[:1000])
    if found is None:
        return package
    return "" if found[1] == "_global_" else package if found[1] == "_group_" else found[1]


def _joined(mark: str, *parts: str) -> str:
    return mark.join(filter(None, parts))


def _read(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file; empty if there is none."""
    from ...config import ConfigError, read_source

    try:
        data = read_source(path).data
    except ConfigError:
        return {}
    return dict(data) if isinstance(data, dict) else {}


def _leaves(data: Mapping[str, Any], package: str) -> Iterator[ScriptOption]:
    """Yield the values in a config by their paths; Hydra's own, lists and what begins with `_` are not parameters."""
    for key, value in data.items():
        name = _joined(".", package, key)
        if name == "hydra" or not _NAME.fullmatch(key):
            continue
        if isinstance(value, dict):
            yield from _leaves(value, name)
        elif not isinstance(value, list):
            yield ScriptOption(name=name, default=value, dashes="", is_required=value == "???")
