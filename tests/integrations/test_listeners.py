"""MLflow, TensorBoard and W&B have a run for each trial: parameters, metrics, and how it ended."""

import json
import logging
import re
import shutil
import struct
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pitchpipe import Experiment, report_intermediate_result
from pitchpipe.integrations.listening import RunListener

from .test_documentation import EXAMPLES, PAGE

SPACE = {"_type": "choice", "_value": [{"_name": "line", "x": {"_type": "uniform", "_value": [0, 1]}}]}


def run(folder: Path, callback: Any, **options: Any) -> Any:
    """Run two trials: number 0 fails, number 1 succeeds."""

    def objective(parameters: dict[str, Any]) -> dict[str, float]:
        if parameters["model"]["_name"] == "broken":
            raise RuntimeError("broken")
        for step in range(3):
            odd = {"late": None, "huge": 10**400, "best": [], "note": "0.5"}  # no tracker can draw these
            report_intermediate_result({"default": parameters["model"]["x"] + step, "loss": step / 2, **odd})
        return {"default": parameters["model"]["x"], "loss": 0.5}

    space = {**SPACE, "_value": [*SPACE["_value"], {"_name": "broken"}]}
    points: list[Any] = [{"model": {"_name": "broken"}}, {"model": {"_name": "line", "x": 0.25}}]
    experiment = Experiment(
        objective,
        {"model": space},
        platform="local",
        tuner={"name": "Random"},
        initial_points=points,
        max_trial_number=2,
        experiment_id="listened",
        directory=folder,
        callbacks=[callback],
        **options,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the trackers' own
        result = experiment.run()
    assert result.counts == {"SUCCEEDED": 1, "FAILED": 1}
    return result


class Listener(RunListener):
    """Keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[Any, ...]] = []

    def open_experiment(self, experiment: Any) -> None:
        self.told.append(("experiment", experiment["id"]))

    def open_run(self, trial: Any, parameters: Any) -> int:
        self.told.append(("open", trial["sequence_id"], parameters))
        return trial["sequence_id"]

    def log(self, run: int, metrics: Any, step: int) -> None:
        self.told.append(("log", run, metrics, step))

    def close_run(self, run: int, trial: Any) -> None:
        self.told.append(("close", run, trial["status"]))

    def close_experiment(self, experiment: Any) -> None:
        self.told.append(("end", experiment["status"]))


def test_listener_hears_everything_in_order(tmp_path: Path) -> None:
    listener = Listener()
    run(tmp_path, listener, trial_concurrency=1)
    logs = [("log", 1, {"default": 0.25 + step, "loss": step / 2}, step + 1) for step in range(3)]
    assert listener.told == [
        ("experiment", "listened"),
        ("open", 0, {"model": "broken"}),
        ("close", 0, "FAILED"),
        ("open", 1, {"model": "line", "x": 0.25}),
        *logs,
        ("log", 1, {"default": 0.25, "loss": 0.5}, 3),
        ("close", 1, "SUCCEEDED"),
        ("end", "DONE"),
    ]


def test_listener_that_fails_is_logged_and_hears_nothing_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(Listener):
        def log(self, run: int, metrics: Any, step: int) -> None:
            raise OSError("the tracker is away")

    failing = Failing()
    with caplog.at_level(logging.ERROR):
        run(tmp_path, failing, trial_concurrency=1)
    assert failing.told[-1][:2] == ("open", 1)
    assert caplog.text.count("Failing failed; it gets nothing more") == 1


@pytest.fixture(scope="module")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a database of MLflow: it takes seconds."""
    mlflow = pytest.importorskip("mlflow")
    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mlflow.MlflowClient(f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def database(tmp_path: Path, empty_database: Path) -> Path:
    """Return an empty database, at the place where MLflow makes it in the test's folder."""
    return Path(shutil.copy(empty_database, tmp_path))


def test_mlflow_has_a_run_for_each_trial_inside_that_of_the_experiment(
    tmp_path: Path, database: Path, quiet: None
) -> None:
    mlflow = pytest.importorskip("mlflow")
    from pitchpipe.integrations.mlflow import MLflowCallback

    uri = f"sqlite:///{database}"
    run(tmp_path, MLflowCallback(uri, "tuning"))
    client = mlflow.MlflowClient(uri)
    place = client.get_experiment_by_name("tuning").experiment_id
    runs = {one.info.run_name: one for one in client.search_runs([place])}
    assert {name: one.info.status for name, one in runs.items()} == {
        "listened": "FINISHED",
        "trial 0": "FAILED",
        "trial 1": "FINISHED",
    }
    trial = runs["trial 1"]
    assert trial.data.tags["mlflow.parentRunId"] == runs["listened"].info.run_id
    assert runs["listened"].data.tags["pitchpipe.best"] == "trial 1"
    assert trial.data.params == {"model": "line", "x": "0.25"}
    assert trial.data.metrics == {"default": 0.25, "loss": 0.5}
    history = client.get_metric_history(trial.info.run_id, "default")
    assert sorted((one.step, one.value) for one in history) == [(1, 0.25), (2, 1.25), (3, 0.25), (3, 2.25)]


def test_mlflow_continues_the_runs_of_an_experiment_that_is_resumed(
    tmp_path: Path, database: Path, quiet: None
) -> None:
    mlflow = pytest.importorskip("mlflow")
    from pitchpipe.integrations.mlflow import MLflowCallback

    uri = f"sqlite:///{database}"
    folder = run(tmp_path, MLflowCallback(uri)).folder
    again = Experiment.restore(
        folder, max_trial_number=3, restart_errored=True, callbacks=[MLflowCallback(uri)]
    )
    again.run()
    names = [one.info.run_name for one in mlflow.MlflowClient(uri).search_runs(["0"])]
    assert sorted(names) == ["listened", "trial 0", "trial 1", "trial 2"]


def test_tensorboard_has_metrics_and_parameters_of_each_trial(tmp_path: Path, quiet: None) -> None:
    pytest.importorskip("tensorboardX")
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    from pitchpipe.integrations.tensorboard import TensorBoardCallback

    folder = run(tmp_path, TensorBoardCallback()).folder / "tensorboard"
    assert sorted(path.name for path in folder.iterdir()) == ["trial-0", "trial-1"]
    trial = events.EventAccumulator(str(folder / "trial-1")).Reload()
    points = [(event.step, event.value) for event in trial.Scalars("default")]
    assert points == [(1, 0.25), (2, 1.25), (3, 2.25), (3, 0.25)]
    assert [event.value for event in trial.Scalars("final/value")] == [0.25]
    assert trial.SummaryMetadata("_hparams_/session_start_info").plugin_data.plugin_name == "hparams"


def records_of(path: Path) -> Iterator[bytes]:
    """Yield the records of a file in LevelDB's log format, after a header of 7 bytes."""
    data, position, parts, block = path.read_bytes(), 7, b"", 32 * 1024
    while position + 7 <= len(data):
        if block - position % block < 7:
            position += block - position % block
            continue
        length, kind = struct.unpack_from("<HB", data, position + 4)
        parts += data[position + 7 : position + 7 + length]
        position += 7 + length
        if kind in (1, 4):  # the whole record, or its last part
            yield parts
            parts = b""


def test_wandb_has_a_run_for_each_trial_in_the_group_of_the_experiment(tmp_path: Path, quiet: None) -> None:
    wandb = pytest.importorskip("wandb")
    from wandb.proto.wandb_internal_pb2 import Record

    from pitchpipe.integrations.wandb import WandbCallback

    folder = run(tmp_path, WandbCallback(project="tuning", mode="offline")).folder
    wandb.teardown()  # its process would live as long as this one
    runs: dict[str, dict[str, Any]] = {}
    for path in (folder / "wandb").glob("offline-run-*/*.wandb"):
        kept: dict[str, Any] = {"history": []}
        for data in records_of(path):
            record = Record()
            record.ParseFromString(data)
            if record.HasField("run"):
                kept |= {"id": record.run.run_id, "group": record.run.run_group}
                kept["config"] = {item.key: item.value_json for item in record.run.config.update}
            if record.HasField("history"):
                kept["history"].append(
                    {item.key or item.nested_key[0]: item.value_json for item in record.history.item}
                )
            if record.HasField("exit"):
                kept["code"] = record.exit.exit_code
        runs[kept["id"]] = kept
    assert {name: (one["group"], one["code"]) for name, one in runs.items()} == {
        "listened": ("listened", 0),
        "listened-0": ("listened", 1),
        "listened-1": ("listened", 0),
    }
    trial = runs["listened-1"]
    assert (trial["config"]["model"], trial["config"]["x"]) == ('"line"', "0.25")
    assert [row["default"] for row in trial["history"]] == ["0.25", "1.25", "2.25", "0.25"]


def test_trackers_of_a_config_get_the_trials(
    tmp_path: Path, database: Path, pitchpipe_run: Callable[..., str], quiet: None
) -> None:
    (config,) = re.findall(r"^```yaml\n(trackers:.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    for library in ("mlflow", "tensorboardX", "wandb"):
        pytest.importorskip(library)
    rest = """
trial_command: echo '{"final":1.5}' >> $PITCHPIPE_REPORTS
max_trial_number: 2
search_space: {x: {_type: uniform, _value: [0, 1]}}
training_service: {platform: local}
"""
    (tmp_path / "experiment.yml").write_text(config + rest)
    summary = json.loads(pitchpipe_run(tmp_path, "run", "experiment.yml", "--json"))
    assert summary["counts"] == {"SUCCEEDED": 2}
    folder = Path(summary["folder"])
    assert len(list(folder.glob("tensorboard/trial-*/events*"))) == 2
    assert len(list(folder.glob("wandb/offline-run-*"))) == 3  # with that of the experiment
    import mlflow

    client = mlflow.MlflowClient(f"sqlite:///{database}")
    place = client.get_experiment_by_name("digits")
    assert len(client.search_runs([place.experiment_id])) == 3


ROWS = re.findall(r"^\| `(\.(\w+) import \w+)` \| `(.+?)` \|", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("module", "library", "call"), ROWS, ids=[row[1] for row in ROWS])
def test_tracker_takes_the_place_of_another(
    tmp_path: Path,
    request: pytest.FixtureRequest,
    by_hand: Callable[..., str],
    module: str,
    library: str,
    call: str,
) -> None:
    pytest.importorskip(library)
    if library == "mlflow":
        request.getfixturevalue("database")
    script = EXAMPLES["Trackers"].replace(".mlflow import MLflowCallback", module)
    (tmp_path / "tune.py").write_text(script.replace("MLflowCallback()", call))
    assert by_hand(tmp_path / "tune.py").splitlines()[-1] == "DONE"
