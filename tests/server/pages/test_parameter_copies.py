"""What is copied of the best parameters: JSON, a command line that a terminal takes, Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.server.pages.parameter_copies import command_line, parameter_texts
from pitchpipe.store.reading.view import ExperimentView

from ...stored import MadeExperiment, a_config, a_trial
from .conftest import Open, Serve

NESTED = {"lr": 0.5, "units": 16, "solver": {"_name": "sgd", "momentum": 0.9}}
PARSES = "import pitchpipe\narguments = pitchpipe.parse_args(parser)\n"
ASKS = "import pitchpipe\nparameters = pitchpipe.get_next_parameter()\n"


def texts(tmp_path: Path, **fields: Any) -> dict[str, str]:
    made = MadeExperiment(tmp_path / "runs" / "made1234", a_config(**fields))
    made.commit(a_trial(7, value=0.5, parameters=NESTED))
    made.store.close()
    with ExperimentView(made.folder) as view:
        return parameter_texts(view, view.trial(7))


def test_script_with_arguments_gets_them_flat(tmp_path: Path) -> None:
    found = texts(tmp_path, trial_command="python train.py --epochs 3 {args}")
    flat = {"lr": 0.5, "units": 16, "solver": "sgd", "momentum": 0.9}
    assert json.loads(found["as JSON"]) == flat
    assert found["as a command"] == (
        "python train.py --epochs 3 --lr=0.5 --units=16 --solver=sgd --momentum=0.9"
    )
    names: dict[str, Any] = {}
    exec(found["as Python"], names)
    assert names["parameters"] == flat


def test_script_that_asks_for_parameters_gets_what_it_reads(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(ASKS)
    found = texts(tmp_path, trial_command="python train.py", trial_code_directory=str(tmp_path))
    assert json.loads(found["as JSON"]) == NESTED
    assert found["as a command"] == f"pitchpipe trial rerun made1234 7 --dir {tmp_path / 'runs'}"
    assert found["as Python"].endswith("'solver': {'_name': 'sgd', 'momentum': 0.9}}")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python train.py", "python train.py --lr=0.5"),
        ("python -u train.py --epochs 3", "python -u train.py --epochs 3 --lr=0.5"),
        ("python train.py | tee log", ""),
        ("python other.py", ""),
        ("./train", ""),
        ("python 'train.py", ""),
    ],
)
def test_script_that_parses_arguments_is_called_with_them(
    tmp_path: Path, command: str, expected: str
) -> None:
    (tmp_path / "train.py").write_text(PARSES)
    config = {"trialCommand": command, "trialCodeDirectory": str(tmp_path)}
    assert command_line(config, {"lr": 0.5}) == expected


def test_value_that_no_shell_takes_has_no_command() -> None:
    assert command_line({"trialCommand": "echo `./train {model}`"}, {"model": "a b"}) == ""
    twice = {"k": 1, "model": {"_name": "knn", "k": 2}}
    assert command_line({"trialCommand": "./train {args}"}, twice) == ""


def test_page_offers_the_three_forms(
    tmp_path_factory: pytest.TempPathFactory, serve: Serve, open_page: Open, context: Any
) -> None:
    directory = tmp_path_factory.mktemp("copies")
    made = MadeExperiment(directory / "made1234", a_config(trial_command="./train {args}"), "DONE")
    made.commit(a_trial(5, value=0.5), end_time=200.0, run_time=100.0)
    made.store.close()
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    address = serve(directory)
    forms = {
        "As JSON": '{"lr": 0.5, "units": 16}',
        "As a command": "./train --lr=0.5 --units=16",
        "As Python": "parameters = {'lr': 0.5, 'units': 16}",
    }
    for path, name in (
        ("made1234", "Copy the parameters of the best trial"),
        ("made1234/trials/5", "Copy the parameters"),
    ):
        page = open_page(f"{address}/{path}")
        for form, text in forms.items():
            page.get_by_role("button", name=name).click()
            page.get_by_role("menu").get_by_text(form, exact=True).click()
            page.get_by_text(
                f"The parameters of trial 5 are on the clipboard {form[0].lower()}{form[1:]}"
            ).wait_for()
            assert page.evaluate("navigator.clipboard.readText()") == text
