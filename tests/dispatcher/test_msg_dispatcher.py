"""Who hears of what, on which thread, in which order, and how often."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

from pitchpipe.assessors import Assessor, AssessResult, ThresholdAssessor
from pitchpipe.dispatcher.stop_rule import StopRule
from pitchpipe.protocol import CommandType
from pitchpipe.tuners import (
    ASHATuner,
    BatchTuner,
    GridSearchTuner,
    NoMoreTrialError,
    QMCTuner,
    RandomTuner,
    Suggestion,
    Tuner,
)

PATIENCE_S = 20.0


class Noting:
    """Notes each call with its thread."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.threads: set[str] = set()

    def note(self, *call: Any) -> None:
        self.threads.add(threading.current_thread().name)
        self.calls.append(call)

    def noted(self, kind: str) -> list[tuple[Any, ...]]:
        return [call for call in self.calls if call[0] == kind]


class Recorder(Noting, Tuner):
    """A tuner; `busy` makes generate_parameters wait for `release`."""

    def __init__(self) -> None:
        super().__init__()
        self.busy = False
        self.started, self.release = threading.Event(), threading.Event()

    def update_search_space(self, search_space: Any) -> None:
        self.note("space", search_space)

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Any:
        self.note("generate", parameter_id)
        if self.busy:
            self.started.set()
            assert self.release.wait(PATIENCE_S)
        return {"x": parameter_id}

    def receive_trial_result(self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any) -> None:
        self.note("result", parameter_id, parameters, value, kwargs["customized"])

    def trial_end(self, parameter_id: int, success: bool, **kwargs: Any) -> None:
        self.note("end", parameter_id, success)

    def import_data(self, data: list[Any]) -> None:
        self.note("import", data)


class Curious(Recorder):
    """Takes all that a tuner may take."""

    wants_periodical: Any = True

    def receive_intermediate_result(self, parameter_id, parameters, value, **kwargs):
        self.note("intermediate", parameter_id, parameters, value, kwargs["sequence"])

    def receive_repeats(self, parameter_id, parameters, values):
        self.note("repeats", parameter_id, values)

    def trial_stopped(self, parameter_id):
        self.note("stopped", parameter_id)

    def trial_end_cause(self, parameter_id, cause):
        self.note("cause", cause)

    def starting_point_failed(self, parameters, cause):
        self.note("failed", parameters, cause)

    def update_earlier(self, results):
        self.note("earlier", results)

    def update_running(self, points):
        self.note("running", points)


class Judge(Noting, Assessor):
    """Judges bad what is below 0.5."""

    def __init__(self, reason: str | None = None, bad: Any = AssessResult.Bad) -> None:
        super().__init__()
        self.next_reason, self.bad = reason, bad

    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> Any:
        self.note(trial_job_id, list(trial_history))
        if trial_history[-1] < 0.5:
            self.reason = self.next_reason
            return self.bad
        return AssessResult.Good

    def trial_end(self, trial_job_id: str, success: bool) -> None:
        self.note("end", trial_job_id, success)


class JudgeOfFinals(Judge):
    """Takes final results, too."""

    def receive_trial_result(self, trial_job_id: str, value: Any) -> None:
        self.note("final", trial_job_id, value)


# initialising and suggesting


def test_initialized_tells_a_peer_what_is_wanted(host):
    wanted = {"protocol": 1, "periodical_queues": [], "any_results": ["FINAL", "PERIODICAL"], "learns": True}
    assert host(Recorder()).initialize() == wanted
    assert host(Recorder(), Judge()).initialize() == {**wanted, "periodical_queues": ["assessor"]}


class Unpacking(RandomTuner):
    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        super().receive_trial_result(parameter_id, parameters, value["scores"][0], **kwargs)


@pytest.mark.parametrize(
    ("tuner", "assessor", "kinds"),
    [
        (RandomTuner(), None, []),
        (RandomTuner(), Judge(), ["PERIODICAL"]),
        (Unpacking(), None, ["FINAL", "PERIODICAL"]),
        (Unpacking(), ThresholdAssessor(0.5), ["FINAL"]),
        (ASHATuner(), Judge(), []),
    ],
)
def test_results_that_only_methods_of_the_user_get_may_be_anything(tuner, assessor, kinds, host):
    assert host(tuner, assessor).initialize()["any_results"] == kinds


