"""A callback for Lightning, whether it is installed as `lightning` or as `pytorch_lightning`."""

from __future__ import annotations

from typing import Any

from .reporting import TrialReports
from .requirements import required

lightning = required("lightning.pytorch", "2.0")

__all__ = ["PitchpipeCallback"]


class PitchpipeCallback(lightning.Callback):
    """Reports the metrics of each epoch, and at the end those of the last epoch; does nothing outside of a trial.

    `monitor` is a name that the module logs; an epoch in which it is not logged is not reported. The training ends when
    the trial's budget of epochs is spent. Of several processes only the one of rank 0 reports. With `final=False` the
    script reports the final result itself.
    """

    def __init__(self, monitor: str = "val_loss", *, final: bool = True) -> None:
        self._monitor, self._final = monitor, final

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Start over: a trainer may fit several times."""
        self._reports = TrialReports(self._monitor, final=self._final)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Report an epoch, after its validation."""
        if trainer.is_global_zero:
            self._reports.report(trainer.callback_metrics)
        if self._reports.is_spent(trainer.current_epoch + 1):
            trainer.should_stop = True

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Report the final result."""
        if trainer.is_global_zero:
            self._reports.finish()
