"""The report as a file: complete, closed in itself, safe from what is in it, for experiments in every state."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.cli.app import run
from pitchpipe.protocol import repeated, size_text, with_family_end
from pitchpipe.runner.trial import Trial
from pitchpipe.server.report import write_report
from pitchpipe.server.report.rendering import render_report
from pitchpipe.server.report.reproducing import steps_of
from pitchpipe.server.secrecy import hidden
from pitchpipe.store.folder import ExperimentFolder
from pitchpipe.store.reading.view import ExperimentView
from pitchpipe.store.store import StoreError

from ...html_page import Page
from ...stored import MadeExperiment, a_config, a_trial, results, scheduled

Report = Callable[..., Page]


def page_of(experiment: MadeExperiment) -> Page:
    with ExperimentView(experiment.folder) as view:
        return Page(render_report(view))


def fill(experiment: MadeExperiment, count: int = 12, **values: Any) -> None:
    """Trials of every kind: every fourth failed, every fifth was stopped, each with three results."""
    trials, metrics = [], []
    for number in range(count):
        status = "FAILED" if number % 4 == 3 else "EARLY_STOPPED" if number % 5 == 4 else "SUCCEEDED"
        value = 1.0 / (number + 1) if status == "SUCCEEDED" else None
        more: dict[str, Any] = {}
        if status == "FAILED":
            more = {
                "reason": f"ValueError: {number}",
                "error": f'Traceback\n  File "t.py"\nValueError: {number}',
            }
        trial = a_trial(number, status, value, agent=f"{number % 2}-0", **more)
        metrics += results(trial, [3.0, 2.0, 1.0])
        trials.append(trial)
    experiment.commit(*trials, metrics=metrics, run_time=75.0, **values)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a finished experiment."""
    made = MadeExperiment(tmp_path_factory.mktemp("exps") / "made1234", status="DONE")
    fill(made, end_time=200.0)
    made.store.close()
    (made.folder.path / "experiment.yml").write_text("trial_command: python t.py\n")
    return made.folder.path


