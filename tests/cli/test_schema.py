"""`pitchpipe schema`, and the line by which `init` leads an editor to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Call

SCRIPT = 'import pitchpipe\nlr = pitchpipe.get_next_parameter().get("lr", 0.1)\npitchpipe.report_final_result(lr)\n'
LINE = "# yaml-language-server: $schema=experiment.schema.json\n"


def test_schema_is_json_of_all_fields(call: Call) -> None:
    printed = json.loads(call("schema").out)
    assert printed["title"] == "experiment.yml of Pitchpipe"
    assert "max_trial_number" in printed["properties"]


def test_init_names_the_schema_that_is_there(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(SCRIPT)
    assert call("init", "train.py", "--yes").code == 0
    assert "yaml-language-server" not in Path("experiment.yml").read_text()
    Path("experiment.schema.json").write_text(call("schema").out)
    assert call("init", "train.py", "--yes", "--force").code == 0
    text = Path("experiment.yml").read_text()
    assert text.startswith(LINE)
    assert call("validate", "experiment.yml").code == 0
