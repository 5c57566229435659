"""Facts about a training script, from its source without running it: parameters, defaults, reports."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_ASKS = frozenset({"get_next_parameter", "get_next_parameters"})
_FINAL = "report_final_result"
_INTERMEDIATE = "report_intermediate_result"
_CALLBACK = "PitchpipeCallback"
_WITHOUT_FINAL = ("lightgbm", "catboost")  # with their callbacks the script reports the final result
_FLAG = "--"
_SWITCHES = ("store_true", "store_false")
_HIGHER = frozenset(
    {"acc", "accuracy", "auc", "f1", "precision", "recall", "r2", "score"}
    | {"map", "bleu", "iou", "dice", "ndcg"}
)
_LOWER = frozenset(
    {"loss", "error", "err", "logloss", "mse", "rmse", "mae", "mape"} | {"perplexity", "brier", "wer", "cer"}
)
_SHARE = re.compile("momentum|dropout|beta")
_FRACTION = re.compile(
    "subsample|colsample|max_(samples|features)|validation_split|(^|_)(frac|fraction|ratio)(_|$)"
)
_RATE = re.compile("learning_?rate|(^|_)(lr|eta)(_|$)")


@dataclass(slots=True, kw_only=True)
class ScriptFacts:
    """What a script uses: `parameters` maps the names that it looks up to their defaults (None: no default).

    `flags` are its command-line options with their defaults, `choices` the values that argparse allows for them,
    `switches` the options without a value, and `required` what the command line must have. `metric` is the name of the
    result, if it has one, and `key` the first name in a reported dict.
    """

    parameters: dict[str, Any] = field(default_factory=dict)
    flags: dict[str, Any] = field(default_factory=dict)
    choices: dict[str, list[Any]] = field(default_factory=dict)
    switches: list[str] = field(default_factory=list)
    required: list[str] = field(default_factory=list)
    metric: str = ""
    key: str = ""
    imports_us: bool = False
    makes_parser: bool = False
    takes_unknown_options: bool = False
    asks: bool = False
    reports_final: bool = False
    reports_intermediate: bool = False

    @property
    def takes_options(self) -> bool:
        """Whether the script gets its parameters from its command line, and not by a call of Pitchpipe."""
        return bool(self.flags) and not self.parameters and not self.asks

    def refuses(self, name: str) -> bool:
        """Return whether the script's parser would refuse a parameter; False unless all its options are known."""
        is_known = self.makes_parser and not self.takes_unknown_options and not self.parameters
        return is_known and name.replace("_", "-") not in {flag.replace("_", "-") for flag in self.flags}

    def default_of(self, name: str) -> Any:
        """Return the default of an option; None if the option has none or is unknown."""
        same = (flag for flag in self.flags if flag.replace("_", "-") == name.replace("_", "-"))
        return self.flags.get(next(same, ""))


def read_script(text: str) -> ScriptFacts:
    """Read a Python script; raise `SyntaxError` if it is not one.

    >>> facts = read_script("p = {'lr': 0.1}; p.update(pitchpipe.get_next_parameter()); print(p['lr'], p['units'])")
    >>> facts.parameters, facts.asks, facts.reports_final
    ({'lr': 0.1, 'units': None}, True, False)
    """
    tree = ast.parse(text)
    facts = ScriptFacts()
    holders = _holders(tree)
    literals = dict(_literals(tree))
    _note_variables(facts, tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and _CALLBACK in {alias.name for alias in node.names}:
            facts.reports_intermediate = True
            facts.reports_final |= not (node.module or "").endswith(_WITHOUT_FINAL) and not _is_final_left(
                tree
            )
        elif isinstance(node, ast.Import):
            facts.imports_us |= any(
                (alias.asname or alias.name.partition(".")[0]) == "pitchpipe" for alias in node.names
            )
        elif isinstance(node, ast.Call):
            _note_call(facts, node, holders)
        elif isinstance(node, ast.Subscript) and _is_holder(node.value, holders):
            _note_parameter(facts, node.slice)
        elif isinstance(node, ast.Dict) and any(map(_asks, node.values)):
            _note_defaults(facts, node, literals)
        elif isinstance(node, ast.Assign) and _held(node) & holders and isinstance(node.value, ast.Dict):
            _note_defaults(facts, node.value, literals)
    return facts


def _literals(tree: ast.AST) -> Iterator[tuple[str, ast.Dict]]:
    """Yield the dictionary literals with the names they are assigned to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict):
            if isinstance(node.target, ast.Name):
                yield node.target.id, node.value
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            yield from ((name, node.value) for name in _held(node))


def _holders(tree: ast.AST) -> frozenset[str]:
    """Return the names of variables that hold the parameters: assigned from the call, or updated with it."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(_asks(inner) for inner in ast.walk(node.value)):
            names |= _held(node)
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.attr == "update"
            and any(_asks(argument) for argument in node.args)
        ):
            names.add(node.func.value.id)
    return frozenset(names)


