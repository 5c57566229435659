"""Parameters as command-line arguments: in commands, and through argparse parsers."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from pitchpipe.sdk.command_arguments import flat_arguments, parsed_with

NESTED = {"model": {"_name": "knn", "k": 7, "metric": {"_name": "minkowski", "p": 2.0}}, "lr": 0.1}


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser()
    made.add_argument("data")
    made.add_argument("--lr", "-l", type=float, default=0.01)
    made.add_argument("--min-leaf", type=int, default=1)
    made.add_argument("--model", choices=["knn", "tree"], default="tree")
    made.add_argument("--k", type=int, default=3)
    made.add_argument("--metric", "-m")
    made.add_argument("--p", type=float)
    made.add_argument("--fast", action="store_true")
    made.add_argument("--no-cache", dest="cache", action="store_false")
    made.add_argument("--bias", action=argparse.BooleanOptionalAction, default=None)
    made.add_argument("--bn", type=bool)
    made.add_argument("--layers", type=int, nargs="+")
    made.add_argument("--depth", type=int, required=True)
    return made


def test_nested_choices_become_flat() -> None:
    assert flat_arguments(NESTED) == {"model": "knn", "k": 7, "metric": "minkowski", "p": 2.0, "lr": 0.1}
    assert flat_arguments({"kernel": {"size": 3}}) == {"kernel": {"size": 3}}


@pytest.mark.parametrize("parameters", [{"k": 1, **NESTED}, {**NESTED, "p": 3}])
def test_two_parameters_with_one_name_are_an_error(parameters: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"two parameters are called [kp]: as arguments, each needs a name"):
        flat_arguments(parameters)


@pytest.mark.parametrize("parameters", [{}, {"model": "forest", "depth": 1}])
def test_what_the_parser_refuses_is_its_error(parameters: dict[str, Any]) -> None:
    with pytest.raises(SystemExit):
        parsed_with(parser(), ["file.csv"], parameters)


@pytest.mark.parametrize("value", [-1e-05, -2.5e20, -1.5e-300, 1e-05, -3, -0.5])
def test_any_number_reaches_an_argument_alone_or_in_a_list(value: float) -> None:
    made = argparse.ArgumentParser(add_help=False)
    made.add_argument("data", nargs="*")
    made.add_argument("--long", type=float)
    made.add_argument("-s", type=float)
    made.add_argument("-short", type=float)
    made.add_argument("--some", type=float, nargs="+")
    made.add_argument("-t", type=float, nargs=2)
    made.add_argument("--one", type=float, nargs=1)
    values = {"long": value, "s": value, "short": value, "some": [value, 2, value], "t": [value, value]}
    assert vars(parsed_with(made, ["a.csv"], {**values, "one": value})) == {
        **values,
        "one": [value],
        "data": ["a.csv"],
    }


@pytest.mark.parametrize("text", ["-x", "--lr", "-1e-05", "", "a=b", "@file"])
def test_any_text_reaches_an_argument(text: str) -> None:
    made = argparse.ArgumentParser(fromfile_prefix_chars="%")
    made.add_argument("-s")
    made.add_argument("--long", "-l")
    assert vars(parsed_with(made, [], {"s": text, "long": text})) == {"s": text, "long": text}


def test_false_is_enough_for_a_required_argument() -> None:
    made = argparse.ArgumentParser()
    made.add_argument("--bn", type=bool, required=True)
    assert parsed_with(made, [], {"bn": False}).bn is False


@pytest.mark.parametrize("value", [0, 3])
def test_a_count_and_a_list_of_constants_are_set_as_they_are(value: int) -> None:
    made = argparse.ArgumentParser()
    made.add_argument("--verbose", "-v", action="count", default=1)
    made.add_argument("--fast", dest="steps", action="append_const", const="fast")
    parsed = parsed_with(made, [], {"verbose": value, "steps": ["a", "b"]})
    assert (parsed.verbose, parsed.steps) == (value, ["a", "b"])
