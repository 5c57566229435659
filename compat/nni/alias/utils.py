"""What only NNI offers to scripts and plug-ins: helpers around parameters, results and arguments."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from enum import Enum
from types import SimpleNamespace
from typing import IO, Any, TypeVar

from ....protocol import Json, MetricError, dumps, loads, metric_value, require_extra
from .tracing import described, restored

VERSION = "3.0"  # whose interface this is

Given = TypeVar("Given")


def _variables(*names: str) -> SimpleNamespace:
    return SimpleNamespace(**{name: os.environ.get(name) for name in names})


trial_env_vars = _variables(
    *("NNI_PLATFORM", "NNI_EXP_ID", "NNI_TRIAL_JOB_ID", "NNI_SYS_DIR", "NNI_OUTPUT_DIR", "NNI_TRIAL_SEQ_ID"),
    *("NNI_TRIAL_COMMAND_CHANNEL", "MULTI_PHASE", "REUSE_MODE"),
)
dispatcher_env_vars = _variables(
    *("SDK_PROCESS", "NNI_MODE", "NNI_CHECKPOINT_DIRECTORY", "NNI_LOG_DIRECTORY", "NNI_LOG_LEVEL"),
    *("NNI_INCLUDE_INTERMEDIATE_RESULTS", "NNI_TUNER_COMMAND_CHANNEL"),
)


class OptimizeMode(Enum):
    """The direction of a search."""

    Minimize = "minimize"
    Maximize = "maximize"


class NodeType:
    """The keys with a meaning in search spaces, and in the choices of NNI's evolution."""

    ROOT = "root"
    TYPE = "_type"
    VALUE = "_value"
    INDEX = "_index"
    NAME = "_name"


class MetricType:
    """The kinds of results in messages to a dispatcher."""

    FINAL = "FINAL"
    PERIODICAL = "PERIODICAL"
    REQUEST_PARAMETER = "REQUEST_PARAMETER"


class ClassArgsValidator:
    """Base class for the check of a plug-in's arguments; the checks are made with the library `schema`."""

    def validate_class_args(self, **kwargs: Any) -> None:
        """Raise an error for bad arguments; override this."""

    def choices(self, key: str, *args: Any) -> Any:
        """Return a check that the argument `key` is one of `args`."""
        schema = _schema()
        return schema.Schema(lambda value: value in args, error=f"{key} must be one of {list(args)}")

    def range(self, key: str, keyType: type, start: float, end: float) -> Any:
        """Return a check that the argument `key` has this type and lies between `start` and `end`, both included."""
        schema = _schema()
        between = schema.And(keyType, lambda value: start <= value <= end)
        error = f"{key} must be of type {keyType.__name__}, from {start} to {end}"
        return schema.Schema(between, error=error)

    def path(self, key: str) -> Any:
        """Return a check that the argument `key` is an existing path."""
        schema = _schema()
        return schema.Schema(schema.And(os.path.exists), error=f"{key}: there is no such path")


def _schema() -> Any:
    """Return the library schema; raise `MissingExtraError`, with the command that installs it, if it is missing."""
    require_extra("ClassArgsValidator needs", "nni")
    import schema

    return schema


def merge_parameter(base_params: Given, override_params: Mapping[str, Json] | None) -> Given:
    """Set the parameters of a trial, if there are any, in parsed arguments (a dict or an object) and return them.

    Raise ValueError for a name that `base_params` does not have, and for a value of another type than its own; an
    integer may take the place of a float, and anything that of None.

    >>> from argparse import Namespace
    >>> merge_parameter(Namespace(lr=0.1, layers=2), {"lr": 1})
    Namespace(lr=1.0, layers=2)
    """
    of_dict: Any = (dict.__contains__, dict.__getitem__, dict.__setitem__)
    has, get, put = of_dict if isinstance(base_params, dict) else (hasattr, getattr, setattr)
    for name, value in (override_params or {}).items():
        if not has(base_params, name):
            known = base_params if isinstance(base_params, dict) else getattr(base_params, "__dict__", {})
            raise ValueError(f"there is no parameter {name!r} among {', '.join(map(repr, known))}")
        put(base_params, name, _of_type(name, value, get(base_params, name)))
    return base_params


def _of_type(name: str, value: Any, present: Any) -> Any:
    if present is None or type(value) is type(present):
        return value
    if isinstance(present, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    kinds = type(value).__name__, type(present).__name__
    raise ValueError(
        f"the parameter {name!r} is {value!r}, a {kinds[0]}, but the argument's default is a {kinds[1]}"
    )


def extract_scalar_reward(value: Any, scalar_key: str = "default") -> float:
    """Return the number in a result; raise RuntimeError if there is none.

    >>> extract_scalar_reward({"default": 0.5, "loss": 2.0})
    0.5
    """
    try:
        return metric_value(value, scalar_key)
    except MetricError as error:
        raise RuntimeError(f"a trial {error}") from error


def extract_scalar_history(trial_history: Iterable[Any], scalar_key: str = "default") -> list[float]:
    """Return the numbers in several results."""
    return [extract_scalar_reward(value, scalar_key) for value in trial_history]


def split_index(params: Any) -> Any:
    """Return parameters without the option numbers that NNI's evolution keeps with them.

    >>> split_index({"op": {"_index": 1, "_value": "relu"}, "x": 2})
    {'op': 'relu', 'x': 2}
    """
    if not isinstance(params, dict):
        return params
    if NodeType.INDEX in params:
        return split_index(params[NodeType.VALUE])
    return {name: split_index(value) for name, value in params.items()}


def dump(obj: Any, fp: IO[str] | None = None, **options: Any) -> str:
    """Return the JSON text of a value, and write it to `fp`; only `sort_keys` of the `options` has an effect.

    Of a traced object, its symbol and arguments are written.
    """
    value = described(obj)
    if options.get("sort_keys") and isinstance(value, dict):
        value = dict(sorted(value.items()))
    text = dumps(value)
    if fp is not None:
        fp.write(text)
    return text


def load(string: str | None = None, *, fp: IO[str] | None = None, **options: Any) -> Any:
    """Return the value of a JSON text, given as a string or a file; its traced objects are made again."""
    del options
    text = string if fp is None else fp.read()
    if text is None:
        raise ValueError("load needs a string or fp")
    return restored(loads(text))


def silence_stdout() -> None:
    """Do nothing: nothing is printed that NNI would print."""


def enable_global_logging(enable: bool = True) -> None:
    """Do nothing: a trial's output is logged as it is."""
    del enable