@pytest.fixture(scope="module")
def file(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file with its report, which replaced an older one."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text("an older report")
    assert write_report(finished, path) == path.stat().st_size
    return path


@pytest.fixture(scope="module")
def finished_page(file: Path) -> Page:
    return Page(file.read_text(encoding="utf-8"))


@pytest.fixture
def figures() -> None:
    """Draw the figures, which the reports of other tests leave out: that takes most of the time."""


@pytest.fixture(autouse=True)
def no_figures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "figures" not in request.fixturenames:
        monkeypatch.setattr("pitchpipe.server.report.rendering.drawings_of", lambda table: [])


@pytest.fixture
def report_of(tmp_path: Path) -> Report:
    """Return a function that reports trials of an experiment with fields of its own."""

    def report_of(*trials: Trial, **fields: Any) -> Page:
        experiment = MadeExperiment(tmp_path / "exps" / "e", a_config(**fields))
        experiment.commit(*trials)
        return page_of(experiment)

    return report_of


def test_report_of_a_population_has_its_schedules(figures: None, report_of: Report) -> None:
    trials = [a_trial(0, value=0.5), a_trial(1, value=0.1)]
    for trial in trials:
        results(trial, [3.0, 2.0, 1.0])
    copied = {"first": 2, "parameters": {"lr": 0.1, "units": 16}, "copied_from": 0, "copied_at": 2}
    scheduled(trials[1], {"first": 0, "parameters": {"lr": 0.9, "units": 32}}, {**copied, "copied_steps": 1})
    text = report_of(*trials).text
    for words in (
        "The parameters changed once while it trained, and these are the last ones: see the figure of schedules below.",
        "Schedules",
        "Rerun trial 1 with its schedule of parameters, environment and code directory:",
        "The schedule of parameters of trial 1, for your own script:",
        "--schedule --json > schedule.json",
    ):
        assert words in text, words
    assert "The parameters of trial 1" not in text


def test_report_tells_the_experiment(finished_page: Page) -> None:
    for words in (
        "a name",
        "DONE",
        "Trials 12",
        "Best result 0.0909091 (trial 10)",
        "Run time 1 min 15 s",
        "7 succeeded",
        "3 failed",
        "2 stopped early",
        "3 trials · USER_ERROR · ValueError: 3",
        "Trials 3, 7, 11",
        'File "t.py"',
        "pitchpipe trial rerun made1234 10",
        '"lr": 1.0',
        "pitchpipe run",
        "Seed 1",
        "Pitchpipe 0.1.0",
    ):
        assert words in finished_page.text, words


def test_every_figure_is_there_and_as_wide_as_its_axes_need(finished_page: Page) -> None:
    places = [attrs for _, attrs in finished_page.elements if "data-figure" in attrs]
    widths = {str(one["data-figure"]): str(one["style"]).partition("min-width: ")[2] for one in places}
    assert list(widths) == ["history", "importance", "curves", "parallel", "slice", "contour", "timeline"]
    assert (widths["history"], widths["parallel"], widths["slice"]) == ("0px", "360px", "480px")


COPIED = "cp {file} {code}/e.yml\npitchpipe run {code}/e.yml"
PLACED = "pitchpipe run {file} --set trial_code_directory={code}"


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("", COPIED),
        ("trial_code_directory: .   # here", COPIED),
        ("trial: {codeDir: ., gpuNum: 0}", COPIED),
        ('{"trialCodeDirectory": "./"}', COPIED),
        ("tuner: {class_name: a.B, code_directory: own}", COPIED),
        ("trial: {codeDir: src}", PLACED),
        ("trial_code_directory: src", PLACED),
        ("trial_code_directory: ../e", PLACED),
    ],
)
def test_experiment_is_run_again_where_its_relative_paths_are_found(
    line: str, command: str, tmp_path: Path
) -> None:
    code = tmp_path / "code"
    code.mkdir()
    made = MadeExperiment(tmp_path / "e", a_config(trial_code_directory=str(code)), "DONE")
    file = made.folder.path / "experiment.yml"
    file.write_text(f"trial_command: python t.py\n{line}\n")
    with ExperimentView(made.folder) as view:
        assert steps_of(view)[-1].text == command.format(file=file, code=code)
    made.store.close()


def test_experiment_is_run_again_with_its_search_space_file(tmp_path: Path) -> None:
    space = tmp_path / "space.json"
    space.write_text('{"x": {"_type": "uniform", "_value": [0, 1]}}')
    config = a_config(trial_code_directory=str(tmp_path), search_space=None, search_space_file=str(space))
    made = MadeExperiment(tmp_path / "e", config, "DONE")
    file = made.folder.path / "experiment.yml"
    file.write_text("search_space_file: space.json\ntrial_code_directory: src\n")
    with ExperimentView(made.folder) as view:
        command = steps_of(view)[-1].text
    made.store.close()
    assert command == (
        f"pitchpipe run {file} --set trial_code_directory={tmp_path} --set search_space_file={space}"
    )


def test_report_refers_to_nothing_outside_itself(finished_page: Page) -> None:
    leading_out = {"src", "href", "data", "action", "poster", "srcset", "background", "formaction"}
    found = [(tag, attrs) for tag, attrs in finished_page.elements for name in attrs if name in leading_out]
    assert found == [("a", {"class": "skip", "href": "#figures"})]
    policy = next(attrs["content"] for tag, attrs in finished_page.elements if "http-equiv" in attrs)
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "http" not in policy


def test_scripts_need_the_word_that_is_new_in_every_report(file: Path, finished: Path) -> None:
    with ExperimentView(ExperimentFolder(finished)) as view:
        first, second = file.read_text(encoding="utf-8"), render_report(view)
    words = [re.search(r"script-src 'nonce-([\w-]+)'", text) for text in (first, second)]
    one, other = (word[1] for word in words if word)
    assert one != other
    assert Page(first).count("script") == 3
    assert first.count(f'<script nonce="{one}">') == 1


