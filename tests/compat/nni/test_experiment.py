"""`nni.experiment`: scripts that start an experiment from Python, as they were written for NNI."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.compat.nni.alias.dispatching import HyperoptTuner
from pitchpipe.compat.nni.config import (
    AlgorithmConfig,
    CustomAlgorithmConfig,
    ExperimentConfig,
    LocalConfig,
    RemoteConfig,
    RemoteMachineConfig,
)
from pitchpipe.compat.nni.experiment import Experiment, ExperimentError, RunMode
from pitchpipe.config import ConfigError
from pitchpipe.config import ExperimentConfig as OwnConfig
from pitchpipe.store import ExperimentFolder
from pitchpipe.tuners import EvolutionTuner

from ...stored import MadeExperiment, a_trial

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}
TRAIN = """\
import nni
x = nni.get_next_parameter()["x"]
for step in range(3):
    nni.report_intermediate_result(x + step)
nni.report_final_result({"default": x, "twice": 2 * x})
"""
HEAD = """\
import json
from nni.experiment import Experiment, RunMode
experiment = Experiment("local")
experiment.config.trial_command = "python train.py"
experiment.config.trial_code_directory = "."
experiment.config.search_space = {"x": {"_type": "uniform", "_value": [0, 1]}}
experiment.config.tuner.name = "Random"
experiment.config.tuner.class_args["seed"] = 1
experiment.config.max_trial_number = 4
experiment.config.trial_concurrency = 2
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a trial script; experiments go to `experiments` in it."""
    (tmp_path / "train.py").write_text(TRAIN)
    monkeypatch.setenv("PITCHPIPE_DIR", str(tmp_path / "experiments"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def launch(project: Path, body: str, head: str = HEAD) -> Any:
    """Run a launch script and return what it prints last, as JSON."""
    (project / "launch.py").write_text(head + body)
    command = [sys.executable, "-m", "pitchpipe.nni", "launch.py"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def config(**fields: Any) -> ExperimentConfig:
    return ExperimentConfig("local", trial_command="python train.py", search_space=SPACE, **fields)


def test_fields_are_attributes_and_others_are_refused() -> None:
    made = config(max_trial_number=3)
    assert (made.max_trial_number, made.trial_gpu_number, made.tuner.class_args) == (3, None, {})
    for section in (made, made.tuner, made.training_service):
        with pytest.raises(AttributeError, match="has no field 'max_trial_numbr'"):
            section.max_trial_numbr = 4
        with pytest.raises(AttributeError, match="has no field 'max_trial_numbr'"):
            _ = section.max_trial_numbr


def test_config_has_absolute_paths_and_what_is_set() -> None:
    made = config(assessor=AlgorithmConfig("Medianstop"))
    made.tuner = CustomAlgorithmConfig(class_name="mine.Tuner", code_directory="plugins", class_args={"a": 1})
    made.training_service.use_active_gpu = True
    here = os.getcwd()
    folder = os.path.join(here, "plugins")
    assert made.json() == {
        "experimentType": "hpo",
        "trialCommand": "python train.py",
        "trialCodeDirectory": here,
        "searchSpace": SPACE,
        "tuner": {"className": "mine.Tuner", "codeDirectory": folder, "classArgs": {"a": 1}},
        "assessor": {"name": "Medianstop", "classArgs": {}},
        "trainingService": {"platform": "local", "useActiveGpu": True},
    }


def test_advisor_is_the_tuner_where_one_is_named() -> None:
    made = config(max_trial_number=3)
    made.advisor.name, made.advisor.class_args = "Hyperband", {"R": 9}
    own = OwnConfig.from_dict(made.plain())
    assert (own.tuner.name, own.tuner.class_args, own.assessor) == ("Hyperband", {"R": 9}, None)


def test_config_can_be_made_of_what_json_returns(project: Path) -> None:
    (project / "space.json").write_text(json.dumps(SPACE))
    made = config(max_trial_number=3)
    made.tuner.name = "Random"
    again = ExperimentConfig(**made.json())
    assert (again.tuner.name, again.max_trial_number) == ("Random", 3)
    assert isinstance(again.training_service, LocalConfig)
    assert again.json() == made.json()
    again.search_space, again.search_space_file = None, "space.json"
    assert again.json()["searchSpace"] == SPACE
    with pytest.raises(AttributeError, match="ExperimentConfig has no field 'max_trial_numbr'"):
        ExperimentConfig("local", maxTrialNumbr=3)


def test_bad_config_is_refused_with_all_problems() -> None:
    with pytest.raises(ConfigError, match=r"(?s)trial_concurrency.*max_trial_number"):
        config(trial_concurrency=0, max_trial_number=-1).validate()
    remote = config(max_trial_number=1)
    remote.training_service = RemoteConfig(machine_list=[RemoteMachineConfig(host="10.0.0.1", user="bob")])
    with pytest.raises(ConfigError, match=r'platform "remote" is not supported.* --hosts bob@10\.0\.0\.1`'):
        remote.validate()


def test_of_local_and_remote_the_local_platform_is_used() -> None:
    made = ExperimentConfig(["local", "remote"], trial_command="true", search_space=SPACE, max_trial_number=1)
    made.training_service[0].use_active_gpu = True
    made.training_service[1].machine_list = [RemoteMachineConfig(host="10.0.0.1", user="bob")]
    own = OwnConfig.from_dict(made.plain())
    assert own.canonical()["trainingService"]["useActiveGpu"] is True
    (warning,) = own.warnings
    assert "`pitchpipe cluster up --hosts bob@10.0.0.1`" in warning


def test_config_is_read_from_a_file(project: Path) -> None:
    (project / "config.yml").write_text(
        "trainingServicePlatform: local\nmaxTrialNum: 3\nsearchSpace: {}\n"
        "trial: {command: python train.py, codeDir: .}\ntuner: {builtinTunerName: Random}\n"
    )
    made = ExperimentConfig.load("config.yml")
    assert (made.max_trial_number, made.tuner.name, made.trial_command) == (3, "Random", "python train.py")
    assert isinstance(made.training_service, LocalConfig)
    made.validate()


def test_what_does_not_exist_is_an_error_with_a_sentence(project: Path) -> None:
    with pytest.raises(ExperimentError, match="an experiment needs a config to start"):
        Experiment(id="absent").start()
    with pytest.raises(ExperimentError, match="the experiment was not started"):
        Experiment().get_status()
    with pytest.raises(ExperimentError, match=f"there is no experiment absent in {project / 'experiments'}"):
        Experiment(id="absent").get_status()
    with pytest.raises(ExperimentError, match=r"there is no experiment|no experiment"):
        Experiment.resume("absent")
    with pytest.raises(ExperimentError, match=r"expected one running experiment in .*, found: none"):
        Experiment.connect(8080)
    assert not Experiment(id="absent").has_checkpoint()
    Experiment("local").stop()


def test_experiment_has_its_id_before_it_starts(project: Path) -> None:
    first, second = Experiment("local"), Experiment(config(), id="mine")
    assert first.id is not None
    assert (len(first.id), second.id, first.has_checkpoint()) == (8, "mine", False)
    with pytest.raises(ExperimentError, match=first.id):
        first.get_status()


def test_experiment_in_another_directory_is_known_by_its_id(project: Path) -> None:
    MadeExperiment(project / "runs" / "made", status="DONE").store.close()
    ExperimentFolder(project / "runs" / "made").link()
    assert Experiment(id="made").get_status() == "DONE"
    assert [one["id"] for one in Experiment("local").get_all_experiments_metadata()] == ["made"]


def test_experiment_that_is_done_names_the_call_that_extends_it(project: Path) -> None:
    made = MadeExperiment(project / "experiments" / "made", status="DONE")
    made.commit(a_trial(0, value=0.5))
    made.store.close()
    with pytest.raises(ExperimentError) as raised:
        Experiment.resume("made")
    assert 'to extend it: Experiment(id="made").update_max_trial_number(N)' in str(raised.value)
    assert "--" not in str(raised.value)


@pytest.mark.parametrize("status", ["ERROR", "STOPPED"])
def test_event_loop_that_waits_for_done_ends_with_the_reason(project: Path, status: str) -> None:
    made = MadeExperiment(project / "experiments" / "made", status=status)
    made.store.set_status(status, "all trials failed")
    made.store.close()
    experiment, seen = Experiment(id="made"), list[str]()

    def wait() -> None:
        while (found := experiment.get_status()) != "DONE":
            seen.append(found)

    with pytest.raises(ExperimentError, match="all trials failed"):
        wait()
    assert set(seen) == {status}
    experiment.stop()
    assert Experiment(id="made").get_status() == status


@pytest.mark.parametrize("whole", [True, False])
def test_resume_of_nni_2_takes_the_id(project: Path, monkeypatch: pytest.MonkeyPatch, *, whole: bool) -> None:
    path = project / "experiments" / "made"
    MadeExperiment(path, status="DONE").store.close()
    verbs = list[tuple[object, ...]]()

    def take(*words: object, **_: Any) -> str:
        verbs.append(words)
        return json.dumps({"id": "made", "folder": str(path)})

    monkeypatch.setattr("pitchpipe.compat.nni.experiment._verb", take)
    resume = Experiment("local").resume if whole else Experiment.resume
    for resumed in (resume("made", 8080, False), resume(experiment_id="made", wait_completion=False)):
        assert (resumed.id, resumed.get_status()) == ("made", "DONE")
        resumed.stop()
    assert verbs == [("resume", path, "--detach", "--json")] * 2


def test_hyperopt_tuner_of_nni_2_0_is_the_tuner(project: Path) -> None:
    made = Experiment(HyperoptTuner("anneal", optimize_mode="maximize"), "local").config
    assert made is not None
    made.trial_command, made.search_space = "true", SPACE
    own = OwnConfig.from_dict(made.plain())
    assert (own.tuner.name, own.tuner.class_args) == ("anneal", {"optimize_mode": "maximize"})
    assert own.objectives[0].direction == "maximize"
    given = config(max_trial_number=3)
    assert Experiment(HyperoptTuner("tpe"), given).config is given
    assert given.tuner.name == "tpe"
    with pytest.raises(ExperimentError, match="Experiment"):
        Experiment(EvolutionTuner(), "local")


def test_what_is_said_names_no_file_that_the_user_does_not_have(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = 0

    def run(words: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        path = next(word for word in words if word.endswith(".json"))
        said = f"warning: {path}:3:4: x (line 3) has no effect\n{path}: y\n"
        out = json.dumps({"id": "made", "folder": str(project)})
        return subprocess.CompletedProcess(words, code, out, said)

    monkeypatch.setattr(subprocess, "run", run)
    experiment = Experiment(config(), id="made")
    experiment.start(run_mode=RunMode.Detach)
    experiment.update_search_space(SPACE)
    assert capsys.readouterr().err.count("warning: x has no effect\ny\n") == 2
    code = 2
    with pytest.raises(ExperimentError, match=r"^warning: x has no effect\ny$"):
        experiment.update_search_space(SPACE)


def test_experiment_that_cannot_be_read_is_left_out_of_the_list(project: Path) -> None:
    (project / "experiments" / "damaged").mkdir(parents=True)
    (project / "experiments" / "damaged" / "experiment.db").write_bytes(b"not a database")
    experiment = Experiment("local")
    assert experiment.get_all_experiments_metadata() == []
    assert experiment.get_experiment_metadata("damaged") == {}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_problems_of_a_config_are_in_the_error_and_nothing_starts(project: Path) -> None:
    experiment = Experiment(config(max_trial_number=2, tuner=AlgorithmConfig("TPEE")))
    with pytest.raises(ExperimentError, match="did you mean TPE"):
        experiment.run()
    assert not (project / "experiments").exists()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signal_that_ends_the_script_ends_its_experiment(project: Path, number: signal.Signals) -> None:
    os.mkfifo(project / "started")
    (project / "train.py").write_text("import time\nopen('started', 'w').write('.')\ntime.sleep(600)\n")
    (project / "launch.py").write_text(HEAD + "experiment.run(8080)\n")
    command = [sys.executable, "-m", "pitchpipe.nni", "launch.py"]
    with subprocess.Popen(command, cwd=project, stderr=subprocess.PIPE) as script:
        try:
            (project / "started").read_bytes()
            script.send_signal(number)
            script.communicate()
        finally:
            script.kill()
    assert script.returncode == -number
    (folder,) = ExperimentFolder.all(project / "experiments")
    assert folder.manager() is None
    assert Experiment(id=folder.experiment_id).get_status() == "STOPPED"


SLOW_TUNER = """
import os
from pitchpipe.tuners import RandomTuner
os.write(os.open("checking", os.O_WRONLY), b".")
os.read(os.open("go", os.O_RDONLY), 1)
class Own(RandomTuner): pass
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("begin", ["run", "start"])
def test_signal_of_the_terminal_ends_an_experiment_that_starts(
    project: Path, number: signal.Signals, begin: str
) -> None:
    (project / "train.py").write_text("import signal; signal.pause()\n")
    (project / "own.py").write_text(SLOW_TUNER)
    own = "from nni.experiment import CustomAlgorithmConfig\nexperiment.config.tuner = CustomAlgorithmConfig()\n"
    tuner = "experiment.config.tuner.class_name, experiment.config.tuner.code_directory = 'own.Own', '.'\n"
    (project / "launch.py").write_text(f"{HEAD}{own}{tuner}experiment.{begin}(8080)\n")
    for name in ("checking", "go"):
        os.mkfifo(project / name)
    checking, go = (os.open(project / name, os.O_RDWR) for name in ("checking", "go"))
    command = [sys.executable, "-m", "pitchpipe.nni", "launch.py"]
    with subprocess.Popen(command, cwd=project, stderr=subprocess.PIPE, start_new_session=True) as script:
        try:
            os.read(checking, 1)
            os.killpg(script.pid, number)
            os.write(go, b"...")
            _, said = script.communicate()
        finally:
            script.kill()
            os.close(checking)
            os.close(go)
    assert script.returncode == -number, said
    (folder,) = ExperimentFolder.all(project / "experiments")
    assert folder.manager() is None
    assert Experiment(id=folder.experiment_id).get_status() == "STOPPED"