def _held(node: ast.Assign) -> set[str]:
    return {target.id for target in node.targets if isinstance(target, ast.Name)}


def _asks(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _called(node) in _ASKS


def _is_our_parse_args(node: ast.Call) -> bool:
    """Return whether a call is `pitchpipe.parse_args(...)` or `parse_args(...)`, and not that of a parser."""
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    return _called(node) == "parse_args" and (owner is None or getattr(owner, "id", "") == "pitchpipe")


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _is_holder(node: ast.AST, holders: frozenset[str]) -> bool:
    return _asks(node) or (isinstance(node, ast.Name) and node.id in holders)


def _is_final_left(tree: ast.AST) -> bool:
    """Return whether a callback leaves the final result to the script: `PitchpipeCallback(final=False)`."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node) == _CALLBACK)
    return any(
        keyword.arg == "final" and _literal(keyword.value) is False
        for call in calls
        for keyword in call.keywords
    )


def _note_variables(facts: ScriptFacts, tree: ast.Module) -> None:
    """Note the numbers among the module's variables before `globals().update(get_next_parameter())`."""
    numbers: dict[str, Any] = {}
    for node in tree.body:
        value = node.value if isinstance(node, ast.Assign | ast.Expr) else None
        if isinstance(node, ast.Assign) and isinstance(_literal(node.value), int | float):
            numbers.update(dict.fromkeys(_held(node), _literal(node.value)))
        elif isinstance(value, ast.Call) and ast.unparse(value.func) == "globals().update":
            facts.parameters.update(numbers if any(map(_asks, value.args)) else {})


def _note_call(facts: ScriptFacts, node: ast.Call, holders: frozenset[str]) -> None:
    name = _called(node)
    facts.asks |= name in _ASKS or _is_our_parse_args(node)
    facts.reports_final |= name == _FINAL
    facts.reports_intermediate |= name == _INTERMEDIATE
    if name in (_FINAL, _CALLBACK):
        facts.key = _key(node) or facts.key
        facts.metric = _metric(node) or facts.key or facts.metric
    elif name == "ArgumentParser":
        facts.makes_parser = True
        facts.takes_unknown_options |= any(keyword.arg == "parents" for keyword in node.keywords)
    elif name == "parse_known_args":
        facts.takes_unknown_options = True
    if name == "add_argument":
        _note_flag(facts, node)
    elif name == "get" and isinstance(node.func, ast.Attribute) and _is_holder(node.func.value, holders):
        default = _literal(node.args[1]) if len(node.args) > 1 else None
        _note_parameter(facts, node.args[0] if node.args else None, default)


def _note_parameter(facts: ScriptFacts, key: ast.AST | None, default: Any = None) -> None:
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        known = facts.parameters.get(key.value)
        facts.parameters[key.value] = default if known is None else known


def _note_defaults(facts: ScriptFacts, literal: ast.Dict, literals: Mapping[str, ast.Dict]) -> None:
    """Note the defaults in `{"lr": 0.1, **DEFAULTS, **get_next_parameter()}` or a dictionary that is updated later."""
    for key, default in zip(literal.keys, literal.values, strict=True):
        if key is not None:
            _note_parameter(facts, key, _literal(default))
        elif isinstance(default, ast.Name) and default.id in literals and literals[default.id] is not literal:
            _note_defaults(facts, literals[default.id], {})


def _metric(node: ast.Call) -> str:
    """Return the name of the result that a callback monitors or a report passes; empty if it has none."""
    named = [keyword.value for keyword in node.keywords if keyword.arg in ("monitor", "metric")]
    for value in (*named, *node.args[:1]):
        if isinstance(value, ast.Name):
            return value.id if _called(node) == _FINAL else ""
        if _called(node) == _CALLBACK and isinstance(literal := _literal(value), str):
            return literal
    return ""


def _key(node: ast.Call) -> str:
    """Return the first name in the dict that a report passes, empty without a dict or with a `default` in it."""
    given = node.args[0] if node.args else None
    if _called(node) != _FINAL or not isinstance(given, ast.Dict):
        return ""
    names = [key.value for key in given.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
    return names[0] if names and "default" not in names else ""


def higher_is_better(metric: str) -> bool | None:
    """Return whether a metric is to be maximized, judged by its name; None if the name does not tell.

    >>> higher_is_better("val_accuracy"), higher_is_better("validation-logloss"), higher_is_better("result")
    (True, False, None)
    """
    words = set(re.split("[^a-z0-9]+", metric.lower()))
    if words & _LOWER:
        return False
    return True if words & _HIGHER else None


def _note_flag(facts: ScriptFacts, node: ast.Call) -> None:
    words = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    facts.takes_unknown_options |= len(words) < len(node.args)
    given = {keyword.arg: _literal(keyword.value) for keyword in node.keywords if keyword.arg}
    long = [word.removeprefix(_FLAG) for word in words if word.startswith(_FLAG)]
    is_positional = bool(words) and not words[0].startswith("-")
    if given.get("required") is True or (is_positional and given.get("nargs") not in ("?", "*")):
        facts.required.append((long or words)[0])
    if not long:
        return
    name = long[0]
    facts.flags[name] = given.get("default")
    if given.get("action") in _SWITCHES:
        facts.switches.append(name)
        facts.flags[name] = False  # without the option, whatever the script makes of it
    if isinstance(given.get("choices"), list | tuple):
        facts.choices[name] = list(given["choices"])


def _literal(node: ast.AST) -> Any:
    try:
        return ast.literal_eval(node)  # type: ignore[arg-type]
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def guessed_spec(default: Any, choices: Sequence[Any] = (), name: str = "") -> str:
    """Return a range around a default in the form of `--param`; empty where nothing can be guessed.

    Some names say that a number is a share of one, or that it is at most 1.

    >>> guessed_spec(0.01), guessed_spec(64), guessed_spec(0.0), guessed_spec(True)
    ('loguniform:0.0001:1', 'randint:16:257', 'uniform:0:1', 'choice:true,false')
    >>> guessed_spec("adam", ["adam", "sgd"]), guessed_spec("relu"), guessed_spec(None)
    ('choice:adam,sgd', 'choice:relu', '')
    >>> guessed_spec(0.9, name="momentum"), guessed_spec(0.0, name="momentum"), guessed_spec(0.999, name="beta2")
    ('uniform:0:0.99', 'uniform:0:0.99', 'uniform:0:0.999')
    >>> guessed_spec(1.0, name="subsample"), guessed_spec(0.1, name="learning-rate")
    ('uniform:0.1:1', 'loguniform:0.001:1')
    """
    if choices:
        words = (str(choice).lower() if isinstance(choice, bool) else str(choice) for choice in choices)
        return f"choice:{','.join(words)}"
    if isinstance(default, bool):
        return "choice:true,false"
    if isinstance(default, int) and default > 0:
        return f"randint:{max(1, default // 4)}:{default * 4 + 1}"
    if isinstance(default, float) and default > 0:
        return _range_around(default, name.replace("-", "_").lower())
    if isinstance(default, str) and default:
        return f"choice:{default}"
    if isinstance(default, float):
        return "uniform:0:0.99" if _SHARE.search(name.lower()) else "uniform:0:1"
    return ""


def _range_around(default: float, name: str) -> str:
    if default < 1 and _SHARE.search(name):
        return f"uniform:0:{max(0.99, default):g}"
    if default <= 1 and _FRACTION.search(name):
        return f"uniform:{min(0.1, default / 2):.6g}:1"
    highest = default * 100
    if default <= 1 and _RATE.search(name):
        highest = min(highest, 1.0)
    return f"loguniform:{default / 100:.6g}:{highest:.6g}"
