"""A sweeper for Hydra: `hydra/sweeper=pitchpipe`, with the search space in Hydra's own syntax and any launcher.

Each job is launched alone, as soon as another one has ended. Jobs at the same time have processes of their own, because
a launcher may change the folder, the environment and the logging of its process.
"""

from __future__ import annotations

import logging
import multiprocessing
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from ..protocol import JsonObject, Parameters
from ..tuners import NoMoreTrialError
from .requirements import required

required("hydra", "1.3")
config_store = required("hydra.core.config_store", "1.3")
errors = required("hydra.errors", "1.3")
override_types = required("hydra.core.override_parser.types", "1.3")
overrides_parser = required("hydra.core.override_parser.overrides_parser", "1.3", "hydra")
plugins = required("hydra.core.plugins", "1.3")
sweeper = required("hydra.plugins.sweeper", "1.3")
OmegaConf = required("omegaconf", "2.3", "hydra").OmegaConf

__all__ = ["PitchpipeSweeper", "SweeperOptions"]

_log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class SweeperOptions:
    """The options below `hydra.sweeper`: those of `pitchpipe.Search`, and `n_jobs`, how many jobs run at once.

    `params` are overrides like those of the command line. `folder` is by default in the folder of the sweep; a search
    that the folder already contains is continued. An error of a job ends the sweep, unless `catch` is true.
    """

    _target_: str = "hydra_plugins.pitchpipe_sweeper.PitchpipeSweeper"
    n_trials: int = 20
    n_jobs: int = 1
    direction: str | None = None
    metric: str = "default"
    objectives: Any = None
    tuner: Any = None
    seed: int | None = None
    folder: str | None = None
    catch: bool = False
    params: dict[str, str] = field(default_factory=dict)


class PitchpipeSweeper(sweeper.Sweeper):
    """Searches the overrides of a multirun. The return value of the task function is the result of its trial."""

    def __init__(
        self, *, n_jobs: int, folder: str | None, catch: bool, params: Mapping[str, str], **options: Any
    ) -> None:
        self._jobs, self._folder, self._catch, self._params = n_jobs, folder, catch, params
        self._options = {name: _plain(value) for name, value in options.items()}

    def setup(self, *, hydra_context: Any, task_function: Any, config: Any) -> None:
        """Keep the configuration of the sweep, and make the launcher of its jobs."""
        self.hydra_context, self.config = hydra_context, config
        self.launcher = plugins.Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> None:
        """Search, and write the best overrides into the folder of the sweep."""
        from .. import Search  # pyright: ignore[reportMissingImports]  (not for all who use Hydra)

        folder = Path(self.config.hydra.sweep.dir).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        OmegaConf.save(self.config, folder / "multirun.yaml")
        parser = overrides_parser.OverridesParser.create(config_loader=self.hydra_context.config_loader)
        given = [*(f"{name}={value}" for name, value in self._params.items()), *arguments]
        space = HydraSpace(parser.parse_overrides(given))
        with Search(space.form, folder=self._folder or folder / "pitchpipe", **self._options) as search:
            search.reclaim()
            _Sweep(search, lambda trial: self._launch(trial, space), catch=self._catch).run(self._jobs)
            OmegaConf.save(_summary(search.results()), folder / "optimization_results.yaml")

    def _launch(self, trial: Any, space: HydraSpace) -> Any:
        """Run a job to its end; return its return value, or raise its error."""
        overrides = space.overrides(trial.parameters)
        self.validate_batch_is_legal([overrides])
        (job,) = self.launcher.launch([overrides], initial_job_idx=trial.number)
        return job.return_value


class _Sweep:
    """The jobs of a search, one or several at a time."""

    def __init__(self, search: Any, launch: Callable[[Any], Any], *, catch: bool) -> None:
        self._search, self._launch, self._catch = search, launch, catch
        self._is_over = False

    def run(self, at_once: int) -> None:
        """Run jobs until none is left; raise `HydraException` for the first that fails, unless errors are caught."""
        if at_once > 1:
            self._run_processes(at_once)
            return
        while (trial := self._next()) is not None:
            self._tell(trial, *_outcome_of(self._launch, trial))

    def _run_processes(self, at_once: int) -> None:
        running: dict[Any, tuple[Any, Any]] = {}
        try:
            while True:
                while len(running) < at_once and (trial := self._next()) is not None:
                    connection, process = _start_job(self._launch, trial)
                    running[connection] = trial, process
                if not running:
                    return
                for connection in wait(list(running)):
                    trial, process = running.pop(connection)
                    self._tell(trial, *_receive_outcome(connection, process))
        finally:
            for _, process in running.values():
                process.terminate()
                process.join()

    def _next(self) -> Any:
        if self._is_over:
            return None
        try:
            return self._search.ask()
        except NoMoreTrialError as error:
            self._is_over = True
            _log.info("no further job: %s", error)
            return None

    def _tell(self, trial: Any, value: Any, error: str) -> None:
        if not error:
            self._search.tell(trial, value)
            return
        self._search.fail(trial, error)
        if not self._catch:
            raise errors.HydraException(f"job {trial.number} failed ({trial.parameters}):\n{error}")