@pytest.mark.parametrize("tuner", [RandomTuner(), QMCTuner(), GridSearchTuner(), BatchTuner()])
def test_tuner_that_does_not_learn_may_be_asked_ahead(tuner, host):
    space = {"x": {"_type": "choice", "_value": [{"lr": 1}, {"lr": 2}]}}
    assert host(tuner).initialize(space)["learns"] is False


def test_tuner_that_inherits_that_it_does_not_learn_may_learn(host):
    assert host(Unpacking()).initialize()["learns"] is True


def test_tuner_whose_search_ends_by_a_rule_is_not_asked_ahead(host):
    rule = StopRule({"expectedGainBelow": "noise", "minTrials": 5}, [{"direction": "minimize"}])
    assert host(RandomTuner(), stop_rule=rule).initialize()["learns"] is True


def test_initialized_is_empty_for_another_manager(host):
    one = host(Recorder(), protocol=None)
    assert one.initialize() is None


def test_new_trial_is_a_parameter_record(host):
    one = host(Recorder())
    assert one.request(2) == [
        {"parameter_id": i, "parameter_source": "algorithm", "parameters": {"x": i}, "parameter_index": 0}
        for i in (0, 1)
    ]


def test_two_dispatchers_in_one_process_share_nothing(host):
    first, second = host(Recorder()), host(Recorder())
    assert first.request(2)[1]["parameter_id"] == 1
    assert second.request()[0]["parameter_id"] == 0


class Finite(Recorder):
    def __init__(self, count: int, error: type[Exception] = NoMoreTrialError) -> None:
        super().__init__()
        self.left, self.error = count, error

    def generate_multiple_parameters(self, parameter_id_list: Any, **kwargs: Any) -> list[Any]:
        if not self.left:
            raise self.error()
        taken = list(parameter_id_list)[: self.left]
        self.left -= len(taken)
        return [{"x": i} for i in taken]


def test_exhausted_tuner_sends_its_last_trials_and_no_more(host):
    one = host(Finite(2))
    one.send(CommandType.RequestTrialJobs, 4)
    assert one.expect(CommandType.NewTrialJob)["parameter_id"] == 0
    assert one.expect(CommandType.NewTrialJob)["parameter_id"] == 1
    assert one.expect(CommandType.NoMoreTrialJobs)["parameters"] == ""
    one.send(CommandType.RequestTrialJobs, 1)
    assert one.expect(CommandType.NoMoreTrialJobs)["parameter_id"] == 4


def test_no_more_trial_error_of_another_library_is_understood(host):
    namesake = type("NoMoreTrialError", (Exception,), {})
    one = host(Finite(0, namesake))
    one.send(CommandType.RequestTrialJobs, 1)
    one.expect(CommandType.NoMoreTrialJobs)


class Later(Recorder):
    """Has no proposal when asked; sends it later through the callback, from a thread of its own."""

    def generate_multiple_parameters(self, parameter_id_list: Any, **kwargs: Any) -> list[Any]:
        for i in parameter_id_list:
            threading.Thread(target=kwargs["st_callback"], args=(i, {"late": i})).start()
        raise NoMoreTrialError()


def test_callback_of_a_tuner_sends_parameters_from_any_thread(host):
    one = host(Later())
    one.send(CommandType.RequestTrialJobs, 1)
    kinds = {}
    while len(kinds) < 2:
        frame = one.receive()
        if frame.command is not CommandType.Processed:
            kinds[frame.command] = frame.payload
    assert '"parameters": {"late": 0}' in kinds[CommandType.NewTrialJob]
    one.final(0, 0.5)
    one.terminate()
    assert ("result", 0, {"late": 0}, 0.5, False) in one.dispatcher.tuner.calls


