"""The draft of an experiment.yml: proposed from a script, completed by the user, checked, written with comments."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from ...config import PLATFORMS, ExperimentConfig, with_plugins_checked
from ...protocol import JsonObject
from ...search_space import SearchSpace, check
from ...trial_agent import usable_bytes, usable_cpus
from ..failures import Failure
from ..script_facts import ScriptFacts, is_budget, is_setting

EXAMPLE = "lr=loguniform:1e-5:1e-1"
_MOST_AT_A_TIME = 8  # with more, the tuner proposes too many before it learns from the first
_MEMORY_OF_A_TRIAL = 2 * 2**30
_CONSTANTS = ("true", "false", "null")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Room:
    """How many trials fit at a time, and how many GPUs each of them has."""

    trials: int
    gpus: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigDraft:
    """The content of an experiment.yml; what is None was not decided yet.

    `guess` is what the name of the metric says about `maximize`, `room` what this machine has for trials.
    """

    name: str
    command: str
    proposal: Proposal
    metric: str = "default"
    maximize: bool | None = None
    guess: bool | None = None
    trials: int | None = None
    concurrency: int | None = None
    room: Room = Room(2)
    platform: str | None = None
    tuner: str | None = None
    assessor: str | None = None

    def checked_text(self, base: Path) -> str:
        """Return the text of the file if the config is valid; raise `Failure` or `ConfigError` with all problems."""
        unknown = [name for name, spec in self.proposal.parameters.items() if not spec]
        if unknown:
            raise Failure(
                f"unknown ranges: {', '.join(unknown)}; add {' '.join(f'--param {n}=...' for n in unknown)}"
            )
        space = self._space()
        config = ExperimentConfig.from_dict(self._config(space), base)
        if self.tuner or self.assessor:
            with_plugins_checked(config)
        return self._text(space)

    @property
    def room_there(self) -> Room:
        """What the platform has for trials, as far as that is known here."""
        return self.room if self.platform in (None, "local", "ray") else Room(2)

    def why_no_defaults(self) -> str:
        """Return why the script's defaults cannot be trial 0; empty if they can, or if there are none."""
        if not self.proposal.known:
            return ""
        missing = [name for name in self.proposal.parameters if name not in self._defaults()]
        if missing:
            return f"the script has no default for {', '.join(missing)}"
        problems = SearchSpace.parse(self._space()).validate(self._defaults())
        return "; ".join(f"{problem.path[0]}: {problem.message}" for problem in problems)

    def _defaults(self) -> dict[str, Any]:
        """Return the script's default of each tuned parameter; of a parameter with a single option, that option."""
        single = {
            name: parameter["_value"][0]
            for name, parameter in self._space().items()
            if parameter["_type"] == "choice" and len(parameter["_value"]) == 1
        }
        known = {**self.proposal.known, **single}
        return {name: known[name] for name in self.proposal.parameters if name in known}

    def _space(self) -> dict[str, Any]:
        return {name: parameter_of(name, spec) for name, spec in self.proposal.parameters.items()}

    def _config(self, space: JsonObject) -> dict[str, Any]:
        config: JsonObject = {
            "experiment_name": self.name,
            "search_space": space,
            "trial_command": self.command,
            "trial_code_directory": ".",
            "max_trial_number": self.trials or 100,
            "trial_concurrency": self.concurrency or self.room_there.trials,
            "objectives": [{"name": self.metric, "direction": "maximize" if self.maximize else "minimize"}],
            "training_service": {"platform": self.platform or "local"},
        }
        if self.room_there.gpus:
            config["trial_gpu_number"] = self.room_there.gpus
        if self.tuner:
            config["tuner"] = {"name": self.tuner}
        return config | ({"assessor": {"name": self.assessor}} if self.assessor else {})

    def _text(self, space: JsonObject) -> str:
        config = self._config(space)
        lines = [f"experiment_name: {_text(self.name)}", "search_space:"]
        lines += [f"  {_key(name)}: {_flow(parameter)}" for name, parameter in space.items()]
        lines += [f"  # {_comment(name, value)}" for name, value in self.proposal.kept.items()]
        gpus = (
            ["trial_gpu_number: 1                # each trial has one of its own"]
            if self.room_there.gpus
            else []
        )
        if self.proposal.known and not self.why_no_defaults():
            lines += [f"defaults: {_flow(self._defaults())}   # trial 0"]
        lines += [
            f"trial_command: {json.dumps(self.command)}",
            "trial_code_directory: .            # relative to this file",
            f"max_trial_number: {config['max_trial_number']}",
            "# max_experiment_duration: 2h      # whichever comes first",
            f"trial_concurrency: {config['trial_concurrency']}",
            *gpus,
            "objectives:",
            f"  - {_flow(config['objectives'][0])}",
        ]
        for section in ("tuner", "assessor"):
            if section in config:
                lines.append(f"{section}: {_flow(config[section])}")
        lines.append(f"training_service: {_flow(config['training_service'])}")
        return "\n".join(lines) + "\n"


