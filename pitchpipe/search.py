"""`Search`: ask for parameters and tell results in your own loop. `minimize` and `maximize` are such loops."""

from __future__ import annotations

import operator
import os
import shutil
import tempfile
import traceback
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Unpack

from .keywords import ARGUMENTS, Algorithm, Point, SearchOptions, Section, completed, given_objectives
from .plots import Plots
from .progress import forget_closed_stderr, shown_progress
from .protocol import Direction, Json, Parameters, loads, parameters_of, seed_of_repeat
from .results import ExperimentResult, Interrupted, result_of, warn_if_none_succeeded
from .sdk import NoRunningTrial, TrialFunction, TrialStopped, hosted, metric_text, shortened

if TYPE_CHECKING:
    from .config import ConfigProblem, ExperimentConfig
    from .manager import SearchSession
    from .runner import AttemptOrder, Trial

Errors = type[Exception] | tuple[type[Exception], ...]
_NEEDS_SPACE = "a new search needs a space, such as {'x': pitchpipe.uniform(0, 1)}"
_UNFINISHED = ("RUNNING", "NO_MORE_TRIAL", "TUNER_NO_MORE_TRIAL")


class _Scratch:
    """A temporary folder, removed with this object, but without the `ResourceWarning` of `TemporaryDirectory`."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="pitchpipe-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class SearchTrial:
    """A trial that you run: its `parameters`, its `id`, its `number` in the search.

    `budget` is how long to train, in the tuner's unit, and `seed` the seed of a repeat; None where there is none.
    """

    def __init__(self, session: SearchSession, order: AttemptOrder | Trial, *, reported: int = 0) -> None:
        self.id: str = order.trial_id
        self.number: int = order.sequence_id
        self.attempt: int = order.attempt
        self.parameters: Parameters = parameters_of(order.record)
        self.budget: float | None = order.budget
        self.seed: int | None = seed_of_repeat(order.record)
        self.stop_reason: str | None = None
        self._session = session
        self._steps = range(reported)  # those that were reported
        self._has_reported = False

    def __repr__(self) -> str:
        return f"<trial {self.number} ({self.id}): {self.parameters}>"

    def report(self, step: int, value: Any) -> None:
        """Report an intermediate result: a number, or a dict with the metrics; steps rise by one from any first step.

        Reporting a step again changes nothing. Raises `TypeError` or `ValueError` for a wrong value or step, and
        `TrialOverError` for a trial that has ended.
        """
        text = metric_text(value)
        if why_not := self._session.why_not_judged(text):
            raise ValueError(f"trial {self.number} {why_not}")
        self._take(step, text)

    def _take(self, step: int, text: str) -> None:
        """Report an intermediate result, as JSON, without checking that the assessor can judge it."""
        steps = self._steps
        if step > steps.stop and not self._has_reported:  # its steps do not begin at 0
            steps = range(step - len(steps), step)
        if not steps.start <= step <= steps.stop:
            raise ValueError(
                f"trial {self.number} reports step {step}, the next one is {steps.stop}: steps rise by one"
            )
        self.stop_reason = self._session.report(self.id, self.attempt, step - steps.start, text)
        self._steps = range(steps.start, max(steps.stop, step + 1))
        self._has_reported = True

    def should_stop(self) -> bool:
        """Return whether the assessor decided after the last report that the trial should stop."""
        return self.stop_reason is not None


class Search(Plots):
    """A search whose trials you run: `ask` for parameters, `tell` the result, in any order and number.

    Without a `folder`, the results end with this object. In a folder they stay: later processes, or several at once on
    this machine, continue the search, and the command line, pages and figures show it. A folder that contains a search
    needs no other argument; those that are given must be the same as before. `n_trials` bounds the number of trials in
    all processes. `direction` belongs to the only `metric`; `objectives` and all other arguments are fields of
    experiment.yml, see docs/reference/config.md. Raises `ConfigError`, `DispatcherError` for plug-ins that cannot be
    made, `FolderError`, `StoreError`, and `ValueError` for a folder with another search or a tuner that pauses trials.

    >>> from pitchpipe import Search, uniform
    >>> with Search({"x": uniform(-5, 5)}, tuner="Random", seed=1) as search:
    ...     for _ in range(20):
    ...         trial = search.ask()
    ...         status = search.tell(trial, (trial.parameters["x"] - 1) ** 2)
    ...     best = search.results().best
    >>> status, 0 < best.parameters["x"] < 2
    ('SUCCEEDED', True)
    """

    @completed()
    def __init__(
        self,
        space: Mapping[str, Json] | None = None,
        *,
        folder: str | Path | None = None,
        n_trials: int | None = None,
        direction: Direction | None = None,
        metric: str = "default",
        objectives: Sequence[Section] | None = None,
        tuner: Algorithm | None = None,
        assessor: Algorithm | None = None,
        constraints: Sequence[str] | None = None,
        defaults: Point | None = None,
        initial_points: Sequence[Point] | None = None,
        priors: Section | None = None,
        stop_when: Section | None = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> None:
        from .manager import SearchSession
        from .store import ExperimentFolder, FolderError, absolute

        forget_closed_stderr()
        given = {
            "objectives": given_objectives(direction, metric, objectives),
            "tuner": tuner,
            "assessor": assessor,
            "constraints": constraints,
            "defaults": defaults,
            "initial_points": initial_points,
            "priors": priors,
            "stop_when": stop_when,
            "seed": seed,
            "experiment_name": name,
            "max_trial_number": n_trials,
        }
        if space is None and folder is None:
            raise TypeError(_NEEDS_SPACE)
        config = _config(space, {key: value for key, value in given.items() if value is not None})
        self._scratch = _Scratch() if folder is None else None
        path = self._scratch.path / "search" if self._scratch is not None else Path(folder or "")
        if space is None and not ExperimentFolder(absolute(path)).has_experiment:
            raise FolderError(f"there is no search in {absolute(path)}: {_NEEDS_SPACE}")
        self._session = SearchSession(path, config)
        self._closing = weakref.finalize(self, self._session.close)
        self._session.running()  # raises an error if the search cannot be continued

    def __enter__(self) -> Search:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the search. Its results stay readable: in a `folder` for good, else as long as this object exists."""
        self._closing()

    @property
    def folder(self) -> Path:
        """The folder of the search."""
        return self._session.folder.path

    def ask(self) -> SearchTrial:
        """Return the next trial to run; raise `NoMoreTrialError` if there is none now."""
        from .tuners import NoMoreTrialError

        order = self._session.begin()
        if order is None:
            raise NoMoreTrialError(self._session.why_none())
        return SearchTrial(self._session, order)

    def tell(self, trial: SearchTrial | str | int, value: Any = None) -> str:
        """Take the result of a trial, which may be given by its id or number; return the trial's status.

        The result is a number, or a dict with a number for each objective; by default it is the last report. A trial
        that `should_stop` ends as EARLY_STOPPED, whatever its result; NaN ends it as FAILED. Raises `ValueError` or
        `TypeError` for a result that is not a number, `UnknownTrialError`, and `TrialOverError` for a trial that has
        ended already; in all these cases nothing changes.
        """
        text = None if value is None else metric_text(value)
        return self._session.end(*_key(trial), final=text).status.value

    def fail(self, trial: SearchTrial | str | int, reason: str = "failed") -> str:
        """End a trial that has no result, and notify the tuner; return its status. Raises the errors of `tell`."""
        return self._session.fail(*_key(trial), error=reason).status.value

    def give_back(self, trial: SearchTrial | str | int) -> str:
        """End a trial without a verdict, so that `ask` returns it again, at most four times; return its status."""
        return self._session.fail(*_key(trial), error="given back", lost=True).status.value

    def running(self) -> list[SearchTrial]:
        """Return the trials that were asked for and have not ended, in all processes that share the folder."""
        return [
            SearchTrial(self._session, trial, reported=trial.next_sequence)
            for trial in self._session.running()
        ]

    def reclaim(self) -> int:
        """Give back the trials of processes that have ended; return how many.

        Only for loops in which the process that asks also tells.
        """
        return self._session.reclaim()

    def results(self) -> ExperimentResult:
        """Return the results so far, from all processes."""
        return result_of(self.folder, keeps=self._scratch)

    def _folder_to_plot(self) -> Path:
        return self.folder


