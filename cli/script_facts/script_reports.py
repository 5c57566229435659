"""Which results a script reports, and what their names say about the direction."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from .script_syntax import Script, called_name, keyword

_FINAL = "report_final_result"
_INTERMEDIATE = "report_intermediate_result"
_CALLBACK = "PitchpipeCallback"
_WITHOUT_FINAL = ("lightgbm", "catboost")  # with their callbacks the script reports the final result
_THROUGH = frozenset({"float", "round", "mean", "item", "average", "max", "min"})
_HIGHER = frozenset(
    {"acc", "accuracy", "auc", "f1", "precision", "recall", "r2", "score"}
    | {"map", "bleu", "iou", "dice", "ndcg"}
)
_LOWER = frozenset(
    {"loss", "error", "err", "logloss", "mse", "rmse", "mae", "mape"} | {"perplexity", "brier", "wer", "cer"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports:
    """What a script reports: `key` is the first name in a dict, `others` the further ones.

    `metric` is the name of the result, if it has one: a key, a variable, or what a callback monitors.
    """

    metric: str = ""
    key: str = ""
    others: Sequence[str] = ()
    has_final: bool = False
    has_intermediate: bool = False


def reports_of(script: Script) -> Reports:
    """Return what a script reports, by calls and by the callbacks of Pitchpipe.

    >>> reports_of(Script(ast.parse("report_final_result({'acc': acc, 'loss': loss})")))
    Reports(metric='acc', key='acc', others=('loss',), has_final=True, has_intermediate=False)
    """
    metric = key = ""
    others: tuple[str, ...] = ()
    names = {called_name(call) for call in script.calls}
    origins = {
        node.module or "" for node in script.nodes if isinstance(node, ast.ImportFrom) and _has_callback(node)
    }
    for call in script.calls:
        given = call.args[0] if call.args else keyword(call, "metric")
        if called_name(call) == _FINAL:
            reported = _dict(script, given)
            keys = [name for name in reported if isinstance(name, str)]
            key = keys[0] if keys and "default" not in keys else key
            others = tuple(name for name in keys if name not in (key, "default")) or others
            named = reported.get("default", given)
            metric = (keys[0] if keys and "default" not in keys else _name(script, named)) or metric
        elif called_name(call) == _CALLBACK:
            watched = script.value(keyword(call, "monitor") or keyword(call, "metric", 0))
            metric = watched if isinstance(watched, str) else metric
    reports = any(not origin.endswith(_WITHOUT_FINAL) for origin in origins) and not _is_final_left(script)
    return Reports(
        metric=metric,
        key=key,
        others=others,
        has_final=_FINAL in names or reports,
        has_intermediate=_INTERMEDIATE in names or bool(origins),
    )


def higher_is_better(metric: str) -> bool | None:
    """Return whether a metric is to be maximized, judged by its name; None if the name does not tell.

    >>> higher_is_better("val_accuracy"), higher_is_better("validation-logloss"), higher_is_better("result")
    (True, False, None)
    """
    words = set(re.split("[^a-z0-9]+", metric.lower()))
    if words & _LOWER:
        return False
    return True if words & _HIGHER else None


def _has_callback(node: ast.ImportFrom) -> bool:
    return _CALLBACK in {alias.name for alias in node.names}


def _is_final_left(script: Script) -> bool:
    """Return whether a callback leaves the final result to the script: `PitchpipeCallback(final=False)`."""
    calls = (call for call in script.calls if called_name(call) == _CALLBACK)
    return any(script.value(keyword(call, "final")) is False for call in calls)


def _dict(script: Script, node: ast.expr | None) -> dict[str, ast.expr]:
    """Return names and values of a dict that is reported, also through a variable; empty for another result."""
    if isinstance(node, ast.Name):
        values = [
            item.value
            for item in script.nodes
            if isinstance(item, ast.Assign)
            and any(getattr(target, "id", "") == node.id for target in item.targets)
        ]
        return _dict(script, values[0]) if len(values) == 1 and not isinstance(values[0], ast.Name) else {}
    if isinstance(node, ast.Call) and script.origin(node) == "dict":
        return {item.arg: item.value for item in node.keywords if item.arg is not None}
    if not isinstance(node, ast.Dict):
        return {}
    pairs = [(script.value(key), value) for key, value in zip(node.keys, node.values, strict=True)]
    return {name: value for name, value in pairs if isinstance(name, str)}


def _name(script: Script, node: ast.expr | None) -> str:
    """Return the name of a reported value, such as `accuracy`, `float(result.accuracy)` or `metrics["accuracy"]`.

    A call has the name of what the function returns.

    >>> call = ast.parse("train(CONFIG)", mode="eval").body
    >>> _name(Script(ast.parse("def train(config):\\n    return accuracy")), call)
    'accuracy'
    """
    match node:
        case ast.Name():
            return node.id
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case ast.Call(func=ast.Attribute(value=inner, attr=name), args=[]) if name in _THROUGH:
            return _name(script, inner)
        case ast.Call(args=[inner, *_]) if called_name(node) in _THROUGH:
            return _name(script, inner)
        case ast.Call(func=ast.Name(id=function)):
            return _returned(script, function)
        case ast.Attribute():
            return node.attr
    return ""


def _returned(script: Script, function: str) -> str:
    """Return the name of the value that a function of the script returns; empty if it returns several."""
    defined = [node for node in script.nodes if isinstance(node, ast.FunctionDef) and node.name == function]
    returned = [node.value for one in defined for node in ast.walk(one) if isinstance(node, ast.Return)]
    # A call may lead back to the function.
    names = {"" if isinstance(value, ast.Call) else _name(script, value) for value in returned}
    return names.pop() if len(names) == 1 else ""