@dataclass(slots=True, kw_only=True)
class Proposal:
    """What to tune: `parameters` maps names to specs such as `uniform:0:1`, empty if the range is unknown.

    `kept` has the values of what could be tuned and is not, `known` all defaults of the script.
    """

    parameters: dict[str, str] = field(default_factory=dict)
    kept: dict[str, Any] = field(default_factory=dict)
    known: dict[str, Any] = field(default_factory=dict)

    def spelled(self, name: str) -> str:
        """Return a name as the script spells it: `batch_size` may mean `batch-size`."""
        own_names = (*self.parameters, *self.kept, *self.known)
        return next((own_name for own_name in own_names if _folded(own_name) == _folded(name)), name)


def proposed(
    facts: ScriptFacts | None,
    specs: Sequence[str],
    fixed: Sequence[str] = (),
    without: Sequence[str] = (),
    command: str | None = None,
) -> Proposal:
    """Return the parameters of a script, changed by `--param`, `--fix` and `--without`; raise `Failure` if invalid.

    With a `command`, parameters may go to a program other than the script, so its parser is not consulted.
    """
    proposal = Proposal() if facts is None else _of_script(facts)
    _refuse_twice(proposal, {"--without": without, "--fix": fixed, "--param": specs})
    for name in without:
        _take_out(proposal, "--without", name)
    for text in fixed:
        _fix(proposal, text)
    for spec in specs:
        name, equals, rest = spec.partition("=")
        if not equals or not name or not rest:
            raise Failure(f"--param {spec}: write it as {EXAMPLE}")
        parameter_of(name, rest)
        name = proposal.spelled(name)
        proposal.kept.pop(name, None)
        proposal.parameters[name] = rest
    if (
        facts is not None
        and not command
        and (unknown := [n for n in proposal.parameters if facts.refuses(n)])
    ):
        names = ", ".join(facts.option_names) or "none"
        raise Failure(f"the script has no option for {', '.join(unknown)}; it has: {names}")
    return proposal


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


def _of_script(facts: ScriptFacts) -> Proposal:
    """Return the parameters that a script looks up, or else its constants or the options of its command line."""
    proposal = Proposal()
    for option in facts.candidates:
        if option.default is not None:
            is_word = bool(option.choices) and isinstance(option.default, str)
            proposal.known[option.name] = _value(option.default) if is_word else option.default
        # A command line need not say that something is off.
        is_on = facts.takes_options and option.is_boolean and option.default is True
        if option.default is not None and (is_setting(option.name) or is_on):
            proposal.kept[option.name] = option.default
        elif facts.proposes(option):
            proposal.parameters[option.name] = option.spec
    return proposal


def _refuse_twice(proposal: Proposal, options: Mapping[str, Sequence[str]]) -> None:
    """Raise `Failure` for a parameter that two options name."""
    named = dict[str, str]()
    for option, texts in options.items():
        for name in {proposal.spelled(text.partition("=")[0]) for text in texts}:
            if name in named:
                raise Failure(f"{option} {name}: {named[name]} names it, too: give one of them")
            named[name] = option


