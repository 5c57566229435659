"""`pitchpipe export`: the trials as JSON and as CSV."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from ..stored import results
from .conftest import Call, Storing, make_trial
from .results import NESTED


def test_json_export_has_numbers_and_no_nan(three: list[Any], call: Call) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    exported = json.loads(call("export", "first", "--format", "json").out, parse_constant=refuse)
    assert exported["experiment"]["id"] == "first"
    assert exported["trials"][0] == {
        "id": "T0000",
        "sequence_id": 0,
        "status": "SUCCEEDED",
        "parameters": NESTED,
        "intermediate": [0.5, None, 0.7],
        "final": 0.75,
        "metrics": {},
        "start_time": 1000.0,
        "end_time": 1010.0,
        "reason": "",
        "kind": None,
        "exit_code": None,
        "attempts": 1,
        "code": None,
    }
    assert exported["trials"][1]["final"] is None
    assert [trial["sequence_id"] for trial in exported["trials"]] == [0, 1, 2]


def test_help_and_page_list_the_fields_of_the_export(three: list[Any], call: Call, tree: Path) -> None:
    page = (tree / "docs" / "reference" / "cli.md").read_text().split("\n## export\n")[1].split("\n## ")[0]
    shown = call("export", "--help").out
    fields = [*json.loads(call("export").out)["trials"][0]]
    assert [*json.loads(page.split('"trials": ')[1].split("}\n\n")[0])[0]] == fields
    assert re.findall(r'"(\w+)"', shown.split('"trials":')[1].split("]}")[0]) == fields
    header = call("export", "--format", "csv").out.splitlines()[0].split(",")
    columns = [*dict.fromkeys(name if name in fields else "parameters" for name in header)]
    columns.insert(columns.index("final") + 1, "metrics")  # only of trials that report some
    for text in (page.split("CSV has one row")[1], shown.split("CSV:")[1]):
        assert re.findall(rf"\b({'|'.join(fields)})\b", re.split(r"[.;]\s", text)[0]) == columns


def test_export_counts_a_later_attempt_instead_of_what_it_repeats(stored: Storing, call: Call) -> None:
    trial = make_trial(0, "SUCCEEDED", None, 1.0)
    metrics = [*results(trial, [10, 11, 12]), *results(trial, [21], first=1, attempt=2)]
    stored().write("e", [trial], metrics, superseded=[(0, 1, 1)])
    assert json.loads(call("export").out)["trials"][0]["intermediate"] == [10, 21]


def test_csv_export_flattens_parameters_and_results(stored: Storing, call: Call) -> None:
    trials = [
        make_trial(0, "SUCCEEDED", {**NESTED, "status": "a, b"}, {"default": 0.5, "size": 3}, values=(0.5,)),
        make_trial(1, "FAILED", {"lr": 1}, reason='he said "no"'),
    ]
    stored().write("e", trials)
    one, other = csv.DictReader(io.StringIO(call("export", "--format", "csv").out))
    assert (one["lr"], one["solver._name"], one["solver.momentum"]) == ("0.1", "sgd", "0.9")
    assert (one["status"], one["parameters.status"]) == ("SUCCEEDED", "a, b")
    assert (one["final.default"], one["final.size"]) == ("0.5", "3")
    assert (other["sequence_id"], other["solver.momentum"], other["final.size"]) == ("1", "", "")
    assert other["reason"] == 'he said "no"'


def test_export_to_a_file_leaves_nothing_else(three: list[Any], tmp_path: Path, call: Call) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    called = call("export", "first", "--format", "csv", "-o", folder / "trials.csv")
    assert (called.code, called.out) == (0, "")
    assert [path.name for path in folder.iterdir()] == ["trials.csv"]
    assert len((folder / "trials.csv").read_text().splitlines()) == 4


def test_a_file_that_is_named_csv_gets_csv(three: list[Any], call: Call, tmp_path: Path) -> None:
    assert call("export", "-o", tmp_path / "t.csv").code == 0
    assert (tmp_path / "t.csv").read_text().startswith("sequence_id,id,status,")
    assert call("export", "-o", tmp_path / "u.csv", "--format", "json").code == 0
    assert "experiment" in json.loads((tmp_path / "u.csv").read_text())


def test_report_is_a_page(three: list[Any], call: Call, tmp_path: Path) -> None:
    called = call("report", "first", "-o", tmp_path / "r.pdf")
    assert (called.code, f"a report is an HTML page: write -o {tmp_path}/r.html" in called.err) == (2, True)
    assert list(tmp_path.glob("r.*")) == []
    assert call("report", "first", "-o", tmp_path / "r.HTM").code == 0


@pytest.mark.parametrize(
    ("words", "name"),
    [("export", "x.csv"), ("export", "x.json"), ("export --format optuna", "x.db"), ("report", "x.html")],
)
def test_file_that_cannot_be_written_is_named_as_it_was_asked_for(
    three: list[Any], call: Call, tmp_path: Path, words: str, name: str
) -> None:
    (tmp_path / "file").touch()
    called = call(*words.split(), "first", "-o", tmp_path / "file" / name)
    assert (called.code, f"{tmp_path}/file/{name} cannot be written" in called.err) == (1, True)
    assert f".{name}" not in called.err.replace(f"/{name}", "")
    assert "Traceback" not in called.err
