"""Parameters as command-line arguments: in commands, and through argparse parsers."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from typing import Any

import pytest

from pitchpipe.trial_agent.arguments import filled, flat_arguments, parsed_with

NESTED = {"model": {"_name": "knn", "k": 7, "metric": {"_name": "minkowski", "p": 2.0}}, "lr": 0.1}


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(exit_on_error=False)
    made.add_argument("data")
    made.add_argument("--lr", "-l", type=float, default=0.01)
    made.add_argument("--min-leaf", type=int, default=1)
    made.add_argument("--model", choices=["knn", "tree"], default="tree")
    made.add_argument("--k", type=int)
    made.add_argument("--metric", "-m")
    made.add_argument("--p", type=float)
    made.add_argument("--fast", action="store_true")
    made.add_argument("--bias", action=argparse.BooleanOptionalAction, default=None)
    made.add_argument("--layers", type=int, nargs="+")
    made.add_argument("--depth", type=int, required=True)
    return made


def parsed(parameters: dict[str, Any], *words: str) -> dict[str, Any]:
    return vars(parsed_with(parser(), ["file.csv", *words], parameters))


def test_nested_choices_become_flat() -> None:
    assert flat_arguments(NESTED) == {"model": "knn", "k": 7, "metric": "minkowski", "p": 2.0, "lr": 0.1}
    assert flat_arguments({"kernel": {"size": 3}}) == {"kernel": {"size": 3}}


@pytest.mark.parametrize("parameters", [{"k": 1, **NESTED}, {**NESTED, "p": 3}])
def test_two_parameters_with_one_name_are_an_error(parameters: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"two parameters are called [kp]: as arguments, each needs a name"):
        flat_arguments(parameters)


def test_parameters_override_the_command_line_and_have_the_parsers_types() -> None:
    found = parsed({**NESTED, "min-leaf": 8.0, "depth": 3, "layers": [4, 5]}, "--lr", "7", "--k", "1")
    assert found == {
        "data": "file.csv",
        "lr": 0.1,
        "min_leaf": 8,
        "model": "knn",
        "k": 7,
        "metric": "minkowski",
        "p": 2.0,
        "fast": False,
        "bias": None,
        "layers": [4, 5],
        "depth": 3,
    }
    assert isinstance(found["min_leaf"], int)


@pytest.mark.parametrize("name", ["min-leaf", "min_leaf", "--min-leaf"])
def test_an_argument_is_found_by_each_of_its_names(name: str) -> None:
    assert parsed({name: 3, "depth": 1})["min_leaf"] == 3


@pytest.mark.parametrize(("value", "expected"), [(True, (True, True)), (False, (False, False))])
def test_flags_are_set_or_left_out(value: bool, expected: tuple[bool, bool]) -> None:
    found = parsed({"fast": value, "bias": value, "depth": 1})
    assert (found["fast"], found["bias"]) == expected


@pytest.mark.parametrize("value", [True, False])
def test_a_flag_is_called_by_its_option_or_by_what_it_stores(value: bool) -> None:
    made = argparse.ArgumentParser()
    made.add_argument("--no-cache", dest="cache", action="store_false")
    assert parsed_with(made, [], {"cache": value}).cache is value
    assert parsed_with(made, [], {"no-cache": value}).cache is not value


@pytest.mark.parametrize(("name", "value"), [("bn", True), ("bn", False), ("k", None), ("lr", None)])
def test_null_and_false_arrive(name: str, value: Any) -> None:
    made = parser()
    made.add_argument("--bn", type=bool, required=name == "bn")
    assert vars(parsed_with(made, ["file.csv", "--depth=1"], {name: value}))[name] is value


def test_a_positional_argument_is_set() -> None:
    assert parsed({"data": "other.csv", "depth": 1})["data"] == "other.csv"


def test_without_parameters_the_command_line_counts() -> None:
    assert parsed({}, "--depth", "2", "-l", "0.5")["lr"] == 0.5
    with pytest.raises((SystemExit, argparse.ArgumentError)):
        parsed({})


def test_values_that_begin_with_a_dash_are_values() -> None:
    found = parsed({"lr": -0.5, "depth": -2, "metric": "--fast"})
    assert (found["lr"], found["metric"], found["fast"]) == (-0.5, "--fast", False)


@pytest.mark.parametrize("name", ["l", "mode", "momentum", "laye"])
def test_a_parameter_that_the_parser_lacks_is_an_error_and_no_abbreviation(name: str) -> None:
    known = parser()
    if name == "l":
        assert parsed({"l": 0.5, "depth": 1})["lr"] == 0.5  # its short form
        return
    with pytest.raises(
        ValueError, match=f"the parser has no argument for the parameter '{name}'; it has data, lr"
    ):
        parsed_with(known, ["file.csv"], {name: 1, "depth": 1})


def test_value_that_the_parser_refuses_is_its_error() -> None:
    with pytest.raises((SystemExit, argparse.ArgumentError)):
        parsed({"model": "forest", "depth": 1})


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("train {args}", "train --model=knn --k=7 --metric=minkowski --p=2 --lr=0.1"),
        ("train -l {lr} {model}", "train -l 0.1 knn"),
        ("awk '{print}' ${HOME} {}", "awk '{print}' ${HOME} {}"),
        ("train", "train"),
    ],
)
def test_placeholders_of_a_command_are_filled(command: str, expected: str) -> None:
    assert filled(command, NESTED) == expected


def test_values_reach_the_program_as_they_are() -> None:
    values = {
        "text": "it's $HOME; rm -rf *",
        "none": None,
        "yes": True,
        "no": False,
        "list": [1, "a b"],
        "big": 1e300,
    }
    show = f"{shlex.quote(sys.executable)} -c 'import sys; print(sys.argv[1:])' {{args}}"
    done = subprocess.run(filled(show, values), shell=True, capture_output=True, text=True, check=True)
    words = ["--text=it's $HOME; rm -rf *", "--yes", '--list=[1, "a b"]', "--big=1e+300"]
    assert done.stdout == f"{words}\n"