def test_callback_sends_at_once_within_a_command(spawn, plugin_file):
    # In a process of its own: only a real pipe shows whether the frame has left.
    config = plugin_file("slow.Slow", SLOW_PLUGIN)
    one = spawn({"tuner": config})
    os.mkfifo(one.folder / "go")
    one.initialize()
    one.send(CommandType.RequestTrialJobs, 1)
    assert one.expect(CommandType.NewTrialJob)["parameters"] == {"x": 0}
    (one.folder / "go").write_bytes(b"")
    assert one.terminate() == 0


SLOW_PLUGIN = """
from pitchpipe.tuners import Tuner
class Slow(Tuner):
    def update_search_space(self, space): pass
    def generate_multiple_parameters(self, ids, st_callback, **kwargs):
        st_callback(ids[0], {"x": 0})
        open("go").close()  # a named pipe: waits for its writer
        return []
"""


# guarantee 1: who is called where, and in which order


def test_tuner_and_assessor_have_a_thread_each(host):
    tuner, judge = Recorder(), Judge()
    one = host(tuner, judge)
    one.initialize()
    one.request(3)
    for sequence in range(3):
        one.metric("t", sequence, 0.9)
    one.final(0, 0.9)
    one.end(0, trial="t")
    one.send(CommandType.ImportData, [{"parameter": {"x": 1}, "value": 1}])
    one.terminate()
    assert [call[0] for call in tuner.calls] == ["space", *["generate"] * 3, "result", "end", "import"]
    assert judge.calls[-1] == ("end", "t", True)
    assert tuner.threads == {"default-worker"}
    assert judge.threads == {"assessor-worker"}


def test_end_of_a_trial_does_not_overtake_its_final_result(host):
    tuner = Recorder()
    one = host(tuner, Judge(), requested=1)
    tuner.busy = True
    one.send(CommandType.RequestTrialJobs, 1)
    assert tuner.started.wait(PATIENCE_S)
    one.final(0, 0.7)
    one.end(0)
    one.processed("assessor", 4)  # the end has come, and gone through the other queue
    tuner.release.set()
    one.terminate()
    assert tuner.calls[2:] == [("result", 0, {"x": 0}, 0.7, False), ("end", 0, True)]


def test_busy_tuner_does_not_delay_a_verdict(host):
    tuner = Recorder()
    one = host(tuner, Judge())
    tuner.busy = True
    one.send(CommandType.RequestTrialJobs, 1)
    assert tuner.started.wait(PATIENCE_S)
    one.metric("t", 0, 0.1)
    assert one.expect(CommandType.KillTrialJob)["trial_job_id"] == "t"
    tuner.release.set()


def test_intermediate_results_reach_a_tuner_that_wants_them(host):
    tuner, indifferent = Curious(), Recorder()
    for each in (tuner, indifferent):
        one = host(each)
        assert ("default" in one.initialize()["periodical_queues"]) is (each is tuner)
        one.request()
        one.metric("t", 3, 0.4)
        one.terminate()
    assert tuner.calls[-1] == ("intermediate", 0, {"x": 0}, 0.4, 3)
    assert tuner.threads == {"default-worker"}
    assert indifferent.calls[-1] == ("generate", 0)


def test_intermediate_results_reach_a_tuner_that_wants_them_with_an_assessor(host):
    for judge in (Judge(), None):
        tuner = Curious()
        tuner.wants_periodical = "with an assessor"
        one = host(tuner, judge)
        queues = one.initialize()["periodical_queues"]
        one.request()
        one.metric("t", 0, 0.4)
        one.terminate()
        assert ("default" in queues) is bool(tuner.noted("intermediate")) is bool(judge)