def _plain(value: Any) -> Any:
    return OmegaConf.to_container(value) if OmegaConf.is_config(value) else value


def _outcome_of(launch: Callable[[Any], Any], trial: Any) -> tuple[Any, str]:
    """Return the return value of a job and no error, or None and its error."""
    try:
        return launch(trial), ""
    except Exception:  # noqa: BLE001  (any error of the job)
        return None, traceback.format_exc().strip()


def _start_job(launch: Callable[[Any], Any], trial: Any) -> tuple[Any, Any]:
    """Start a job in a process of its own; return the connection that receives its outcome, and the process."""
    receiver, sender = multiprocessing.Pipe(duplex=False)

    def run() -> None:
        sender.send(_outcome_of(launch, trial))
        # A launcher such as that of joblib keeps its processes for the next job.
        for idle in multiprocessing.active_children():
            idle.terminate()

    # A fork has the script, its modules and the launcher in their present state.
    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    sender.close()
    return receiver, process


def _receive_outcome(connection: Any, process: Any) -> tuple[Any, str]:
    """Return the outcome of a job that has ended."""
    try:
        outcome = connection.recv()
    except EOFError:
        outcome = None
    process.join()
    connection.close()
    return outcome or (None, f"its process ended with exit code {process.exitcode}")


def _summary(result: Any) -> JsonObject:
    """Return the outcome of a sweep, with the names that Hydra's other sweepers use."""
    best = result.best
    if isinstance(best, list):
        solutions = [{"params": dict(trial.parameters), "values": dict(trial.value)} for trial in best]
        return {"name": "pitchpipe", "solutions": solutions}
    if best is None:
        return {"name": "pitchpipe", "best_params": None, "best_value": None}
    return {"name": "pitchpipe", "best_params": dict(best.parameters), "best_value": best.value}


class HydraSpace:
    """The search space (`form`) of overrides that include sweeps: `choice`, `range`, `interval`, and their short forms.

    `tag(log, ...)` searches on a logarithmic scale, and `int(interval(1, 8))` is an integer from 1 to 8. Raises
    ValueError if no override is a sweep.
    """

    def __init__(self, given: Sequence[Any]) -> None:
        last = {each.get_key_element(): each for each in given}  # the last one counts, as everywhere in Hydra
        swept = {key: each for key, each in last.items() if each.is_sweep_override()}
        self._fixed = [each.input_line for key, each in last.items() if key not in swept]
        self._keys = {_name(each): key for key, each in swept.items()}
        self.form = {_name(each): _form(each) for each in swept.values()}
        if not self.form:
            raise ValueError(
                "there is nothing to search: no override is a sweep, such as lr=interval(0.1, 1)"
            )

    def overrides(self, parameters: Parameters) -> list[str]:
        """Return the overrides of a job with these parameters."""
        return [*self._fixed, *(f"{self._keys[name]}={value}" for name, value in parameters.items())]


def _name(override: Any) -> str:
    """Return the name of a parameter: its key without the `+`."""
    return override.get_key_element().lstrip("+")


def _form(override: Any) -> JsonObject:
    value = override.value()
    logarithmic = "log" in getattr(value, "tags", ())
    if override.is_interval_sweep():
        return _interval(value.start, value.end, "log" if logarithmic else "")
    if override.is_range_sweep() and logarithmic and value.step == 1 and isinstance(value.start, int):
        return {"_type": "lograndint", "_value": [value.start, value.stop]}
    if override.is_range_sweep() and value.step == 1 and isinstance(value.start, int):
        return {"_type": "randint", "_value": [value.start, value.stop]}
    return {"_type": "choice", "_value": list(override.sweep_iterator(_option))}


def _interval(start: float, end: float, scale: str) -> JsonObject:
    if isinstance(start, int) and isinstance(end, int):
        return {"_type": f"{scale}randint", "_value": [start, end + 1]}
    return {"_type": f"{scale}uniform", "_value": [start, end]}


def _option(value: Any) -> Any:
    """Return a number unchanged, and everything else in the syntax of overrides."""
    return value if isinstance(value, int | float) else override_types.Transformer.str(value)
