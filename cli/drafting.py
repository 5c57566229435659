"""The draft of an experiment.yml: proposed from a script, completed by the user, checked, written with comments."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from ..config import PLATFORMS, ExperimentConfig, with_plugins_checked
from ..search_space import check
from .failures import Failure
from .script_facts import ScriptFacts, guessed_spec

__all__ = ["Draft", "asked", "parameter_of", "proposed_parameters"]

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EXAMPLE = "lr=loguniform:1e-5:1e-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The content of an experiment.yml; `parameters` maps names to specs such as `uniform:0:1`, empty if unknown."""

    command: str
    parameters: Mapping[str, str]
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
        if not self.parameters:
            raise Failure(f"no parameters were found: add some, such as --param {_EXAMPLE}")
        space = {name: parameter_of(name, spec) for name, spec in self.parameters.items()}
        config = ExperimentConfig.from_dict(self._config(space), base)
        if self.tuner or self.assessor:
            with_plugins_checked(config)
        return self._text(space)

    def _config(self, space: dict[str, Any]) -> dict[str, Any]:
        config: dict[str, Any] = {
            "search_space": space,
            "trial_command": self.command,
            "trial_code_directory": ".",
            "max_trial_number": self.trials or 100,
            "trial_concurrency": self.concurrency or 2,
            "objectives": [{"name": "default", "direction": "maximize" if self.maximize else "minimize"}],
            "training_service": {"platform": self.platform or "local"},
        }
        if self.tuner:
            config["tuner"] = {"name": self.tuner}
        return config | ({"assessor": {"name": self.assessor}} if self.assessor else {})

    def _text(self, space: dict[str, Any]) -> str:
        config = self._config(space)
        lines = ["search_space:"]
        lines += [f"  {_key(name)}: {_flow(parameter)}" for name, parameter in space.items()]
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


def proposed_parameters(facts: ScriptFacts | None, specs: Sequence[str]) -> dict[str, str]:
    """Return the given parameters, or else those of the script; raise `Failure` for an invalid spec."""
    given: dict[str, str] = {}
    for spec in specs:
        name, equals, rest = spec.partition("=")
        if not equals or not name or not rest:
            raise Failure(f"--param {spec}: write it as {_EXAMPLE}")
        parameter_of(name, rest)
        given[name] = rest
    if facts is None:
        return given
    found = {
        name: guessed_spec(facts.flags.get(name) if default is None else default, facts.choices.get(name, ()))
        for name, default in facts.parameters.items()
        if not isinstance(default, dict | list | tuple)  # a spec cannot express it
    }
    if not found and not given:
        found = {
            name: guessed_spec(value, facts.choices.get(name, ())) for name, value in facts.flags.items()
        }
        found = {name: spec for name, spec in found.items() if spec}
    return found | given


def parameter_of(name: str, spec: str) -> dict[str, Any]:
    """Return the parameter that a spec means; raise `Failure` with what is wrong with it.

    >>> parameter_of("lr", "loguniform:1e-5:1e-1"), parameter_of("act", "choice:relu,tanh,2")
    ({'_type': 'loguniform', '_value': [1e-05, 0.1]}, {'_type': 'choice', '_value': ['relu', 'tanh', 2]})
    """
    kind, _, rest = spec.partition(":")
    words = rest.split("," if kind == "choice" else ":") if rest else []
    parameter = {"_type": kind, "_value": [_value(word.strip()) for word in words]}
    problems = check({name: parameter})
    if problems:
        first = problems[0]
        hint = f" ({first.hint})" if first.hint else ""
        raise Failure(f"--param {name}={spec}: {first.message}{hint}")
    return parameter


def _value(word: str) -> Any:
    try:
        return json.loads(word)
    except ValueError:
        try:
            return float(word)  # 1e-5 and .5, which are not JSON
        except ValueError:
            return word


def asked(draft: Draft) -> Draft:
    """Return the draft, completed by the user's input; the Return key accepts a proposal."""
    click.echo("types: uniform:LOW:HIGH  loguniform:LOW:HIGH  randint:LOW:HIGH  choice:A,B,C  (- omits one)")
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

    def text(item: Any) -> str:
        return item if isinstance(item, str) and _PLAIN.fullmatch(item) else json.dumps(item)

    return "{" + ", ".join(f"{_key(key)}: {text(item)}" for key, item in value.items()) + "}"