@pytest.mark.parametrize(
    ("event", "kind", "is_stopped", "causes"),
    [
        ("FAILED", "OOM", False, ["OOM"]),
        ("USER_CANCELED", None, True, ["USER_CANCELED"]),
        ("SYS_CANCELED", None, False, ["SYS_CANCELED"]),
        ("FAILED", None, False, []),
        ("EARLY_STOPPED", None, True, []),
        ("SUCCEEDED", None, False, []),
    ],
)
def test_tuner_learns_why_a_trial_ended_without_a_result(host, event, kind, is_stopped, causes):
    tuner, other = Curious(), Curious()
    one = host(tuner, requested=2)
    one.final(1, 0.4, trial="u")
    one.end(0, event, trial="t", kind=kind)
    one.end(1, event, trial="u", kind=kind)
    one.terminate()
    assert tuner.noted("stopped") == [("stopped", 0)] * is_stopped
    assert tuner.noted("cause") == [("cause", cause) for cause in causes]
    one = host(other)
    one.end(None, event, kind=kind, parameter_source="defaults", parameters={"x": 1})
    one.terminate()
    assert other.calls == [("failed", {"x": 1}, cause) for cause in causes]


@pytest.mark.parametrize("threads", [0, 3])
def test_calls_of_a_plug_in_never_overlap(host, threads):
    overlaps: list[str] = []

    class Careful(Recorder):
        def __init__(self) -> None:
            super().__init__()
            self.inside = threading.Lock()

        def note(self, *call: Any) -> None:
            if not self.inside.acquire(blocking=False):
                overlaps.append(call[0])
                return
            threading.Event().wait(0.0005)  # gives another thread the time to come in
            super().note(*call)
            self.inside.release()

    tuner = Careful()
    one = host(tuner, threads=threads)
    one.initialize()
    one.send(CommandType.RequestTrialJobs, 40)
    for i in range(40):
        one.final(i, i)
        one.end(i, trial=str(i))
    one.terminate()
    assert overlaps == []
    expected = [(kind, i) for i in range(40) for kind in ("result", "end")]
    assert [call[:2] for call in tuner.calls[41:]] == expected
    if threads:
        assert all(name.startswith("dispatcher-pool") for name in tuner.threads)


# guarantee 2: one kill, with the reason


def test_doomed_trial_is_killed_once_with_the_reason(host):
    one = host(Recorder(), Judge("0.1 is below 0.5"))
    for sequence in range(5):
        one.metric("t", sequence, 0.1)
    one.terminate()
    assert one.rest_of(CommandType.KillTrialJob) == [{"trial_job_id": "t", "reason": "0.1 is below 0.5"}]


def test_reason_is_made_up_when_the_assessor_gives_none(host):
    judge = Judge("first")
    one = host(Recorder(), judge)
    one.metric("a", 0, 0.1)
    assert one.expect(CommandType.KillTrialJob)["reason"] == "first"
    judge.reason = "stale"
    judge.assess_trial = lambda *_: False  # type: ignore[method-assign]
    one.metric("b", 0, 0.9)
    assert one.expect(CommandType.KillTrialJob)["reason"] == "Judge found it bad after 1 result"


def test_kill_is_a_bare_id_for_another_manager(host):
    one = host(Recorder(), Judge("no"), protocol=None)
    one.metric("t", 0, 0.1)
    assert one.expect(CommandType.KillTrialJob) == "t"


def test_plain_and_numpy_bools_are_verdicts(host):
    import numpy

    for bad in (False, numpy.bool_(False)):
        one = host(Recorder(), Judge("x", bad))
        one.metric("t", 0, 0.1)
        assert one.expect(CommandType.KillTrialJob)["trial_job_id"] == "t"


def test_paused_trial_is_judged_again_when_it_continues(host):
    judge = Judge("wait for the others", AssessResult.Pause)
    one = host(Recorder(), judge)
    one.metric("t", 0, 0.1)
    assert one.expect(CommandType.Pause) == {"trial_job_id": "t", "reason": "wait for the others"}
    judge.bad = AssessResult.Bad
    one.metric("t", 1, 0.1)
    assert one.expect(CommandType.KillTrialJob)["trial_job_id"] == "t"


def test_trial_that_starts_from_a_checkpoint_is_judged_from_its_first_result_on(host):
    judge = Judge("bad")
    one = host(Recorder(), judge)
    one.metric("t", 7, 0.1)
    assert one.expect(CommandType.KillTrialJob)["trial_job_id"] == "t"


