"""What `init` proposes to tune in a script, and what stays at the script's defaults."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..search_space import check
from .failures import Failure
from .script_facts import ScriptFacts, guessed_spec

__all__ = ["EXAMPLE", "Proposal", "is_budget", "parameter_of", "proposed"]

EXAMPLE = "lr=loguniform:1e-5:1e-1"
_BUDGETS = [
    "epochs",
    "epoch",
    "num_epochs",
    "n_epochs",
    "max_epochs",
    "num_train_epochs",
    "n_estimators",
    "num_boost_round",
    "max_iter",
    "max_iterations",
    "n_iter",
    "num_iterations",
    "iterations",
    "steps",
    "num_steps",
    "max_steps",
    "train_steps",
    "num_rounds",
    "rounds",
]
_NEVER = [
    "seed",
    "random_seed",
    "random_state",
    "num_workers",
    "workers",
    "n_jobs",
    "num_threads",
    "threads",
    "nthread",
    "nthreads",
    "n_threads",
    "num_classes",
    "num_class",
    "n_classes",
    "objective",
    "eval_metric",
    "metric",
    "device",
    "port",
    "log_interval",
    "log_every",
    "print_every",
    "save_every",
    "verbose",
    "verbosity",
    "rank",
    "local_rank",
    "world_size",
    "gpu",
    "gpu_id",
    "device_id",
]


@dataclass(slots=True, kw_only=True)
class Proposal:
    """What to tune: `parameters` maps names to specs such as `uniform:0:1`, empty if unknown.

    `kept` has the values of what is not tuned although it could be, `known` all defaults of the script.
    """

    parameters: dict[str, str] = field(default_factory=dict)
    kept: dict[str, Any] = field(default_factory=dict)
    known: dict[str, Any] = field(default_factory=dict)

    def spelled(self, name: str) -> str:
        """Return a name as the script spells it: `batch_size` may mean `batch-size`."""
        same = [one for one in (*self.parameters, *self.kept, *self.known) if _plain(one) == _plain(name)]
        return same[0] if same else name


def proposed(
    facts: ScriptFacts | None,
    specs: Sequence[str],
    fixed: Sequence[str] = (),
    without: Sequence[str] = (),
    command: str | None = None,
) -> Proposal:
    """Return the parameters of a script, changed by `--param`, `--fix` and `--without`; raise `Failure` if invalid.

    A given `command` may pass parameters to a program other than the script: its parser is not asked then.
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
    if facts is not None and not command and (unknown := [n for n in proposal.parameters if facts.lacks(n)]):
        names = ", ".join(facts.flags) or "none"
        raise Failure(f"the script has no option for {', '.join(unknown)}; it has: {names}")
    return proposal


def is_budget(name: str) -> bool:
    """Return whether a parameter says how long to train: of two values the larger wins by definition.

    >>> is_budget("max-iter"), is_budget("momentum")
    (True, False)
    """
    return _plain(name) in _BUDGETS


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
    """Return the parameters that a script looks up; without any, the options of its command line."""
    proposal = Proposal()
    looked_up = {
        name: facts.flags.get(name) if default is None else default
        for name, default in facts.parameters.items()
        if not isinstance(default, dict | list | tuple)  # a spec cannot express it
    }
    for name, default in (looked_up or facts.flags).items():
        choices = facts.choices.get(name, ())
        if default is not None:
            proposal.known[name] = default
        # `{args}` cannot tell the script that a value is false.
        is_mute = facts.takes_options and isinstance(default, bool) and name not in facts.switches
        if default is not None and (is_budget(name) or _plain(name) in _NEVER or is_mute):
            proposal.kept[name] = default
        elif looked_up or (name not in facts.switches and _is_tunable(default, choices)):
            proposal.parameters[name] = guessed_spec(default, choices, name)
    return proposal


def _is_tunable(default: Any, choices: Iterable[Any]) -> bool:
    """Return whether an option of a command line has a range; most texts without choices are paths."""
    return bool(choices or (not isinstance(default, str) and guessed_spec(default)))


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


def _plain(name: str) -> str:
    return name.replace("-", "_").lower()


def _value(word: str) -> Any:
    try:
        return json.loads(word)
    except ValueError:
        try:
            return float(word)  # 1e-5 and .5, which are not JSON
        except ValueError:
            return word
