"""The tools of `pitchpipe mcp`, used by the client of the mcp package."""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pitchpipe.cli.app import run

from ..lazy import Lazy
from .conftest import Call

mcp_client, mcp_tools = Lazy("mcp.client.client"), Lazy("pitchpipe.cli.verbs.mcp_tools")

SCRIPT = """\
import pitchpipe
x = {"x": 0.5, **pitchpipe.get_next_parameter()}["x"]
pitchpipe.report_final_result(x * x)
"""


def texts(result: Any) -> str:
    return "".join(getattr(part, "text", "") for part in result.content)


@pytest.fixture(autouse=True)
def verbs_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the verbs of tools in this process, except those that take signals: tools run on another thread."""

    def run_here(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        words = command[command.index("pitchpipe") + 1 :]
        if words[0] in ("create", "validate"):
            return subprocess.run(command, **options)
        out, err = (io.TextIOWrapper(io.BytesIO(), write_through=True) for _ in range(2))
        with redirect_stdout(out), redirect_stderr(err):
            code = run(words)
        return subprocess.CompletedProcess(command, code, *(_text_of(stream) for stream in (out, err)))

    here = SimpleNamespace(run=run_here, DEVNULL=subprocess.DEVNULL)
    monkeypatch.setattr("pitchpipe.cli.verbs.mcp_tools.subprocess", here)


def _text_of(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


async def told(client: Any, tool: str, **arguments: Any) -> Any:
    """Call a tool that must succeed; return what it says."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, texts(result)
    found = result.structured_content
    return found["result"] if found and set(found) == {"result"} else found


def test_agent_tunes_a_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(SCRIPT)

    async def tune() -> None:
        async with mcp_client.Client(mcp_tools.mcp_server(tmp_path / "runs")) as client:
            drafted = await told(
                client, "draft_config", script="train.py", parameters=["x=uniform:-1:1"], trials=2
            )
            assert "x: {_type: uniform, _value: [-1, 1]}" in drafted["text"]
            valid = await told(client, "validate_config", config="experiment.yml")
            assert valid["parameters"] == ["x"]
            changes = ["tuner=Random", "experiment_name=by-agent"]
            started = await told(
                client, "start_experiment", config="experiment.yml", changes=changes, experiment_id="mine"
            )
            assert started["id"] == "mine"
            ended = await told(client, "wait_for_experiment", experiment="mine", seconds=60)
            assert (ended["status"], ended["counts"]) == ("DONE", {"SUCCEEDED": 2})
            explained = await told(client, "explain_experiment", experiment="mine")
            assert explained["best"] == ended["best"]
            assert explained["importance"]["why_not"]
            (first,) = await told(client, "list_trials", experiment="mine", where="sequence_id == 0")
            assert first["parameters"] == {"x": 0.5}  # the script's default
            by_value = await told(client, "list_trials", experiment="mine", sort="-value.default")
            values = [one["final"] for one in by_value]
            assert values == sorted(values, reverse=True)
            assert "succeeded" in (await told(client, "explain_trial", experiment="mine", trial="0"))["why"]
            unknown = await client.call_tool("wait_for_experiment", {"experiment": "other"})
            assert "other" in texts(unknown)
            refused = await client.call_tool("add_trial", {"experiment": "mine", "parameters": {"x": 0.1}})
            assert refused.is_error
            assert "it is DONE, and resume_experiment mine max_trial_number N extends it" in texts(refused)
            for trial in (0, first["id"]):
                found = await told(client, "explain_trial", experiment="mine", trial=trial)
                assert found["sequence_id"] == 0

    asyncio.run(tune())


def called(tool: str, **arguments: Any) -> Any:
    """Call a tool of a server for the default directory."""

    async def call() -> Any:
        async with mcp_client.Client(mcp_tools.mcp_server(None)) as client:
            return await client.call_tool(tool, arguments)

    return asyncio.run(call())


def test_problems_of_a_config_reach_the_agent(tmp_path: Path) -> None:
    config = tmp_path / "bad.yml"
    config.write_text("trial_comand: true\nsearch_space: {}\n")
    refused = called("validate_config", config=str(config))
    assert refused.is_error
    assert f"{config}:1:1: trial_comand: unknown field (did you mean trial_command?)" in texts(refused)


def test_unknown_arguments_are_refused_before_anything_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(SCRIPT)
    refused = called("draft_config", script="train.py", maximise=True, trial=1, trials="many")
    assert refused.is_error
    assert texts(refused).startswith(
        "unknown arguments of draft_config: maximise, trial; it takes script, output,"
    )
    assert texts(refused).endswith(
        "; trials: Input should be a valid integer, unable to parse string as an integer"
    )
    assert not Path("experiment.yml").exists()
    assert texts(called("validate_config")) == "config: Field required"


def test_schema_allows_no_other_arguments_and_server_has_a_version() -> None:
    async def ask() -> tuple[list[Any], str]:
        async with mcp_client.Client(mcp_tools.mcp_server(None)) as client:
            return (await client.list_tools()).tools, client.server_info.version

    tools, found = asyncio.run(ask())
    assert all(tool.input_schema["additionalProperties"] is False for tool in tools)
    assert found == version("pitchpipe")


def test_empty_list_is_text_as_well(directory: Path) -> None:
    listed = called("list_experiments")
    assert (texts(listed), listed.structured_content) == ("[]", {"result": []})


def test_errors_and_notes_have_the_names_of_tools_and_arguments(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(SCRIPT.replace('{"x": 0.5,', '{"x": 0.5, "epochs": 3,'))
    drafted = called("draft_config", script="train.py")
    assert "not tuned: epochs; to tune one: parameters NAME=..." in drafted.structured_content["notes"]
    again = texts(called("draft_config", script="train.py"))
    assert again.endswith(
        ": experiment.yml exists already: choose another with output, or add overwrite=true"
    )
    unknown = texts(called("stop_experiment", experiment="other"))
    assert unknown.endswith("see list_experiments")
    wrong = texts(called("list_trials", experiment="other", limit=-1))
    assert wrong.startswith("Error executing tool list_trials: Invalid value for 'limit'")


def test_command_serves_its_tools_on_stdio(directory: Path) -> None:
    server = Lazy("mcp.client.stdio").StdioServerParameters(
        command=sys.executable, args=["-P", "-m", "pitchpipe", "mcp", "--dir", str(directory)]
    )

    async def ask() -> tuple[set[str], Any]:
        async with mcp_client.Client(server) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            return names, await told(client, "list_experiments")

    names, experiments = asyncio.run(ask())
    assert {
        "draft_config",
        "validate_config",
        "start_experiment",
        "change_limits",
        "explain_experiment",
    } <= names
    assert experiments == []


def test_missing_package_is_one_sentence(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    called = call("mcp")
    assert (called.code, called.err) == (
        1,
        "error: pitchpipe mcp needs the extra mcp: pip install 'mcp>=2.0'\n",
    )
