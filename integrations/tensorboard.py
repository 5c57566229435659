"""A callback that writes an experiment for TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..protocol import Parameters
from ..sdk import flat_arguments
from .listening import Row, RunListener, TrackerRun
from .requirements import required

tensorboardX = required("tensorboardX", "2.6", "tensorboard")

__all__ = ["TensorBoardCallback"]


class TensorBoardCallback(RunListener):
    """Writes a folder for each trial, with its metrics, and with its parameters for the page HPARAMS.

    These folders are in `folder`, by default in `tensorboard` inside the experiment's folder. `tensorboard --logdir`
    shows them.
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        super().__init__()
        self._given = folder

    def open_experiment(self, experiment: Row) -> None:
        """Choose the folder."""
        self._folder = Path(self._given or Path(experiment["folder"]) / "tensorboard")

    def open_run(self, trial: Row, parameters: Parameters) -> TrackerRun:
        """Open the event file of a trial."""
        return tensorboardX.SummaryWriter(str(self._folder / f"trial-{trial['sequence_id']}"))

    def log(self, run: TrackerRun, metrics: Mapping[str, float], step: int) -> None:
        """Write the metrics of a result."""
        for name, value in metrics.items():
            run.add_scalar(name, value, step)

    def close_run(self, run: TrackerRun, trial: Row) -> None:
        """Write the parameters beside the final value, and close the file."""
        values = trial["value"] if isinstance(trial["value"], Mapping) else {"value": trial["value"]}
        results = {f"final/{name}": value for name, value in values.items() if value is not None}
        # `add_hparams` would open a second file, with the same name if the trial took less than a second.
        for summary in tensorboardX.summary.hparams(_showable(trial["parameters"]), results):
            run.file_writer.add_summary(summary)
        for name, value in results.items():
            run.add_scalar(name, value)
        run.close()


def _showable(parameters: Parameters) -> dict[str, int | float | str]:
    """Return the parameters as TensorBoard can show them: anything except a number, a bool or a string as text."""
    return {
        name: value if isinstance(value, int | float | str) else str(value)
        for name, value in flat_arguments(parameters).items()
    }
