"""What the overview says first, and what a trial's page says of its end; no browser is needed to see that."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.manager.control import why_waiting
from pitchpipe.manager.control.connection import ControlError
from pitchpipe.server.pages.overview_page import notices_of
from pitchpipe.store.reading.view import ExperimentView
from pitchpipe.telling import ending_of

from ...stored import MadeExperiment, a_trial


@pytest.fixture
def made(tmp_path: Path) -> Any:
    experiment = MadeExperiment(tmp_path / "waits")
    yield experiment
    experiment.store.close()


def test_running_experiment_tells_its_troubles_and_why_nothing_runs(
    made: MadeExperiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = a_trial(0, "WAITING", start_time=None)
    made.commit(waiting)
    reply = {"warnings": ["the disk is full"], "waiting": {waiting.trial_id: "no GPU is free"}}
    monkeypatch.setattr("pitchpipe.server.pages.overview_page.manager_status", lambda _: reply)
    with ExperimentView(made.folder) as view:
        running = replace(view.summary(), is_running=True)
        assert [notice.text for notice in notices_of(running, view)] == [
            "the disk is full",
            "Nothing is running: no GPU is free",
        ]
        running = replace(running, counts={"RUNNING": 1, "WAITING": 1})
        assert [notice.text for notice in notices_of(running, view)] == ["the disk is full"]


def test_manager_that_does_not_reply_is_reported(
    made: MadeExperiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise ControlError("the manager of waits does not answer")

    monkeypatch.setattr("pitchpipe.server.pages.overview_page.manager_status", refuse)
    with ExperimentView(made.folder) as view:
        (notice,) = notices_of(replace(view.summary(), is_running=True), view)
    assert notice.text == "This page may be out of date: the manager of waits does not answer."


@pytest.mark.parametrize(
    ("status", "reason", "text", "is_bad"),
    [
        ("RUNNING", "", "Trials may continue for a while.", True),
        (
            "ERROR",
            "the tuner failed",
            "The experiment failed: the tuner failed. Once the cause is mended, resume it.",
            True,
        ),
        ("STOPPED", "interrupted", "It is stopped: interrupted.", False),
        ("DONE", "no gain is expected", "It ended early: no gain is expected.", False),
        ("VIEWED", "an experiment of NNI, in /old", "This is an experiment of NNI, in /old.", False),
    ],
)
def test_experiment_without_a_manager(
    made: MadeExperiment, status: str, reason: str, text: str, is_bad: bool
) -> None:
    with ExperimentView(made.folder) as view:
        (notice,) = notices_of(replace(view.summary(), status=status, reason=reason), view)
    assert notice.text.endswith(text)
    assert (notice.is_bad, notice.resumes) == (is_bad, is_bad)


def test_ends_of_trials_in_sentences(made: MadeExperiment) -> None:
    made.commit(
        a_trial(0, value=0.5),
        a_trial(1, "FAILED", reason="exit code 3: no data", error="no data", exit_code=3, attempt=2),
        a_trial(2, "EARLY_STOPPED", reason="0.1 is below the median 0.5 of 3 trials after 2 results"),
        a_trial(3, "WAITING", start_time=None),
        a_trial(4, "FAILED", reason="killed by SIGKILL", exit_code=-9),
    )
    with ExperimentView(made.folder) as view:
        found = [ending_of(view.trial(number), view, why_waiting) for number in range(5)]
    assert found[0].sentence == "Its result is 0.5: the best of 1."
    assert (found[1].sentence, found[1].notes) == ("exit code 3: no data", ("USER_ERROR, 2 attempts",))
    assert found[2].title == "It was stopped early"
    assert found[2].sentence == "0.1 is below the median 0.5 of 3 trials after 2 results"
    assert found[3].sentence == "The experiment is not running."
    assert found[4].notes == ("USER_ERROR",)
