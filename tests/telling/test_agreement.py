"""One fact has the same words and the same digits on the command line, the pages, in reports, notebooks and tools."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.cli.app import run
from pitchpipe.manager.control import why_waiting
from pitchpipe.protocol import repeated, with_family_end
from pitchpipe.results import result_of
from pitchpipe.runner.trial import FailureKind, Trial
from pitchpipe.server.experiment_table import read_table
from pitchpipe.server.experiments import Experiments
from pitchpipe.server.pages.grid_columns import columns_of
from pitchpipe.server.pages.overview_page import best_text
from pitchpipe.server.pages.trial_grid import GridRequest, read_rows
from pitchpipe.server.report.report_texts import ReportTexts, texts_of
from pitchpipe.store.reading import ExperimentView
from pitchpipe.telling import ending_of, number_text, region_object, status_text, values_text, who_text

from ..lazy import Lazy
from ..server.asking import Asking
from ..stored import MadeExperiment, a_config, a_trial

mcp_tools = Lazy("pitchpipe.cli.verbs.mcp_tools")

LIMITED = [{"name": "default", "direction": "maximize"}, {"name": "ms", "constraint": "<= 20"}]
TWO = [{"name": "loss", "direction": "minimize"}, {"name": "ms", "direction": "minimize"}]
TRACEBACK = (
    'Traceback (most recent call last):\n  File "train.py", line 7, in <module>\n    fit(x)\nValueError: no x'
)

Texts = dict[str, str]


def finished(number: int, *values: float, seconds: float = 3723.4, **fields: Any) -> Trial:
    return a_trial(number, values=values, end_time=100.0 + number + seconds, finals=1, **fields)


def of_every_kind() -> list[Trial]:
    return [
        finished(0, 0.976071234567, 12.3456789),
        finished(1, 0.98, 25.0, seconds=59.4),
        finished(2, 1234567.0, 12.0, parameters={"lr": 1 / 3, "units": 32}, seconds=0.25),
        a_trial(3, "FAILED", reason="ValueError: no x", error=TRACEBACK, exit_code=1, attempt=2),
        a_trial(4, "FAILED", reason="ValueError: no x", error=TRACEBACK, exit_code=1),
        a_trial(5, "FAILED", reason="killed by SIGKILL", kind=FailureKind.OOM, exit_code=-9),
        a_trial(6, "FAILED", reason="ran longer than max_trial_duration (3 s)", kind=FailureKind.TIMEOUT),
        a_trial(7, "EARLY_STOPPED", reason="0.1 is below the median 0.5 of 3 trials after 2 results"),
        a_trial(8, "USER_CANCELED", reason="killed on request"),
        a_trial(9, "SYS_CANCELED", reason="the experiment was stopped"),
        a_trial(10, "PAUSED", reason="among the worst of its rung"),
    ]


def of_repeats() -> list[Trial]:
    trials = [finished(number, value, 3.0) for number, value in enumerate((0.51234567, 0.75, 0.25, 0.125))]
    for number, trial in enumerate(trials):
        family, repeat = divmod(number, 2)
        trial.record = repeated(trials[2 * family].record, 2 * family, repeat)
    for family in (0, 2):
        trials[family].record = with_family_end(trials[family].record, "complete")
    return trials


EXPERIMENTS: dict[str, tuple[list[Trial], dict[str, Any]]] = {
    "of every kind": (of_every_kind(), {"objectives": LIMITED}),
    "of repeats": (of_repeats(), {"objectives": LIMITED, "repeats": 2}),
    "on a front": (
        [finished(0, 0.123456789, 3.25), finished(1, 0.5, 1.0), finished(2, 0.75, 9.5)],
        {"objectives": TWO},
    ),
    "of failures": (of_every_kind()[3:], {"objectives": LIMITED}),
    "that violate limits": ([finished(0, 0.5, 25.0)], {"objectives": LIMITED}),
}


@pytest.fixture(params=EXPERIMENTS)
def view(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    trials, fields = EXPERIMENTS[request.param]
    made = MadeExperiment(tmp_path / "made1234", a_config(**fields), status="STOPPED")
    made.commit(*trials, run_time=4000.0)
    made.store.close()
    with ExperimentView(made.folder) as opened:
        yield opened


@pytest.fixture
def told(view: ExperimentView, capsys: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
    """Return a function that returns the lines of a verb."""

    def told(*words: str) -> list[str]:
        assert run([*words, "--dir", str(view.folder.path.parent)]) == 0
        return capsys.readouterr().out.splitlines()

    return told


@pytest.fixture
def tools(view: ExperimentView, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return the tools for agents, which run their verbs in this process."""

    def text(*words: object) -> str:
        run(list(map(str, words)))
        return capsys.readouterr().out

    monkeypatch.setattr("pitchpipe.cli.verbs.mcp_tools._text", text)
    return mcp_tools.McpTools(view.folder.path.parent)


def on_the_page(view: ExperimentView) -> dict[int, Texts]:
    """Return what the table of trials shows."""
    columns = columns_of(view.config(), view.metric_names())
    heads = {column.field: column.head.lower() for column in columns}
    rows = read_rows(view, columns, GridRequest(end=500), "trials")["rows"]
    return {
        row["number"]: {heads[field]: text for field, text in row.items() if field in heads} for row in rows
    }