class Scheduler(Recorder):
    """Suggests with a budget, pauses at the first result, resumes another way at the second, stops at the third."""

    wants_periodical = True
    seen: Any = None

    def generate_parameters(self, parameter_id, **kwargs):
        return Suggestion({"x": parameter_id}, budget=3, checkpoint_of="AbCdE", pauses_at_budget=True)

    def receive_intermediate_result(self, parameter_id, parameters, value, *, trial_job_id, sequence):
        self.seen = parameters
        if sequence == 0:
            self.pause_trial(trial_job_id, "end of the rung")
        elif sequence == 1:
            self.resume_trial(trial_job_id, {"x": 7}, "FgHiJ", 9, pauses_at_budget=True)
        else:
            self.stop_trial(trial_job_id, "lost")

    def trials_stalled(self):
        self.resume_trial("KlMnO")


def test_tuner_holds_its_trials(host):
    tuner = Scheduler()
    one = host(tuner)
    assert one.initialize()["periodical_queues"] == ["default"]
    (record,) = one.request()
    assert (record["parameters"], record["budget"], record["checkpoint_of"]) == ({"x": 0}, 3, "AbCdE")
    assert record["pauses_at_budget"] is True
    for sequence in range(3):
        one.metric("t", sequence, 0.5)
    assert one.expect(CommandType.Pause) == {"trial_job_id": "t", "reason": "end of the rung", "by": "tuner"}
    assert one.expect(CommandType.Resume) == {
        "trial_job_id": "t",
        "parameters": {"x": 7},
        "checkpoint_of": "FgHiJ",
        "budget": 9,
        "pauses_at_budget": True,
    }
    assert one.expect(CommandType.KillTrialJob) == {"trial_job_id": "t", "reason": "lost", "by": "tuner"}
    assert tuner.seen == {"x": 7}
    one.send(CommandType.RequestTrialJobs, 0)
    assert one.expect(CommandType.Resume)["trial_job_id"] == "KlMnO"


def test_tuner_cannot_pause_trials_of_another_manager(host):
    one = host(Scheduler(), protocol=None)
    one.initialize()
    one.request()
    one.metric("t", 0, 0.5)
    one.joined()
    assert "this manager cannot pause trials" in str(one.dispatcher.worker_exceptions[0])


def test_pause_is_not_sent_to_another_manager(host):
    one = host(Recorder(), Judge(bad=AssessResult.Pause), protocol=None)
    one.metric("t", 0, 0.1)
    one.terminate()
    assert one.rest() == []


# results


def test_final_result_is_delivered_once(host, caplog):
    tuner = Recorder()
    one = host(tuner, requested=1)
    one.final(0, {"default": 0.5, "more": float("inf")})
    one.final(0, 0.6, "twice")
    one.processed("default", 3)
    assert "WARNING" not in caplog.text  # it is known, and harmless
    one.end(0)
    one.final(0, 0.7)
    one.end(0)
    one.terminate()
    value = {"default": 0.5, "more": float("inf")}
    assert tuner.calls[1:] == [("result", 0, {"x": 0}, value, False), ("end", 0, True)]


def test_trial_that_fails_ends_without_success(host):
    tuner, judge = Recorder(), Judge()
    one = host(tuner, judge, requested=1)
    one.metric("t", 0, 0.9)
    one.end(0, "FAILED", "t")
    one.terminate()
    assert tuner.calls[-1] == ("end", 0, False)
    assert judge.calls[-1] == ("end", "t", False)


def test_unknown_ids_and_bad_json_from_a_trial_are_survived(host, caplog):
    tuner, judge = Recorder(), Judge()
    one = host(tuner, judge, requested=1)
    one.final(17, 0.5)
    one.end(17)
    record = {"parameter_id": 0, "trial_job_id": "t", "sequence": 0, "value": "not json"}
    for kind in ("FINAL", "PERIODICAL"):
        one.send(CommandType.ReportMetricData, {**record, "type": kind})
    one.metric("t", 0, 0, "REQUEST_PARAMETER")
    one.final(0, 0.5)
    assert one.terminate().name == "TERMINATED"
    assert tuner.calls[1:] == [("result", 0, {"x": 0}, 0.5, False)]
    assert judge.calls == []
    assert "is not supported" in caplog.text


