"""tests/lineage.md says where each name of Ray Tune's runner and of NNI's dispatcher is here: each place exists."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pitchpipe.compat.tune.routes import TUNE_STATUS
from pitchpipe.dispatcher.msg_dispatcher_base import MsgDispatcherBase

# Every name that must have a row, by section.
NAMES = {
    "TrialRunner": """
        TrialRunner() add_trial add_experiment step is_finished _get_next_trial _update_trial_queue _process_events
        _process_trial _process_trial_save _process_trial_restore _process_trial_failure _try_recover _requeue_trial
        _execute_action stop_trial request_stop_trial request_stop_experiment _process_stop_requests
        _stop_experiment_if_needed checkpoint checkpoint_exists _find_newest_ckpt resume _validate_resume __getstate__
        __setstate__ _TuneFunctionEncoder _TuneFunctionDecoder debug_string has_resources cleanup_trials get_trial
        get_trials
    """,
    "TrialExecutor and RayTrialExecutor": """
        TrialExecutor set_status mark_trial_to_checkpoint get_checkpoints start_trial stop_trial continue_training
        pause_trial reset_trial restore save export_trial_if_needed get_ready_trial get_next_executor_event
        has_resources_for_trial on_step_begin on_step_end force_reconcilation_on_next_step_end has_gpus cleanup
        set_max_pending_trials debug_string
    """,
    "TuneServer and TuneClient": """
        TuneServer() shutdown RunnerHandler HEAD TuneClient() get_all_trials get_trial add_trial stop_trial
        stop_experiment server_address server_port
    """,
    "MsgDispatcherBase": """
        MsgDispatcherBase() run enqueue_command command_queue_worker process_command handle_initialize
        handle_request_trial_jobs handle_update_search_space handle_import_data handle_add_customized_trial
        handle_report_metric_data handle_trial_end handle_ping
    """,
    "Everything else": """
        TunerInternal setup_create_experiment_checkpoint_dir Trial Trial.checkpoint init_logdir
        logdir update_resources create_placement_group_factory should_recover FunctionTrainable wrap_function
        register_trainable register_env PlacementGroupFactory RunConfig ResumeConfig Callback Stopper
        MaximumIterationStopper ExperimentPlateauStopper TrialPlateauStopper TimeoutStopper FunctionStopper
        CombinedStopper
    """,
}
KINDS = {"same", "better", "superseded"}


class Row(NamedTuple):
    """One name of the originals, and what its row says."""

    section: str
    names: list[str]
    kind: str
    homes: list[str]
    tests: list[str]
    note: str


def page(tree: Path) -> str:
    return (tree / "tests" / "lineage.md").read_text(encoding="utf-8")


def rows(text: str) -> list[Row]:
    """Return the rows of the tables with five columns."""
    found = []
    for section, body in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL):
        for line in body.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if line.startswith("|") and len(cells) == 5 and cells[1] in KINDS:
                found.append(
                    Row(section, ticked(cells[0]), cells[1], ticked(cells[2]), ticked(cells[3]), cells[4])
                )
    return found


def ticked(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def problem(home: str) -> str | None:
    """Why a dotted name cannot be had: the longest module that it begins with lacks the rest."""
    parts = home.split(".")
    for end in range(len(parts), 0, -1):
        try:
            thing: Any = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for name in parts[end:]:
            if not has(thing, name):
                return f"{home}: there is no {name}"
            thing = getattr(thing, name, None)
        return None
    return f"{home}: there is no such module"


def has(thing: Any, name: str) -> bool:
    """Return whether there is such an attribute, or a field of a dataclass without a default."""
    return hasattr(thing, name) or name in getattr(thing, "__dataclass_fields__", ())


def functions(file: Path) -> set[str]:
    """Return the functions of a test file, and what hypothesis makes into one."""
    nodes = ast.parse(file.read_text(encoding="utf-8")).body
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def lacking_tests(tree: Path, tests: list[str]) -> list[str]:
    """Return the node ids that name no test."""
    lacking = []
    for node in tests:
        file, _, name = node.partition("::")
        if not name.startswith("test_") or not (tree / file).is_file() or name not in functions(tree / file):
            lacking.append(node)
    return lacking


@pytest.mark.parametrize("section", NAMES)
def test_every_name_has_its_row(section: str, tree: Path) -> None:
    named = {name for row in rows(page(tree)) if row.section == section for name in row.names}
    assert [name for name in NAMES[section].split() if name not in named] == []


def test_every_row_says_where_and_shows_it(tree: Path) -> None:
    found = rows(page(tree))
    tables = [line for line in page(tree).splitlines() if line.startswith("|") and "| is |" not in line]
    assert len(found) == sum(line.count("|") == 6 and not line.startswith("|---") for line in tables)
    for row in found:
        assert row.homes, row
        assert row.tests, row
        assert row.note or row.kind == "same", row


def test_everything_that_is_named_is_there(tree: Path) -> None:
    named = re.findall(r"`(pitchpipe(?:\.\w+)+)`", page(tree))
    assert len(named) > 100
    assert [why for home in named if (why := problem(home))] == []


def test_every_test_that_is_named_is_there(tree: Path) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py::\w+)`", page(tree))
    assert len(named) > 120
    assert lacking_tests(tree, named) == []


def test_statuses_are_those_of_the_table(tree: Path) -> None:
    said = re.findall(r"^\| ([A-Z_, ]+) \| ([A-Z]+) \|$", page(tree), re.MULTILINE)
    assert {here: tune for cell, tune in said for here in cell.split(", ")} == TUNE_STATUS


def test_planted_errors_are_seen(tree: Path) -> None:
    assert problem("pitchpipe.runner.trial_runner.TrialRunner.add_trail") == (
        "pitchpipe.runner.trial_runner.TrialRunner.add_trail: there is no add_trail"
    )
    assert problem("nowhere.at_all") == "nowhere.at_all: there is no such module"
    assert problem("pitchpipe.executors.trial_executor.AttemptOrder.slot") is None
    wrong = ["tests/test_lineage.py::test_nothing", "tests/nowhere.py::test_x", "tests/test_lineage.py::rows"]
    assert lacking_tests(tree, wrong) == wrong
    assert rows("## A\n| `x` | good | `a` | `b` | |\n") == []


def test_ping_is_not_answered() -> None:
    class Silent(MsgDispatcherBase):
        def send(self, command: Any, payload: str = "") -> None:
            raise AssertionError(command)

    assert Silent.handle_ping(Silent.__new__(Silent), "") is None