@pytest.mark.parametrize("is_started", [False, True])
def test_signal_stops_the_experiment_as_soon_as_there_is_one(
    project: Path, monkeypatch: pytest.MonkeyPatch, *, is_started: bool
) -> None:
    done = list[str]()
    experiment = Experiment(config())

    def start(*_: object) -> None:
        if not is_started:
            signal.raise_signal(signal.SIGTERM)
        done.append("started")
        experiment._folder = project
        if is_started:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(experiment, "start", start)
    monkeypatch.setattr(experiment, "stop", lambda: done.append("stopped"))
    monkeypatch.setattr(experiment, "_ended_well", lambda: done.append("ended"))
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
    try:
        with pytest.raises(SystemExit):
            experiment.run()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert list(dict.fromkeys(done)) == ["started", "stopped", "ended"]
    assert (
        done.count("stopped") == 1 + is_started
    )  # at once, and again: a signal may come before there is one


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_quickstart_script_runs_to_its_end(project: Path) -> None:
    found = launch(
        project,
        """\
done = experiment.run(8080)
exported = experiment.export_data()
jobs, metrics = experiment.list_trial_jobs(), experiment.get_job_metrics()
profile = experiment.get_experiment_profile()
first = experiment.get_trial_job(jobs[0].trialJobId)
print(json.dumps({
    "done": done,
    "status": experiment.get_status(),
    "exported": [[one.parameter, one.value, one.trialJobId] for one in exported],
    "jobs": [[job.trialJobId, job.status, job.sequenceId, job.endTime >= job.startTime > 0] for job in jobs],
    "parameters": first.hyperParameters[0].parameters,
    "final": [[one.type, one.data] for one in first.finalMetricData],
    "metrics": {name: [[one.type, one.sequence, one.data] for one in each] for name, each in metrics.items()},
    "one": list(experiment.get_job_metrics(jobs[1].trialJobId)) == [jobs[1].trialJobId],
    "statistics": experiment.get_job_statistics(),
    "profile": [profile["id"] == experiment.id, profile["params"]["maxTrialNumber"], profile["nextSequenceId"]],
    "metadata": experiment.get_experiment_metadata(experiment.id)["status"],
    "all": len(experiment.get_all_experiments_metadata()),
    "viewed": [experiment.view(0, non_blocking=True) for _ in range(2)],  # the first pages end
    "stopped": [experiment.get_status(), experiment.stop()],
    "after": experiment.get_status(),
}))
""",
    )
    assert (found["done"], found["status"], found["metadata"], found["all"]) == (True, "DONE", "DONE", 1)
    assert [[job[1], job[3]] for job in found["jobs"]] == [["SUCCEEDED", True]] * 4
    assert [job[2] for job in found["jobs"]] == [0, 1, 2, 3]
    for parameter, value, trial in found["exported"]:
        x = parameter["x"]
        assert value == {"default": x, "twice": 2 * x}
        intermediate = [["PERIODICAL", step, pytest.approx(x + step)] for step in range(3)]
        assert found["metrics"][trial] == [*intermediate, ["FINAL", 0, value]]
    assert found["final"] == [["FINAL", found["exported"][0][1]]]
    assert found["parameters"] == found["exported"][0][0]
    assert found["statistics"] == [{"trialJobStatus": "SUCCEEDED", "trialJobNumber": 4}]
    assert found["profile"] == [True, 4, 4]
    assert found["one"]
    assert (found["viewed"], found["stopped"], found["after"]) == ([None, None], ["VIEWED", None], "DONE")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_running_experiment_is_changed_stopped_and_resumed(project: Path) -> None:
    gate, started = project / "gate", project / "started"
    gate.touch()
    os.mkfifo(started)
    (project / "train.py").write_text(
        f"import fcntl\nopen({str(started)!r}, 'w').write('.')\n"
        f"fcntl.flock(open({str(gate)!r}), fcntl.LOCK_SH)  # until the script lets go\n" + TRAIN
    )
    found = launch(
        project,
        f"""\
import fcntl, os
gate = open({str(gate)!r})
fcntl.flock(gate, fcntl.LOCK_EX)
started = os.open({str(started)!r}, os.O_RDWR)  # so that a trial never waits for a reader
experiment.start(8080, run_mode=RunMode.Detach)
other = Experiment.connect(8080)
other.update_trial_concurrency(1)
other.update_max_trial_number(5)
other.update_max_experiment_duration("2h")
other.update_search_space({{"x": {{"_type": "uniform", "_value": [7, 8]}}}})
params = other.get_experiment_profile()["params"]
os.read(started, 1)  # a trial runs
jobs = other.list_trial_jobs()
other.kill_trial_job(jobs[0].trialJobId)
before = other.get_status()
other.stop()
stopped = other.get_status()
gate.close()
resumed = Experiment.resume(experiment.id)
print(json.dumps({{
    "same": other.id == experiment.id,
    "params": [params["trialConcurrency"], params["maxTrialNumber"], params["maxExperimentDuration"]],
    "space": params["searchSpace"]["x"]["_value"],
    "status": [before, stopped, resumed.get_status()],
    "killed": resumed.get_trial_job(jobs[0].trialJobId).status,
    "values": [one.value["default"] for one in resumed.export_data()],
}}))
""",
    )
    assert (found["same"], found["params"], found["space"]) == (True, [1, 5, 7200.0], [7, 8])
    assert found["status"] == ["RUNNING", "STOPPED", "DONE"]
    assert found["killed"] == "USER_CANCELED"
    assert len([value for value in found["values"] if value >= 7]) >= 2


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_experiment_in_the_background_ends_with_its_script(project: Path) -> None:
    (project / "train.py").write_text("import signal; signal.pause()\n")
    name = launch(project, "experiment.start(8080)\nprint(json.dumps(experiment.id))\n")
    assert Experiment(id=name).get_status() == "STOPPED"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_experiment_that_is_done_continues_when_a_limit_is_raised(project: Path) -> None:
    (project / "train.py").write_text(
        TRAIN + "import os, signal\nos.path.exists('endless') and signal.pause()\n"
    )
    found = launch(
        project,
        """\
import time
from pitchpipe.compat.nni.experiment import ExperimentError
def wait_until_done():  # as an event loop of NNI does
    while experiment.get_status() != "DONE":
        time.sleep(0.05)
    return len(experiment.list_trial_jobs())
def refused(change, value):
    try:
        change(value)
    except ExperimentError:
        params = experiment.get_experiment_profile()["params"]
        return [experiment.get_status(), params["maxTrialNumber"], params.get("maxExperimentDuration")]
experiment.config.max_trial_number = 2
experiment.start(8080)
counts = [wait_until_done()]
low = [refused(experiment.update_max_trial_number, 2), refused(experiment.update_max_experiment_duration, "1ms")]
experiment.update_max_trial_number(3)
counts.append(wait_until_done())
open("endless", "w").close()
experiment.update_max_trial_number(5)
print(json.dumps({"id": experiment.id, "counts": counts, "low": low, "status": experiment.get_status()}))
""",
    )
    assert (found["counts"], found["low"]) == ([2, 3], [["DONE", 2, None]] * 2)
    assert found["status"] in ("RUNNING", "NO_MORE_TRIAL")
    assert Experiment(id=found["id"]).get_status() == "STOPPED"  # its mode is still that of `start`
