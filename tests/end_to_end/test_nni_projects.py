"""What scripts and tuners written for NNI expect of a whole experiment."""

from __future__ import annotations

from .running import Lab

TUNER = """
from pitchpipe import Tuner
class Ranking(Tuner):
    def update_search_space(self, search_space): self.worth = {"bad": 0, "good": 1}
    def generate_parameters(self, parameter_id, **kwargs): return {"x": max(self.worth.values()) + parameter_id}
    def receive_trial_result(self, parameter_id, parameters, value, **kwargs): self.worth[value] *= 10
"""


def test_tuner_of_ones_own_gets_any_result(lab: Lab) -> None:
    (lab.folder / "ranking.py").write_text(TUNER)
    tuner = {"class_name": "ranking.Ranking", "code_directory": str(lab.folder)}
    script = "import nni; nni.get_next_parameter(); nni.report_final_result('good')"
    result = lab.run_json(lab.write(script, tuner=tuner, max_trial_number=3, trial_concurrency=1))
    assert (result["status"], result["best"]) == ("DONE", None)
    assert [trial["parameters"]["x"] for trial in lab.trials()] == [1, 11, 102]


def test_intermediate_results_that_are_not_numbers_are_kept_and_break_nothing(lab: Lab) -> None:
    script = """
import nni
x = nni.get_next_parameter()["x"]
for value in ("<b>good</b>", {"accuracy": x}, None, [x], 0.5, float("nan"), {"default": "text"}):
    nni.report_intermediate_result(value)
nni.report_final_result(x)
"""
    result = lab.run_json(lab.write(script, max_trial_number=2, assessor={"name": "Medianstop"}))
    assert (result["status"], result["counts"]["SUCCEEDED"]) == ("DONE", 2)
    for trial in lab.trials():
        x = trial["parameters"]["x"]
        kept = trial["intermediate"]
        assert [*kept[:5], kept[6]] == ["<b>good</b>", {"accuracy": x}, None, [x], 0.5, {"default": "text"}]
        assert trial["final"] == x
    page = str(lab.folder / "page.html")
    for verb in (["status"], ["trials"], ["trial", "show", "1"], ["report", "-o", page], ["export"]):
        done = lab.run(*verb, *([] if verb[:2] == ["trial", "show"] else [result["id"]]))
        assert done.code == 0, (verb, done.err)


def test_pbt_under_nnis_name_names_folders_for_checkpoints(lab: Lab) -> None:
    script = """
import os, nni
args = nni.get_next_parameter()
before = os.path.join(args["load_checkpoint_dir"], "model")
epochs = int(open(before).read()) if os.path.isfile(before) else 0
os.makedirs(args["save_checkpoint_dir"])
open(os.path.join(args["save_checkpoint_dir"], "model"), "w").write(str(epochs + 1))
nni.report_final_result(epochs + 1)
"""
    tuner = {"name": "PBTTuner", "class_args": {"population_size": 2}}
    result = lab.run_json(lab.write(script, tuner=tuner, max_trial_number=6))
    assert (result["status"], result["best"]["value"]) == ("DONE", 3)


ADVISOR = """
import json
from nni.msg_dispatcher_base import MsgDispatcherBase
from nni.protocol import CommandType, send
class Ladder(MsgDispatcherBase):
    def handle_initialize(self, data):
        self.made = 0
        send(CommandType.Initialized, "")
    def handle_request_trial_jobs(self, data):
        for _ in range(data):
            self.made += 1
            record = {"parameter_id": self.made, "parameters": {"x": self.made}, "parameter_source": "algorithm"}
            send(CommandType.NewTrialJob, json.dumps(record))
    def handle_update_search_space(self, data): pass
    def handle_trial_end(self, data): pass
    def handle_report_metric_data(self, data):
        if data["type"] == "PERIODICAL" and json.loads(data["value"]) == 2:
            send(CommandType.KillTrialJob, json.dumps(data["trial_job_id"]))
"""
WAITING = """
import signal, nni
x = nni.get_next_parameter()["x"]
nni.report_intermediate_result(x)
if x == 2: signal.pause()
nni.report_final_result(x)
"""


def test_advisor_of_nni_1_sends_by_the_function_of_a_module(lab: Lab) -> None:
    (lab.folder / "ladder.py").write_text(ADVISOR)
    advisor = {"class_name": "ladder.Ladder", "code_directory": str(lab.folder)}
    config = lab.write(WAITING, advisor=advisor, tuner=None, max_trial_number=3)
    result = lab.run_json(config)
    assert (result["status"], result["counts"]) == ("DONE", {"SUCCEEDED": 2, "EARLY_STOPPED": 1})
    assert [trial["parameters"]["x"] for trial in lab.trials()] == [1, 2, 3]
