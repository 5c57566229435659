"""`--json`: every verb that has done something says it as one JSON object."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from . import test_help
from .conftest import Call, Storing, make_trial

VERBS = {" ".join(words): command for words, command in test_help.VERBS.items()}
# They print text or bytes for people, until they are left; `export` writes JSON without it.
WITHOUT = {"top", "ui", "mcp", "completion", "export", "schema", "trial log"}
CLI = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"


def test_every_verb_has_the_option() -> None:
    lacking = {
        name
        for name, command in VERBS.items()
        if not any("--json" in parameter.opts for parameter in command.params)
    }
    assert lacking == WITHOUT


def documented() -> dict[str, str]:
    """Return what docs/reference/cli.md says that each verb prints."""
    table = CLI.read_text().partition("\n### JSON\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \| (.*) \|$", table, re.MULTILINE)
    return {name: text for names, text in rows for name in re.findall(r"`(.*?)`", names)}


def test_manual_says_what_every_verb_prints() -> None:
    assert set(documented()) == {*VERBS} - WITHOUT


def test_manual_names_the_fields_of_the_list(stored: Storing, call: Call) -> None:
    objectives = [{"name": "a", "direction": "maximize"}, {"name": "ms", "direction": "minimize"}]
    stored(objectives=objectives).write("e", [make_trial(0, "SUCCEEDED", None, {"a": 1.0, "ms": 2.0})])
    (shown,) = json.loads(call("list", "--json").out)
    assert {name for name in shown if f"`{name}`" not in documented()["list"]} == set()


def test_cluster_verbs_name_the_hosts_alike(call: Call) -> None:
    found = [json.loads(call("cluster", verb, "--json").out) for verb in ("status", "down")]
    assert [(one["address"], one["hosts"]) for one in found] == [(None, []), (None, [])]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["update", "mine", "--max-trial-number", "9"], {"id": "mine", "limits": {"max_trial_number": 9}}),
        (["stop", "mine"], {"id": "mine", "status": "STOPPED", "counts": {}}),
        (["stop", "--all"], {"stopped": []}),
        (["report", "mine", "-o", "r.html"], {"id": "mine", "file": "r.html"}),
        (["delete", "mine", "--yes"], {"deleted": ["mine"]}),
        (["ray", "stop"], {"stopped": False}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_object_says_what_was_done(
    stored: Storing,
    call: Call,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    found: dict[str, Any],
) -> None:
    monkeypatch.chdir(tmp_path)
    stored(status="STOPPED").write("mine", [])
    called = call(*words, "--json")
    assert called.code == 0, called.err
    said = json.loads(called.out)
    if "file" in found:
        assert Path(said["file"]).stat().st_size == said["bytes"]
        found = {**found, "file": str(tmp_path / found["file"])}
    if "limits" in found:
        said["limits"] = {name: said["limits"][name] for name in found["limits"]}
    assert {name: said[name] for name in found} == found


def test_init_and_validate_say_what_they_found(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fit.py").write_text(
        "p.add_argument('--lr', type=float, default=0.1)\np.add_argument('--epochs', default=3)\n"
    )
    drafted = json.loads(call("init", "fit.py", "--json").out)
    assert (drafted["file"], drafted["parameters"], drafted["not_tuned"]) == (
        "experiment.yml",
        ["lr"],
        {"epochs": 3},
    )
    assert [line.split("(")[0] for line in drafted["missing_calls"]] == [
        "pitchpipe.report_intermediate_result",
        "pitchpipe.report_final_result",
    ]
    valid = json.loads(call("validate", "experiment.yml", "--json").out)
    assert (valid["parameters"], valid["tuner"], valid["assessor"]) == (["lr"], "Auto", None)
    tried = call("validate", "experiment.yml", "--json", "--try", "--set", "trial_command=exit 3")
    assert (tried.code, json.loads(tried.out)["tried"]["status"]) == (1, "FAILED")