def test_empty_experiment_has_a_report(made: MadeExperiment) -> None:
    made.commit()
    page = page_of(made)
    for words in (
        "Trials 0",
        "There are no trials.",
        "No trial failed.",
        "There are no trials yet.",
        "not over",
    ):
        assert words in page.text


def test_experiment_that_failed_has_a_report_with_its_error(made: MadeExperiment) -> None:
    made.status = "ERROR"
    failed = [a_trial(n, "FAILED", reason="ImportError: torch", error="ImportError: torch") for n in range(3)]
    made.commit(*failed, reason="3 trials failed alike", error="Traceback\nTunerError: no", end_time=300.0)
    text = page_of(made).text
    for words in (
        "3 trials failed alike",
        "TunerError: no",
        "3 trials · USER_ERROR",
        "No trial has succeeded.",
    ):
        assert words in text
    assert "not over" not in text


def test_experiment_without_a_manager_says_how_to_continue(made: MadeExperiment) -> None:
    fill(made)
    assert "To resume it: pitchpipe resume made1234" in page_of(made).text


def test_experiment_that_runs_says_when_it_was_looked_at(made: MadeExperiment) -> None:
    fill(made)
    folder = ExperimentFolder(made.folder.path)
    folder.own()
    try:
        assert "The experiment is still running. This report shows its state on" in page_of(made).text
    finally:
        folder.disown()


@pytest.mark.usefixtures("figures")
def test_several_objectives_have_a_front_whose_knee_is_marked_and_rerun(report_of: Report) -> None:
    objectives = [{"name": "default", "direction": "minimize"}, {"name": "size", "direction": "minimize"}]
    values = [(0.0, 3.0), (1.0, 1.0), (3.0, 0.0), (4.0, 2.0)]
    page = report_of(
        *(a_trial(n, final="{}", values=each) for n, each in enumerate(values)), objectives=objectives
    )
    for words in (
        "Front 3 trials, hypervolume 5.89 (from the reference point default 3.3, size 3.3); the knee is trial 1",
        "1 (knee) 1 1",
        "Rerun trial 1, the knee of the front,",
        "The parameters of trial 1,",
    ):
        assert words in page.text
    assert any(attrs.get("data-figure") == "pareto" for _, attrs in page.elements)


def test_families_have_a_table_with_their_means(report_of: Report) -> None:
    trials = []
    for number, (end, value) in enumerate([("complete", 1.0), ("", 2.0), ("raced", 3.0)]):
        trial, family = a_trial(number, value=value), number // 2 * 2
        trial.record = repeated(trial.record, family, number % 2, 40)
        trial.record = with_family_end(trial.record, end) if end else trial.record
        trials.append(trial)
    page = report_of(*trials, repeats={"count": 2})
    families = page.text[page.text.index("Families") : page.text.index("Trials Filter")]
    for words in (
        "Families family repeats result lr",
        "0 mean of 2 repeats 1.5 ± 6.4 ",
        "2 1 of 2 repeats 3 ",
    ):
        assert words in families
    assert families.strip().endswith("clearly worse than the best: it got no further repeats")
    assert "trial family status result" in page.text
    assert "1 0 succeeded 2 " in page.text


def test_trial_that_is_closest_to_the_defaults_is_named(report_of: Report) -> None:
    trials = [a_trial(0, value=1.0), a_trial(1, value=0.01), a_trial(4, value=0.0)]
    text = report_of(*trials, defaults={"lr": 0.5, "units": 16}, keep_close=True).text
    assert "Closest to your defaults trial 4, 0 (the best trial); changes: lr 0.5 -> 0.4" in text


