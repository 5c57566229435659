"""A callback for the `Trainer` of Hugging Face's transformers, and a backend for its `hyperparameter_search`."""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from .. import choice, loguniform, maximize, minimize, randint  # pyright: ignore[reportMissingImports]
from ..protocol import JsonObject, Parameters
from ..sdk import TrialStopped, get_sequence_id, report_intermediate_result
from .reporting import TrialReports
from .requirements import required

transformers = required("transformers", "4.52")
backends = required("transformers.hyperparameter_search", "4.52")
trainer_utils = required("transformers.trainer_utils", "4.52")

__all__ = ["PitchpipeBackend", "PitchpipeCallback"]


class PitchpipeCallback(transformers.TrainerCallback):
    """Reports the metrics of each evaluation, and at the end those of the final model; does nothing outside of a trial.

    The final model is the best one with `load_best_model_at_end`, else the last. `monitor` is a name in the metrics of
    an evaluation. The training ends when the trial's budget of evaluations is spent. Of several processes only the one
    of rank 0 reports. With `final=False` the script reports the final result itself.
    """

    def __init__(self, monitor: str = "eval_loss", *, final: bool = True) -> None:
        self._monitor, self._final = monitor, final
        self._is_training = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Start over: a trainer may train several times."""
        self._reports = TrialReports(self._monitor, final=self._final)
        self._evaluations: dict[int | None, Mapping[str, float]] = {}
        self._is_training = True

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: Mapping[str, float], **kwargs: Any
    ) -> None:
        """Report an evaluation of the training; those before and after it are the script's own."""
        if not self._is_training:
            return
        self._evaluations[state.global_step] = metrics
        if state.is_world_process_zero:
            self._reports.report(metrics)
        earlier = sum(self._monitor in entry for entry in state.log_history)
        if self._reports.is_spent(earlier):
            control.should_training_stop = True

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Report the final result."""
        self._is_training = False
        if state.is_world_process_zero:
            best = state.best_global_step if args.load_best_model_at_end else None
            self._reports.finish(self._evaluations.get(best))


class PitchpipeBackend(backends.HyperParamSearchBackendBase):
    """The backend of `trainer.hyperparameter_search(backend="pitchpipe")`, which works once this module is imported.

    `hp_space` is a function that returns a search space of Pitchpipe; all other arguments are those of
    `pitchpipe.minimize`, such as `tuner`, `assessor`, `folder` and `timeout`. Parameters that are fields of
    `TrainingArguments` are set there. A `model_init` with an argument gets all parameters as a dict, or None when the
    trainer makes its first model. Each evaluation is an intermediate result, and the last one the final result.

    The search has one objective and trains in one process. Raises ValueError for a search that this excludes, and the
    errors of `pitchpipe.minimize`.
    """

    name = "pitchpipe"

    @staticmethod
    def is_available() -> bool:
        """Return True: this module is imported."""
        return True

    def default_hp_space(self, trial: Any) -> JsonObject:
        """Return the space that the trainer's other backends use by default."""
        return {
            "learning_rate": loguniform(1e-6, 1e-4),
            "num_train_epochs": randint(1, 6),
            "seed": randint(1, 41),
            "per_device_train_batch_size": choice([4, 8, 16, 32, 64]),
        }

    def run(self, trainer: Any, n_trials: int, direction: str, **kwargs: Any) -> Any:
        """Run the search and return its best trial as a `BestRun`, with all results as its `run_summary`."""
        space = trainer.hp_space(None)
        _check(trainer, space, direction)
        search = maximize if direction == "maximize" else minimize
        callback = _Evaluations(trainer.compute_objective)
        trainer.add_callback(callback)
        try:
            result = search(partial(_train, trainer, callback), space, n_trials, **kwargs)
        finally:
            trainer.remove_callback(callback)
        best = result.best
        if best is None:
            raise ValueError(f"no training has succeeded: {result.counts}")
        return trainer_utils.BestRun(str(best.sequence_id), best.value, best.parameters, result)


class _Evaluations(transformers.TrainerCallback):
    """Reports the objective of each evaluation, and ends the training when the trial should stop."""

    def __init__(self, objective: Any) -> None:
        self._objective = objective
        self.last: float | None = None

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: Mapping[str, float], **kwargs: Any
    ) -> None:
        self.last = self._objective(dict(metrics))
        try:
            report_intermediate_result(self.last)
        except TrialStopped:  # the training ends in the trainer's own way
            control.should_training_stop = True


def _check(trainer: Any, space: JsonObject, direction: str) -> None:
    """Raise ValueError for a search that the backend cannot run."""
    if not isinstance(direction, str):
        raise ValueError('direction: the backend pitchpipe has one objective, "minimize" or "maximize"')
    if trainer.args.world_size > 1:
        raise ValueError(
            "the backend pitchpipe trains in one process; for several, run the script as the trial of an experiment,"
            " with PitchpipeCallback"
        )
    if any(isinstance(each, PitchpipeCallback) for each in trainer.callback_handler.callbacks):
        raise ValueError("hyperparameter_search reports by itself: leave PitchpipeCallback out")
    if not inspect.signature(trainer.model_init).parameters:
        for name in space:
            if not hasattr(trainer.args, name):
                raise ValueError(
                    f"hp_space: {name!r} is not a training argument, and model_init takes no parameters"
                )


def _train(trainer: Any, callback: _Evaluations, parameters: Parameters) -> float | None:
    """Train once with these parameters, and return the objective of the last evaluation."""
    callback.last = None
    with _configured(trainer, parameters):
        trainer.train()
        if callback.last is None:
            trainer.evaluate()
    return callback.last


@contextmanager
def _configured(trainer: Any, parameters: Parameters) -> Iterator[None]:
    """Configure a trainer for a trial in a block: its arguments, its `model_init` and its output folder."""
    args, make_model, backend = trainer.args, trainer.model_init, trainer.hp_search_backend
    trainer.args = copy.copy(args)
    for name, value in parameters.items():
        if hasattr(args, name):
            before = getattr(args, name)
            setattr(trainer.args, name, value if before is None else type(before)(value))
    run = trainer.hp_name(parameters) if trainer.hp_name else f"run-{get_sequence_id()}"
    trainer.args.output_dir = os.path.join(args.output_dir, run)
    if inspect.signature(make_model).parameters:
        trainer.model_init = partial(make_model, parameters)
    trainer._train_batch_size = trainer.args.train_batch_size  # the trainer has a copy
    trainer.create_accelerator_and_postprocess()
    trainer.hp_search_backend = None  # with one, the trainer would configure itself, for backends it knows
    try:
        yield
    finally:
        trainer.args, trainer.model_init, trainer.hp_search_backend = args, make_model, backend


def _added_name(name: str) -> Any:
    """Add a member to the enum of backends that `hyperparameter_search` accepts, and return it."""
    names = trainer_utils.HPSearchBackend
    member = str.__new__(names, name)
    member._name_, member._value_ = name.upper(), name
    names._value2member_map_[name] = member  # Enum has no function for this
    return member


backends.ALL_HYPERPARAMETER_SEARCH_BACKENDS[_added_name(PitchpipeBackend.name)] = PitchpipeBackend