@completed(SearchOptions)
def minimize(
    function: TrialFunction,
    space: Mapping[str, Json],
    n_trials: int,
    *,
    timeout: float | None = None,
    catch: Errors = (),
    progress: bool = True,
    **options: Unpack[SearchOptions],
) -> ExperimentResult:
    """Search for the parameters with the smallest result of a function, in this process; return the results.

    The function gets the parameters as a dict. Its result is what it returns, or else the last value it reports: a
    number, or a dict with the `metric`. It is called for `n_trials` trials, or for `timeout` seconds (a call is not
    interrupted). Every error is a failed trial, and ends the search unless its type is in `catch`. In a `folder`, a
    later call continues the search up to `n_trials` in all, and several processes share them. With `progress`, a
    terminal or a notebook shows how far it is; elsewhere stderr gets a line now and then. The `options` and errors are
    those of `Search`. Ctrl-C raises `Interrupted`, a KeyboardInterrupt with the results so far as its `result`.

    >>> from pitchpipe import minimize, uniform
    >>> result = minimize(lambda parameters: (parameters["x"] - 1) ** 2, {"x": uniform(-5, 5)}, 25, seed=1)
    >>> abs(result.best.parameters["x"] - 1) < 0.1, len(result.trials)
    (True, 25)
    """
    seconds = _seconds_of("minimize", timeout, options)
    with Search(space, n_trials=n_trials, direction="minimize", **options) as search:
        return _run(search, function, seconds, catch, progress)


