"""The assessor of a config that names none: `Auto` where only time ends the search, since stopping then saves some."""

from __future__ import annotations

from .problems import fold
from .root_fields import AlgorithmConfig, ConfigFields

__all__ = ["default_assessor"]

# Built-in tuners that run every trial to its end and may go on for ever.
_ENDLESS = frozenset(
    ("anneal", "auto", "cmaes", "dngo", "evolution", "gp", "metis", "optuna", "qmc", "random", "smac", "tpe")
)
_NOTE = (
    "assessor Auto stops {which} early, because only time limits the experiment;"
    " with `assessor: none` every trial runs to its end"
)


def default_assessor(config: ConfigFields) -> tuple[AlgorithmConfig | None, str]:
    """Return the assessor, and a sentence that says why if the config does not name it itself."""
    is_free = "assessor" not in config.model_fields_set
    is_endless = fold(config.tuner.name or "").removesuffix("tuner") in _ENDLESS
    only_time = config.max_experiment_duration is not None and config.max_trial_number is None
    one_goal = len(config.objectives) == 1 and config.objectives[0].constraint is None
    if not (is_free and is_endless and only_time and one_goal and config.stop_when is None):
        return config.assessor, ""
    # The results of some trials are wanted, be they good or not.
    if config.defaults is not None or config.initial_points or config.repeats is not None:
        return AlgorithmConfig(name="Auto", class_args={"hopeless_only": True}), _NOTE.format(
            which="hopeless trials"
        )
    return AlgorithmConfig(name="Auto"), _NOTE.format(which="trials")