def test_imported_results_are_decoded(host):
    tuner = Recorder()
    one = host(tuner)
    one.send(
        CommandType.ImportData,
        [{"parameter": {"x": 1}, "value": "0.5"}, {"parameter": {"x": 2}, "value": 1}, {"value": "high"}],
    )
    one.terminate()
    values = [item["value"] for item in tuner.calls[0][1]]
    assert values == [0.5, 1, "high"]


def test_customized_trial_is_passed_to_a_tuner_that_opted_in(host):
    tuner = Recorder()
    tuner._accept_customized_trials()
    one = host(tuner)
    one.final(None, 0.5, "direct", parameters={"x": 9})
    one.final(None, 0.5, "direct", parameters={"x": 9})
    one.final(None, 0.6, "held")
    one.end(None, "FAILED", "held", parameters={"x": 8})
    one.terminate()
    assert tuner.calls == [
        ("result", None, {"x": 9}, 0.5, True),
        ("result", None, {"x": 8}, 0.6, True),
        ("end", None, False),
    ]


def test_customized_trial_is_kept_from_a_tuner_that_did_not(host):
    tuner = Recorder()
    one = host(tuner)
    one.final(None, 0.5, parameters={"x": 9})
    one.end(None, parameters={"x": 9})
    one.terminate()
    assert tuner.calls == []


@pytest.mark.parametrize("source", ["defaults", "initial"])
def test_end_of_a_starting_point_is_kept_from_the_tuner_that_imported_its_result(host, source):
    tuner = Recorder()
    tuner._accept_customized_trials()
    one = host(tuner)
    one.end(None, parameters={"x": 9}, parameter_source=source)
    one.terminate()
    assert tuner.calls == []


def test_results_of_earlier_searches_reach_only_a_tuner_that_models_them(host):
    results = [{"parameter": {"x": 1}, "value": 0.5, "source": 0}]
    for tuner, calls in ((Curious(), [("earlier", results)]), (Recorder(), [])):
        one = host(tuner)
        one.send(CommandType.ImportData, results)
        one.terminate()
        assert tuner.calls == calls


def test_starting_points_that_run_reach_only_a_tuner_that_asks_for_them(host):
    point, result = {"parameter": {"x": 1}}, {"parameter": {"x": 2}, "value": 0.5}
    imported = ("import", [result])
    for tuner, calls in (
        (Curious(), [("running", [{"x": 1}]), ("running", [{"x": 1}]), imported]),
        (Recorder(), [imported]),
    ):
        one = host(tuner)
        one.send(CommandType.ImportData, [point])
        one.send(CommandType.ImportData, [point, result])
        one.terminate()
        assert tuner.calls == calls


def test_of_several_repeats_the_tuner_gets_the_mean_and_the_assessor_each(host):
    tuner, judge = Curious(), JudgeOfFinals()
    one = host(tuner, judge, requested=1)
    for repeat, trial in enumerate("ab"):
        one.metric(trial, 0, 0.5 + repeat, repeat=repeat)
        one.final(0, 0.6 + repeat, trial, repeat=repeat)
        payload = {"trial_job_id": trial, "event": "SUCCEEDED", "hyper_params": '{"parameter_id": 0}'}
        one.send(CommandType.TrialEnd, {**payload, "repeat": repeat})
    one.final(0, 1.1, "a", repeats=[0.6, 1.6])
    one.end(0, trial="a")
    one.terminate()
    assert tuner.calls[1:] == [
        ("intermediate", 0, {"x": 0}, 0.5, 0),
        ("repeats", 0, [0.6, 1.6]),
        ("result", 0, {"x": 0}, 1.1, False),
        ("end", 0, True),
    ]
    assert judge.calls == [
        ("a", [0.5]),
        ("final", "a", 0.6),
        ("end", "a", True),
        ("b", [1.5]),
        ("final", "b", 1.6),
        ("end", "b", True),
    ]