@completed(SearchOptions)
def maximize(
    function: TrialFunction,
    space: Mapping[str, Json],
    n_trials: int,
    *,
    timeout: float | None = None,
    catch: Errors = (),
    progress: bool = True,
    **options: Unpack[SearchOptions],
) -> ExperimentResult:
    """Search for the parameters with the largest result of a function; otherwise like `minimize`.

    >>> from pitchpipe import maximize, randint
    >>> maximize(lambda parameters: parameters["n"], {"n": randint(0, 4)}, 10).best.value
    3.0
    """
    seconds = _seconds_of("maximize", timeout, options)
    with Search(space, n_trials=n_trials, direction="maximize", **options) as search:
        return _run(search, function, seconds, catch, progress)


def _config(space: Mapping[str, Json] | None, fields: Mapping[str, object]) -> ExperimentConfig | None:
    """Return the config of a search, None without a space: the folder has it."""
    from .config import ConfigError, ExperimentConfig, check_samples

    if space is None:
        if fields:
            given = ", ".join(ARGUMENTS.get(name, name) for name in fields)
            raise TypeError(
                f"without the space, the search in a folder takes no {given}: give the space, too"
            )
        return None
    data = {"search_space": dict(space), "training_service": {"platform": "local"}, **fields}
    try:
        config = ExperimentConfig.from_dict(data, needs_command=False)
    except ConfigError as error:
        raise ConfigError([_renamed(problem) for problem in error.problems]) from None
    if problems := check_samples(config):
        raise ConfigError(problems)
    return config


def _renamed(problem: ConfigProblem) -> ConfigProblem:
    """Return a problem with the names of arguments in place of those of fields."""
    path, message = problem.path, problem.message
    for field, argument in ARGUMENTS.items():
        path = (argument, *path[1:]) if path[:1] == (field,) else path
        message = message.replace(field, argument)
    return replace(problem, path=path, message=message)


def _key(trial: SearchTrial | str | int) -> tuple[str | int, int | None]:
    """Return the id or number of a trial and, where it is known, the attempt; raise `TypeError`."""
    if isinstance(trial, SearchTrial):
        return trial.id, trial.attempt
    if isinstance(trial, str):
        return trial, None
    try:
        return operator.index(trial), None
    except TypeError:
        raise TypeError(
            f"{trial!r:.100} is not a trial: give what `ask` returned, its id or its number"
        ) from None


# ------------------------------------------------------------------ the loop of minimize


