"""A callback for Keras 3, with any of its backends."""

from __future__ import annotations

from collections.abc import Mapping

from .reporting import TrialReports
from .requirements import required

keras = required("keras", "3.0")

__all__ = ["PitchpipeCallback"]


class PitchpipeCallback(keras.callbacks.Callback):
    """Reports the metrics of each epoch, and at the end those of the last epoch; does nothing outside of a trial.

    `monitor` is a name that Keras prints; an epoch in which it is not measured is not reported. The training ends when
    the trial's budget of epochs is spent. With `final=False` the script reports the final result itself.
    """

    def __init__(self, monitor: str = "val_loss", *, final: bool = True) -> None:
        super().__init__()
        self._monitor, self._final = monitor, final

    def on_train_begin(self, logs: Mapping[str, float] | None = None) -> None:
        """Start over: a model may be fitted several times."""
        self._reports = TrialReports(self._monitor, final=self._final)

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float] | None = None) -> None:
        """Report an epoch."""
        self._reports.report(logs or {})
        if self._reports.is_spent(epoch + 1):
            self.model.stop_training = True

    def on_train_end(self, logs: Mapping[str, float] | None = None) -> None:
        """Report the final result."""
        self._reports.finish()
