"""The draft of an experiment.yml: proposed from a script, completed by the user, checked, written with comments."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from ...config import PLATFORMS, ExperimentConfig, with_plugins_checked
from ...search_space import SearchSpace
from ..failures import Failure
from ..proposing import is_budget, parameter_of

__all__ = ["Draft", "asked"]

_CONSTANTS = ("true", "false", "null")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The content of an experiment.yml; `parameters` maps names to specs such as `uniform:0:1`, empty if unknown.

    `kept` are the values of what is not tuned, `known` the defaults of the script.
    """

    name: str
    command: str
    parameters: Mapping[str, str]
    kept: Mapping[str, Any] = field(default_factory=dict)
    known: Mapping[str, Any] = field(default_factory=dict)
    metric: str = "default"
    maximize: bool | None = None
    trials: int | None = None
    concurrency: int | None = None
    platform: str | None = None
    tuner: str | None = None
    assessor: str | None = None

    def checked_text(self, base: Path) -> str:
        """Return the text of the file if the config is valid; raise `Failure` or `ConfigError` with all problems."""
        unknown = [name for name, spec in self.parameters.items() if not spec]
        if unknown:
            raise Failure(
                f"unknown ranges: {', '.join(unknown)}; add {' '.join(f'--param {n}=...' for n in unknown)}"
            )
        space = self._space()
        config = ExperimentConfig.from_dict(self._config(space), base)
        if self.tuner or self.assessor:
            with_plugins_checked(config)
        return self._text(space)

    def why_no_defaults(self) -> str:
        """Say why the defaults of the script are no trial of their own; return an empty text if they are one."""
        if not self.known:
            return ""
        missing = [name for name in self.parameters if name not in self._defaults()]
        if missing:
            return f"the script has no default for {', '.join(missing)}"
        problems = SearchSpace.parse(self._space()).validate(self._defaults())
        return "; ".join(f"{problem.path[0]}: {problem.message}" for problem in problems)

    def _defaults(self) -> dict[str, Any]:
        """Return the script's defaults of what is tuned; a parameter with a single option has no other."""
        single = {
            name: one["_value"][0]
            for name, one in self._space().items()
            if one["_type"] == "choice" and len(one["_value"]) == 1
        }
        known = {**self.known, **single}
        return {name: known[name] for name in self.parameters if name in known}

    def _space(self) -> dict[str, Any]:
        return {name: parameter_of(name, spec) for name, spec in self.parameters.items()}

    def _config(self, space: dict[str, Any]) -> dict[str, Any]:
        config: dict[str, Any] = {
            "experiment_name": self.name,
            "search_space": space,
            "trial_command": self.command,
            "trial_code_directory": ".",
            "max_trial_number": self.trials or 100,
            "trial_concurrency": self.concurrency or 2,
            "objectives": [{"name": self.metric, "direction": "maximize" if self.maximize else "minimize"}],
            "training_service": {"platform": self.platform or "local"},
        }
        if self.tuner:
            config["tuner"] = {"name": self.tuner}
        return config | ({"assessor": {"name": self.assessor}} if self.assessor else {})

    def _text(self, space: dict[str, Any]) -> str:
        config = self._config(space)
        lines = [f"experiment_name: {_text(self.name)}", "search_space:"]
        lines += [f"  {_key(name)}: {_flow(parameter)}" for name, parameter in space.items()]
        lines += [f"  # {_comment(name, value)}" for name, value in self.kept.items()]
        if self.known and not self.why_no_defaults():
            lines += [f"defaults: {_flow(self._defaults())}   # trial 0"]
        lines += [
            f"trial_command: {json.dumps(self.command)}",
            "trial_code_directory: .            # relative to this file",
            f"max_trial_number: {config['max_trial_number']}",
            "# max_experiment_duration: 2h      # whichever comes first",
            f"trial_concurrency: {config['trial_concurrency']}",
            "objectives:",
            f"  - {_flow(config['objectives'][0])}",
        ]
        for section in ("tuner", "assessor"):
            if section in config:
                lines.append(f"{section}: {_flow(config[section])}")
        lines.append(f"training_service: {_flow(config['training_service'])}")
        return "\n".join(lines) + "\n"


def asked(draft: Draft) -> Draft:
    """Return the draft, completed by the user's input; the Return key accepts a proposal."""
    click.echo("types: uniform:LOW:HIGH  loguniform:LOW:HIGH  randint:LOW:HIGH  choice:A,B,C")
    click.echo("Return accepts a proposal, - leaves a parameter out")
    parameters: dict[str, str] = {}
    for name, spec in draft.parameters.items():
        typed = _ask_spec(name, spec)
        if typed != "-":
            parameters[name] = typed
    while not parameters or click.confirm("another parameter?", default=False):
        name = click.prompt("name")
        parameters[name] = _ask_spec(name, "")
    draft = replace(draft, parameters=parameters)
    if draft.maximize is None:
        better = click.prompt("is a higher or a lower result better?", type=click.Choice(["higher", "lower"]))
        draft = replace(draft, maximize=better == "higher")
    if draft.trials is None:
        draft = replace(
            draft, trials=click.prompt("how many trials", default=100, type=click.IntRange(min=1))
        )
    if draft.concurrency is None:
        many = click.prompt("how many at a time", default=2, type=click.IntRange(min=1))
        draft = replace(draft, concurrency=many)
    if draft.platform is None:
        where = click.prompt("where", default="local", type=click.Choice(list(PLATFORMS)))
        draft = replace(draft, platform=where)
    return draft


def _ask_spec(name: str, proposal: str) -> str:
    while True:
        spec = click.prompt(name, default=proposal or None)
        if spec == "-":
            return spec
        try:
            parameter_of(name, spec)
        except Failure as failure:
            click.echo(failure.message)
            continue
        return spec


def _key(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else json.dumps(name)


def _flow(value: dict[str, Any]) -> str:
    """Write a dict on one line of YAML: JSON values are YAML, and plain names need no quotes.

    >>> _flow({"_type": "choice", "_value": ["relu", 2]})
    '{_type: choice, _value: ["relu", 2]}'
    """

    return "{" + ", ".join(f"{_key(key)}: {_text(item)}" for key, item in value.items()) + "}"


def _text(item: Any) -> str:
    is_plain = isinstance(item, str) and _PLAIN.fullmatch(item) and item.lower() not in _CONSTANTS
    return item if is_plain else json.dumps(item)


def _comment(name: str, value: Any) -> str:
    why = " (a larger budget always wins)" if is_budget(name) else ""
    return f"{name} is not tuned{why}: it stays {json.dumps(value)}"