def _run(
    search: Search, function: TrialFunction, timeout: float | None, catch: Errors, progress: bool
) -> ExperimentResult:
    from .tuners import NoMoreTrialError

    deadline, reason = None if timeout is None else monotonic() + timeout, ""
    search.reclaim()
    try:
        with shown_progress(search._session, is_wanted=progress):
            while deadline is None or monotonic() < deadline:
                try:
                    trial = search.ask()
                except NoMoreTrialError:
                    if search.reclaim():  # trials of a process that has ended meanwhile
                        continue
                    break
                with suppress(*(catch if isinstance(catch, tuple) else (catch,))):
                    _run_trial(search, trial, function)
            else:
                reason = f"timeout ({timeout:g} s) is over"
    except KeyboardInterrupt as error:
        how = (
            "the same call continues it"
            if search._scratch is None
            else "only one with a folder can be continued"
        )
        raise Interrupted(f"the search was interrupted: {how}", _ended(search)) from error
    result = _ended(search, reason)
    warn_if_none_succeeded(result)
    return result


def _seconds_of(name: str, timeout: Any, options: Mapping[str, object]) -> float | None:
    """Return the time (s) that `minimize` or `maximize` has; raise `TypeError` or `ValueError` for bad arguments."""
    if "objectives" in options:
        raise TypeError(
            f"{name} has one objective: name its metric by metric='NAME'; several are for"
            " Search(objectives=...) and Experiment(objectives=...)"
        )
    if "n_jobs" in options:
        raise TypeError(
            f"{name} runs one trial at a time; several at once: Experiment(..., trial_concurrency=2)"
        )
    if "direction" in options:
        raise TypeError(f"{name} has a direction already: leave out direction")
    if timeout is None:
        return None
    if not isinstance(timeout, int | float) or not timeout >= 0:
        raise ValueError(f"timeout must be a number of seconds, 0 or more, not {timeout!r}")
    return float(timeout)


def _ended(search: Search, reason: str = "") -> ExperimentResult:
    """Return the results; a search that could continue is STOPPED if no other process runs its trials."""
    result = search.results()
    if result.status in _UNFINISHED and not search.running():
        return replace(result, status="STOPPED", reason=reason or result.reason)
    return result


def _run_trial(search: Search, trial: SearchTrial, function: TrialFunction) -> None:
    """Call the function and tell its result; give back a trial that is interrupted."""
    channel = _Channel(search, trial)
    try:
        with channel.entered():
            returned = function(dict(trial.parameters))
        search.tell(trial, channel.final if returned is None else returned)
    except TrialStopped:
        search.tell(trial)
    except Exception:
        search.fail(trial, shortened(traceback.format_exc().strip()))
        raise
    except BaseException:
        search.give_back(trial)
        raise


class _Channel:
    """The channel of `report_intermediate_result` and its siblings in a function that `minimize` calls."""

    checkpoint: str | None = None

    def __init__(self, search: Search, trial: SearchTrial) -> None:
        self.experiment_id = search.folder.name
        self.trial_id, self.sequence_id = trial.id, trial.number
        self.budget, self.seed = trial.budget, trial.seed
        self.final: Any = None
        self._trial = trial
        self._steps = 0
        self._pid = os.getpid()
        self._is_over = False

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Be the channel of the function that this thread calls in a block, and of the threads that it starts."""
        with hosted(self):
            try:
                yield
            finally:
                self._is_over = True

    def parameters(self) -> Parameters:
        """Return the trial's parameters."""
        return dict(self._trial.parameters)

    def report(self, kind: str, value: str) -> None:
        """Take a result, JSON text; raise `TrialStopped` if the trial should stop."""
        if os.getpid() != self._pid:
            raise NoRunningTrial("a trial reports from its own process, not from one it forked")
        if self._is_over:
            raise NoRunningTrial(f"trial {self.sequence_id} is over: its function has returned")
        if kind == "final":
            self.final = loads(value) if self.final is None else self.final
            return
        self._trial._take(self._steps, value)
        self._steps += 1
        if self._trial.should_stop():
            raise TrialStopped

    def save(self, fill: Callable[[str], object]) -> None:
        """Save nothing: a trial that runs again begins from the start."""
