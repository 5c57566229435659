"""Arguments of algorithms in earlier versions of NNI, in today's form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .problems import fold

_LIES = {"min": "best", "max": "worst", "mean": "mean", "best": "best", "worst": "worst"}
_OF_TPE = ("parallel_optimize", "constant_liar_type")


def with_todays_arguments(name: object, arguments: Any) -> Any:
    """Return the arguments of an algorithm; those of TPE up to NNI 2.3 become `tpe_args`, others stay.

    >>> with_todays_arguments("TPE", {"optimize_mode": "maximize", "constant_liar_type": "min"})
    {'optimize_mode': 'maximize', 'tpe_args': {'constant_liar_type': 'best'}}
    """
    is_tpe = isinstance(name, str) and fold(name) in ("tpe", "tpetuner", "tpelegacy")
    if not is_tpe or not isinstance(arguments, Mapping) or not set(_OF_TPE) & set(arguments):
        return arguments
    parallel, lie = (arguments.get(key) for key in _OF_TPE)
    rest = {key: value for key, value in arguments.items() if key not in _OF_TPE}
    given = rest.get("tpe_args") or {}
    is_known = isinstance(parallel, bool | None) and (lie is None or _LIES.get(str(lie)) is not None)
    if not is_known or not isinstance(given, Mapping):
        return arguments  # they are refused by name
    if parallel is False:  # NNI then ignored running trials, and with them the lie
        return rest
    return {**rest, "tpe_args": {"constant_liar_type": _LIES[lie or "min"], **given}}
