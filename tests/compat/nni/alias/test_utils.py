"""The helpers that only NNI has."""

from __future__ import annotations

import io
import sys
from argparse import Namespace
from typing import Any

import pytest

from pitchpipe.compat.nni.alias.utils import (
    ClassArgsValidator,
    dump,
    extract_scalar_history,
    extract_scalar_reward,
    load,
    merge_parameter,
    split_index,
)


class Settings:
    lr, layers = 0.1, 2


def test_parameters_are_merged_in_place() -> None:
    arguments = Namespace(lr=0.1, layers=2, name=None)
    assert merge_parameter(arguments, {"lr": 1, "name": "x"}) is arguments
    assert arguments == Namespace(lr=1.0, layers=2, name="x")
    assert isinstance(arguments.lr, float)
    for own in (Settings(), Settings):
        assert merge_parameter(own, {"lr": 1, "layers": 4}) is own
        assert (own.lr, own.layers) == (1.0, 4)
    as_dict = {"a": 1}
    assert merge_parameter(as_dict, {"a": 2}) is as_dict
    assert merge_parameter(as_dict, None) is as_dict


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({"momentum": 1}, "there is no parameter 'momentum' among 'lr', 'layers'"),
        ({"layers": 2.0}, "'layers' is 2.0, a float, but the argument's default is a int"),
        ({"lr": True}, "'lr' is True, a bool, but the argument's default is a float"),
        ({"lr": "0.1"}, "'lr' is '0.1', a str, but the argument's default is a float"),
    ],
)
def test_parameter_that_does_not_fit_is_an_error(parameters: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        merge_parameter(Namespace(lr=0.1, layers=2), parameters)


def test_rewards_are_the_numbers_in_results() -> None:
    assert extract_scalar_history([1, 0.5, {"default": 2, "x": 3}]) == [1.0, 0.5, 2.0]
    assert extract_scalar_reward({"loss": 3}, "loss") == 3.0
    with pytest.raises(RuntimeError, match="a trial reported 'high', which is not a number"):
        extract_scalar_reward("high")


def test_option_numbers_are_left_out_at_every_level() -> None:
    nested = {"_index": 0, "_value": {"_name": "conv", "size": {"_index": 2, "_value": 5}}}
    assert split_index({"layer": nested, "x": [1]}) == {"layer": {"_name": "conv", "size": 5}, "x": [1]}


def test_text_of_a_value_goes_to_a_file_and_back() -> None:
    file = io.StringIO()
    assert dump({"b": 1, "a": float("inf")}, file, sort_keys=True) == '{"a": Infinity, "b": 1}'
    assert load(fp=io.StringIO(file.getvalue())) == load(file.getvalue()) == {"a": float("inf"), "b": 1}
    with pytest.raises(ValueError, match="load needs a string or fp"):
        load()


def test_arguments_are_checked_with_schema(tmp_path: Any) -> None:
    schema = pytest.importorskip("schema")
    validator = ClassArgsValidator()
    assert validator.choices("mode", "a", "b").validate("a") == "a"
    assert validator.range("size", int, 1, 3).validate(3) == 3
    assert validator.path("file").validate(str(tmp_path)) == str(tmp_path)
    mode, size, path = (
        validator.choices("mode", "a"),
        validator.range("size", int, 1, 3),
        validator.path("file"),
    )
    for check, value in [(mode, "b"), (size, 4), (size, 2.0), (path, "/no")]:
        with pytest.raises(schema.SchemaError):
            check.validate(value)


def test_missing_schema_is_named_with_the_command_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "schema", None)
    with pytest.raises(ImportError, match=r"needs the extra nni: pip install 'schema>=[\d.]+'$"):
        ClassArgsValidator().choices("mode", "a", "b")