def test_trial_of_an_earlier_run_becomes_imported_data(host):
    tuner, judge = Recorder(), Judge()
    one = host(tuner, judge, protocol=None)
    records = [{"parameter_id": 6, "parameter_source": "resumed", "parameters": {"x": 66}}]
    one.send(CommandType.AddCustomizedTrialJob, records)
    one.metric("old", 0, 0.1, parameter_id=6)
    one.final(6, 0.4, "old")
    one.end(6, trial="old")
    assert one.request()[0]["parameter_id"] == 7
    one.terminate()
    assert tuner.calls == [("import", [{"parameter": {"x": 66}, "value": 0.4}]), ("generate", 7)]
    assert judge.calls == []


def test_end_of_a_trial_without_intermediate_results_is_not_passed_to_the_assessor(host):
    judge = Judge()
    one = host(Recorder(), judge, requested=1)
    one.end(0, trial="silent")
    one.terminate()
    assert judge.calls == []


def test_late_intermediate_result_is_not_judged(host):
    judge = Judge()
    one = host(Recorder(), judge)
    one.metric("t", 0, 0.9)
    one.end(0, trial="t")
    one.metric("t", 0, 0.1)
    one.metric("t", 1, 0.1)
    one.terminate()
    assert judge.calls == [("t", [0.9]), ("end", "t", True)]


def test_assessor_that_keeps_and_changes_its_history_changes_no_other(host):
    class Spoiler(Judge):
        def assess_trial(self, trial_job_id, trial_history):
            super().assess_trial(trial_job_id, trial_history)
            trial_history.clear()
            return True

    judge = Spoiler()
    one = host(Recorder(), judge)
    for sequence in range(3):
        one.metric("t", sequence, sequence + 1)
    one.terminate()
    assert judge.calls == [("t", [1]), ("t", [1, 2]), ("t", [1, 2, 3])]


def test_new_search_space_reaches_both(host):
    class Spatial(Judge):
        def update_search_space(self, search_space):
            self.note("space", search_space)

    tuner, judge = Recorder(), Spatial()
    one = host(tuner, judge)
    one.initialize({"a": 1})
    one.send(CommandType.UpdateSearchSpace, {"a": 2})
    one.terminate()
    assert tuner.calls == judge.calls == [("space", {"a": 1}), ("space", {"a": 2})]
    assert judge.threads == {"assessor-worker"}


# constraints

SPACE = {name: {"_type": "uniform", "_value": [0, 1]} for name in ("a", "b")}