def _fix(proposal: Proposal, text: str) -> None:
    name, equals, value = text.partition("=")
    if equals:
        if not value or "," in value:
            raise Failure(f"--fix {text}: write it as NAME=VALUE, with a single value")
        default = proposal.known.get(proposal.spelled(name))
        if type(default) in (int, float) and type(_value(value)) not in (int, float):
            raise Failure(f"--fix {text}: the script's default is a number, {default}")
        proposal.parameters[proposal.spelled(name)] = f"choice:{value}"
        return
    name = _take_out(proposal, "--fix", name)
    if name not in proposal.known:
        raise Failure(f"--fix {name}: the script has no default for it: add a value, --fix {name}=...")
    proposal.kept[name] = proposal.known[name]


def _take_out(proposal: Proposal, option: str, name: str) -> str:
    name = proposal.spelled(name)
    if name not in proposal.parameters and name not in proposal.kept:
        names = ", ".join((*proposal.parameters, *proposal.kept)) or "none"
        raise Failure(f"{option} {name}: no such parameter was found; there are: {names}")
    proposal.parameters.pop(name, None)
    proposal.kept.pop(name, None)
    return name


def _folded(name: str) -> str:
    return name.replace("-", "_").lower()


def _value(word: str) -> Any:
    try:
        return json.loads(word)
    except ValueError:
        try:
            return float(word)  # 1e-5 and .5, which are not JSON
        except ValueError:
            return word


def room_here(*, for_gpus: bool) -> Room:
    """Return what this machine has for trials: a GPU for each, where scripts use them and some are free."""
    if for_gpus:
        from ...executors.local import local_totals
        from ...runner import Request

        if gpus := len(local_totals(Request(gpus=1)).devices):
            return Room(gpus, gpus=1)
    return Room(fitting(usable_cpus(), usable_bytes()))


def fitting(cpus: int, memory: int) -> int:
    """Return how many trials of a usual size fit a machine.

    >>> fitting(4, 16 * 2**30), fitting(16, 6 * 2**30), fitting(64, 2**40), fitting(1, 2**30)
    (4, 3, 8, 1)
    """
    return max(1, min(cpus, memory // _MEMORY_OF_A_TRIAL, _MOST_AT_A_TIME))


def ask_user(draft: ConfigDraft) -> ConfigDraft:
    """Return the draft, completed by the user's input; the Return key accepts a proposal."""
    click.echo("types: uniform:LOW:HIGH  loguniform:LOW:HIGH  randint:LOW:HIGH  choice:A,B,C")
    click.echo("Return accepts a proposal, - leaves a parameter out")
    parameters: dict[str, str] = {}
    for name, spec in draft.proposal.parameters.items():
        typed = _ask_spec(name, spec)
        if typed != "-":
            parameters[name] = typed
    while not parameters or click.confirm("another parameter?", default=False):
        name = click.prompt("name")
        parameters[name] = _ask_spec(name, "")
    draft = replace(draft, proposal=replace(draft.proposal, parameters=parameters))
    if draft.maximize is None:
        by_name = None if draft.guess is None else "higher" if draft.guess else "lower"
        choice = click.Choice(["higher", "lower"])
        better = click.prompt("is a higher or a lower result better?", default=by_name, type=choice)
        draft = replace(draft, maximize=better == "higher")
    if draft.trials is None:
        trials = click.prompt("how many trials", default=100, type=click.IntRange(min=1))
        draft = replace(draft, trials=trials)
    if draft.concurrency is None:
        concurrency = click.prompt(
            "how many at a time", default=draft.room.trials, type=click.IntRange(min=1)
        )
        draft = replace(draft, concurrency=concurrency)
    if draft.platform is None:
        platform = click.prompt("where", default="local", type=click.Choice(list(PLATFORMS)))
        draft = replace(draft, platform=platform)
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