def test_limits_and_the_trials_that_violate_them_are_named(tmp_path: Path) -> None:
    objectives = [{"name": "loss", "direction": "minimize"}, {"name": "ms", "constraint": "<= 20"}]
    experiment = MadeExperiment(tmp_path / "exps" / "limited", a_config(objectives=objectives))
    trials = [a_trial(0, final="{}", values=(0.5, 30.0)), a_trial(1, final="{}", values=(0.1, 25.0))]
    experiment.commit(*trials)
    text = page_of(experiment).text
    assert "Best trial no trial keeps the limits yet (closest: trial 1)" in text
    assert "Best trial No trial keeps the limits yet (closest: trial 1)." in text
    assert "No trial has succeeded" not in text
    assert "Limits ms <= 20; 2 trials violate them" in text
    assert "trial status loss ms " in text
    assert text.count("violates ms <= 20") == 2
    experiment.commit(a_trial(2, final="{}", values=(0.75, 7.0)))
    page = page_of(experiment)
    assert "Best loss 0.75" in page.text
    assert "minimize loss, limit ms <= 20" in page.text


def test_secrets_are_not_handed_on(tmp_path: Path) -> None:
    environment = {"WANDB_API_KEY": "k-123", "DB": "postgres://me:pw-123@host/db", "SIZE": "7"}
    config = a_config(trial_environment=environment, trial_command="train --api-key=k-123 --lr 1")
    experiment = MadeExperiment(tmp_path / "exps" / "secret", config)
    failed = a_trial(
        0, "FAILED", reason="AuthError: token='k-123'", error="AuthError: token='k-123' at step 3"
    )
    experiment.commit(failed)
    with ExperimentView(experiment.folder) as view:
        text = render_report(view)
    assert "k-123" not in text
    assert "pw-123" not in text
    assert "at step 3" in text
    (experiment.folder.path / "experiment.yml").write_text('env:\n  MY_SECRET: "k-123"\n  lr: 0.25\n')
    with ExperimentView(experiment.folder) as view:
        text = render_report(view)
    assert "k-123" not in text
    assert "lr: 0.25" in text


def test_hiding_is_quick() -> None:
    text = "a" * 300_000 + "token" * 50_000
    assert hidden(text) == text


def test_table_of_very_many_trials_is_cut_and_says_so(made: MadeExperiment) -> None:
    made.commit(*[a_trial(n, "SUCCEEDED", float((n * 7) % 1500), parameters={"lr": n}) for n in range(1500)])
    page = page_of(made)
    assert "1,000 of 1,500 trials" in page.text
    assert page.count("tr") < 1100


def test_file_is_small_and_whole(file: Path, finished: Path) -> None:
    assert file.stat().st_size < 2_200_000
    assert file.read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert [found.name for found in file.parent.iterdir()] == ["report.html"]
    with pytest.raises(OSError, match="No such file"):
        write_report(finished, file.parent / "nowhere" / "report.html")


def test_folder_that_holds_no_experiment_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        write_report(tmp_path, tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


def test_verb_writes_to_the_given_place_and_says_how_much(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["report", "made", "--dir", str(finished.parent)]
    assert run(words) == 0
    size = (tmp_path / "report-made1234.html").stat().st_size
    assert capsys.readouterr().out == f"report-made1234.html ({size_text(size)})\n"
    assert run([*words, "-o", "no/r.html"]) == 1
    assert capsys.readouterr().err == "error: no/r.html cannot be written: No such file or directory\n"


@pytest.mark.usefixtures("figures")
def test_half_a_character_is_shown_by_its_escape(tmp_path: Path) -> None:
    half = "\ud800"
    space = {half: {"_type": "choice", "_value": [half, "b"]}, "lr": {"_type": "uniform", "_value": [0, 1]}}
    experiment = MadeExperiment(tmp_path / "exps" / "half", a_config(search_space=space))
    points = [{half: value, "lr": lr} for value in (half, "b") for lr in (0.1, 0.2, 0.3)]
    trials = [a_trial(number, value=float(number), parameters=point) for number, point in enumerate(points)]
    metrics = [row for trial in trials for row in results(trial, [{"default": 0.5, half: half}])]
    experiment.commit(*trials, metrics=metrics)
    assert write_report(experiment.folder.path, tmp_path / "report.html") > 0
    assert "\\ud800" in Page((tmp_path / "report.html").read_text()).text