class Stubborn(Recorder):
    """Suggests what violates `a < b` so many times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times
        self.constraints: Any = None

    def update_constraints(self, constraints: Any) -> None:
        self.note("constraints", constraints)

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Any:
        self.times -= 1
        return {"a": 0.5, "b": 0.1 if self.times >= 0 else 0.9}


def test_constraints_arrive_before_the_space(host):
    tuner = Stubborn(0)
    one = host(tuner, constraints=["a < b"])
    one.initialize(SPACE)
    assert [call[0] for call in tuner.calls] == ["constraints", "space"]


def test_infeasible_suggestion_is_given_back_and_asked_for_again(host):
    tuner = Stubborn(100)
    one = host(tuner, constraints=["a < b"])
    one.initialize(SPACE)
    (record,) = one.request()
    assert record["parameters"] == {"a": 0.5, "b": 0.9}
    assert tuner.calls[2:] == [("end", i, False) for i in range(100)]
    assert record["parameter_id"] == 100


def test_tuner_that_stays_infeasible_is_an_error(host):
    one = host(Stubborn(101), constraints=["a < b"])
    one.initialize(SPACE)
    one.send(CommandType.RequestTrialJobs, 1)
    report = one.expect(CommandType.Error)
    assert report["plugin"] == "tuner"
    assert "violates 'a < b'" in report["message"]


def test_one_infeasible_suggestion_does_not_cost_the_others(host):
    tuner = Stubborn(1)
    one = host(tuner, constraints=["a < b"])
    one.initialize(SPACE)
    ids = [record["parameter_id"] for record in one.request(3)]
    assert ids == [3, 1, 2]


# rubbish


def returning(value: Any, method: str = "generate_parameters") -> Callable[[], Tuner]:
    return lambda: type("Rubbish", (Recorder,), {method: lambda self, *args, **kwargs: value})()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (returning(None), ["generate_parameters", "None", "return"]),
        (returning({"x": object()}), ["generate_parameters", "object object", "JSON"]),
        (returning(None, "generate_multiple_parameters"), ["generate_multiple_parameters", "None", "list"]),
        (
            returning([1, 2], "generate_multiple_parameters"),
            ["generate_multiple_parameters", "[1, 2]", "1 asked"],
        ),
    ],
)
def test_rubbish_from_a_tuner_is_an_error_that_shows_it(host, make, words):
    one = host(make())
    one.send(CommandType.RequestTrialJobs, 1)
    report = one.expect(CommandType.Error)
    assert report["plugin"] == "tuner"
    assert all(word in report["message"] for word in words), report["message"]
    assert one.joined().name == "FAILED"


@pytest.mark.parametrize("verdict", [None, "bad", 1, 0.5])
def test_rubbish_from_an_assessor_is_an_error_that_shows_it(host, verdict):
    one = host(Recorder(), Judge(bad=verdict))
    one.metric("t", 0, 0.1)
    report = one.expect(CommandType.Error)
    assert report["plugin"] == "assessor"
    assert f"assess_trial of the assessor returned {verdict!r}" in report["message"]


def test_proposal_outside_the_search_space_is_logged_once(host, caplog):
    tuner = Recorder()
    one = host(tuner)
    one.initialize({"x": {"_type": "choice", "_value": [0, 1]}})
    one.request(5)  # 2, 3 and 4 are outside
    one.terminate()
    (warning,) = [message for message in caplog.messages if "outside the search space" in message]
    assert ": x: " in warning
    assert tuner.noted("generate") == [("generate", n) for n in range(5)]


# final results for an assessor


def test_assessor_that_takes_final_results_gets_them_before_the_ends(host):
    tuner, judge = Recorder(), JudgeOfFinals()
    one = host(tuner, judge, requested=2)
    one.metric("a", 0, 0.7)
    one.final(0, {"default": 0.9}, "a")
    one.end(0, trial="a")
    one.final(1, 0.8, "silent")
    one.end(1, trial="silent")
    one.terminate()
    assert judge.calls == [("a", [0.7]), ("final", "a", {"default": 0.9}), ("end", "a", True)]
    assert len(judge.threads) == 1
    assert [call[0] for call in tuner.calls if call[0] in ("result", "end")] == ["result", "end"] * 2


def test_final_result_of_a_starting_point_reaches_the_assessor_alone(host):
    tuner, judge = Recorder(), JudgeOfFinals()
    tuner._accept_customized = True
    one = host(tuner, judge)
    one.metric("a", 0, 0.7, parameter_id=None)
    one.send(CommandType.ImportData, [{"parameter": {"x": 1}, "value": "0.9"}])
    one.final(None, 0.9, "a", imported=True)
    one.end(None, trial="a")
    one.terminate()
    assert judge.calls == [("a", [0.7]), ("final", "a", 0.9), ("end", "a", True)]
    assert [call[0] for call in tuner.calls] == ["import", "end"]  # and no second result


def test_final_result_that_is_not_json_does_not_reach_the_assessor(host):
    judge = JudgeOfFinals()
    one = host(Recorder(), judge, requested=1)
    one.metric("a", 0, 0.7)
    record = {"parameter_id": 0, "trial_job_id": "a", "type": "FINAL", "sequence": 0, "value": "no JSON"}
    one.send(CommandType.ReportMetricData, record)
    one.end(0, trial="a")
    one.terminate()
    assert judge.calls == [("a", [0.7]), ("end", "a", True)]
