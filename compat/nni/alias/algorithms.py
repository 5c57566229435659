"""Tuners that NNI has as classes of another kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....tuners import AnnealTuner, TpeTuner, Tuner

__all__ = ["HyperoptTuner", "RegularizedEvolutionTuner"]

_BY_NAME: dict[str, Callable[..., Tuner]] = {"anneal": AnnealTuner, "tpe": TpeTuner}


def HyperoptTuner(algorithm_name: str, optimize_mode: str = "minimize", **class_args: Any) -> Tuner:
    """Return the tuner of the algorithm, `anneal` or `tpe`, with its own arguments; raise ValueError for another.

    >>> type(HyperoptTuner("anneal")).__name__
    'AnnealTuner'
    """
    if algorithm_name not in _BY_NAME:
        raise ValueError(f"HyperoptTuner has anneal and tpe, not {algorithm_name!r}")
    arguments = {"optimize_mode": optimize_mode, **class_args}
    tuner = _BY_NAME[algorithm_name](**arguments)
    vars(tuner)["hyperopt_config"] = {"name": algorithm_name, "class_args": arguments}
    return tuner


class RegularizedEvolutionTuner:
    """NNI's tuner for architecture search; refused with what is there for hyper-parameters."""

    def __init__(self, *_arguments: Any, **_class_args: Any) -> None:
        what = "RegularizedEvolutionTuner searches for architectures, which Pitchpipe does not"
        raise NotImplementedError(f"{what}; for hyper-parameters there is EvolutionTuner")