def in_the_report(view: ExperimentView) -> tuple[ReportTexts, dict[int, Texts]]:
    texts = texts_of(view, read_table(view))
    names = {"reason": "why it ended"}
    heads = [names.get(name, name) for name, _ in texts.trials.head]
    rows = [dict(zip(heads, (text for text, _ in row), strict=True)) for row in texts.trials.rows]
    return texts, {int(row["trial"]): row for row in rows}


def on_the_command_line(lines: list[str]) -> dict[int, set[str]]:
    """Return the cells of the table of `pitchpipe trials`."""
    cells = [re.split(r"\s{2,}", line.strip()) for line in lines[1:]]
    return {int(row[0]): {*row} for row in cells}


def test_trials_read_alike(view: ExperimentView, told: Callable[..., list[str]]) -> None:
    printed = on_the_command_line(told("trials", "made1234", "--limit", "0"))
    page, (_, report) = on_the_page(view), in_the_report(view)
    names = ["result" if name == "default" else name for name in view.metric_names()]
    assert printed.keys() == page.keys() == report.keys()
    for number, cells in printed.items():
        shared = {head: page[number].get(head, "") for head in (*names, "took", "why it ended")}
        assert {head: report[number][head].replace("–", "") for head in shared} == shared
        assert {text for text in shared.values() if text} <= cells
        status = page[number]["status"]
        assert report[number]["status"] == status
        assert status in map(status_text, cells)


def test_best_trial_reads_alike(view: ExperimentView, told: Callable[..., list[str]], tools: Any) -> None:
    from pitchpipe.experiment import result_of

    printed, summary, (texts, _) = told("status", "made1234"), view.summary(), in_the_report(view)
    said = dict(texts.summary)
    if not summary.best:
        (line,) = (line for line in printed if line.startswith("best: none, "))
        why = line.removeprefix("best: none, ")
        assert texts.why_none == why
        assert f"<p>{why}</p>" in result_of(view.folder.path)._repr_html_()
    elif len(summary.best) == 1:
        (best,) = summary.best
        result, whose = values_text(best, ["default"]), who_text(best)
        assert best_text(summary) == said["Best result"] == f"{result} ({whose})"
        assert f", best {result} ({whose})>" in repr(result_of(view.folder.path))
        (line,) = (line for line in printed if line.startswith("best: "))
        assert line.startswith(f"best: default {result}, ms ")
        assert f"({whose}" in line
        told_tools = tools.explain_experiment("made1234")["best"]["value"]
        assert number_text(told_tools) == number_text(best.values["default"])
    else:
        front = next(line for line in printed if line.startswith("front: "))
        assert said["Front"] == front.removeprefix("front: ")
        for best in summary.best:
            cells = [values_text(best, [name]) for name in view.metric_names()]
            row = "".join(f"<td>{text}</td>" for text in cells)
            assert row in result_of(view.folder.path)._repr_html_()
            assert any(re.split(r"\s{2,}", line.strip())[1:3] == cells for line in printed)


def test_reasons_read_alike(view: ExperimentView, told: Callable[..., list[str]], tools: Any) -> None:
    for trial in view.details():
        number = str(trial.sequence_id)
        ending = ending_of(trial, view, why_waiting)  # as the page of the trial shows it
        printed = told("trial", "show", "made1234", number, "--why")
        assert printed[1 : 2 + len(ending.notes)] == [
            f"  {text}" for text in (ending.sentence, *ending.notes)
        ]
        assert tools.explain_trial("made1234", number)["why"].splitlines() == printed


def test_failures_read_alike(view: ExperimentView, told: Callable[..., list[str]], tools: Any) -> None:
    from pitchpipe.experiment import result_of

    printed, failures = told("status", "made1234"), result_of(view.folder.path).failures
    texts, _ = in_the_report(view)
    assert len(texts.failures) == len(failures)
    listed: list[Mapping[str, Any]] = tools.explain_experiment("made1234").get("failures", [])
    for sentence, object_ in zip(failures, listed, strict=True):
        who, reason = sentence.split(" failed: ", 1)
        assert object_["reason"] == reason
        assert any(line.startswith(f"{who} failed") and f": {reason} (" in line for line in printed)


def test_programs_get_the_regions_of_failure_that_people_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = MadeExperiment(tmp_path / "made1234", a_config(tuner={"name": "Random"}), status="DONE")
    made.commit(*(a_trial(number, value=0.5) for number in range(8)))
    made.commit(*(a_trial(number, "FAILED", kind=FailureKind.OOM) for number in range(8, 14)))
    made.store.close()
    text = "most trials with lr above 0.7 fail (out of memory)"
    assert run(["status", "made1234", "--dir", str(tmp_path)]) == 0
    assert text in capsys.readouterr().out.splitlines()
    assert run(["status", "made1234", "--dir", str(tmp_path), "--json"]) == 0
    (region,) = json.loads(capsys.readouterr().out)["failure_regions"]
    assert (region["parameter"], region["side"], region["value"], region["text"]) == (
        "lr",
        "above",
        0.7,
        text,
    )
    experiments = Experiments(tmp_path)
    assert Asking(experiments).get("/api/v1/experiments/made1234/failure_regions").json == [region]
    experiments.close()
    assert [region_object(each) for each in result_of(made.folder.path).failure_regions] == [region]
