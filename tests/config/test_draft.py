"""Key spelling, aliases, and Python data as JSON."""

from __future__ import annotations

from collections import OrderedDict
from enum import Enum, IntEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitchpipe import choice, uniform
from pitchpipe.config import ConfigError, ExperimentConfig, LocalConfig
from pitchpipe.config.draft import make_draft, plain
from pitchpipe.config.problems import fold
from pitchpipe.config.sections import AlgorithmConfig

from .refusals import made


@pytest.mark.parametrize("key", ["trial_command", "trialCommand", "TRIALCOMMAND", "Trial_Command_"])
def test_spellings_of_one_field_fold_to_one(key: str) -> None:
    assert fold(key) == "trialcommand"


def test_keys_of_values_passed_on_keep_their_spelling() -> None:
    arguments = {"camelCase": 1, "snake_case": {"Inner_Key": None}}
    more = {"trialResources": {"TPU_v4": 1}, "TRIAL_ENVIRONMENT": {"My_Var": "x"}}
    config = made(Tuner={"Name": "X", "ClassArgs": arguments}, **more)
    assert config.tuner.class_args == arguments
    assert config.trial_resources == {"TPU_v4": 1.0}
    assert config.trial_environment == {"My_Var": "x"}


@pytest.mark.parametrize(
    ("algorithms", "tuner", "assessor"),
    [
        ({"tuner": "Random", "assessor": "Medianstop"}, "Random", "Medianstop"),
        ({"tuner": "none", "assessor": "none"}, "none", None),
        ({"assessor": {"name": "none"}}, "Auto", None),
        ({"assessor": "_none_"}, "Auto", None),
        ({"tuner": {"name": "_none_"}, "assessor": {"name": "_none_"}}, "Auto", None),
        ({"tuner": {"name": "X", "class_args": None}, "assessor": None, "seed": None}, "X", None),
        ({"advisor": {"Name": "X"}}, "X", None),
    ],
)
def test_algorithm_has_a_name_or_is_left_out(
    algorithms: dict[str, Any], tuner: str, assessor: str | None
) -> None:
    config = made(**algorithms)
    assert config.tuner == AlgorithmConfig(name=tuner)
    assert config.assessor == (None if assessor is None else AlgorithmConfig(name=assessor))
    assert config.seed is None


class Color(str, Enum):  # noqa: UP042  (not StrEnum: its members print as something else)
    """Its members are texts."""

    RED = "red"
    BLUE = "blue"


class Width(IntEnum):
    """Its members are numbers."""

    SMALL = 8


def test_members_of_enums_that_are_texts_or_numbers_are_what_they_hold() -> None:
    space = {"c": {"_type": "choice", "_value": [*Color]}, "w": {"_type": "choice", "_value": [*Width]}}
    config = made(search_space=space, defaults={"c": Color.BLUE, "w": Width.SMALL})
    assert config.search_space is not None
    assert [config.search_space[name]["_value"] for name in "cw"] == [["red", "blue"], [8]]
    assert config.defaults == {"c": "blue", "w": 8}


@pytest.mark.parametrize(
    ("value", "copied", "is_refused"),
    [
        (np.longdouble(0.5), 0.5, False),
        (np.array([1, 2], dtype=np.longdouble), [1.0, 2.0], False),
        (np.array(np.longdouble(0.5)), 0.5, False),
        (np.array([[1, 2]]), [[1, 2]], False),
        (np.float16(0.5), 0.5, False),
        (np.str_("a"), "a", False),
        (np.clongdouble(1), None, True),
        (np.array([np.clongdouble(1)]), [None], True),
        (np.datetime64("2026-01-01"), None, True),
    ],
)
def test_values_of_numpy_are_plain_numbers_or_refused(value: Any, copied: Any, is_refused: bool) -> None:
    data, findings = plain({"option": value})
    assert data == {"option": copied}
    assert bool(findings) is is_refused


def test_shared_fields_in_the_training_service_win_over_the_root() -> None:
    service = {"platform": "local", "trialCommand": "inner", "trial_gpu_number": 1, "debug": True}
    config = made(debug=False, training_service=service)
    assert (config.trial_command, config.trial_gpu_number, config.debug) == ("inner", 1.0, True)
    assert "trialCommand" not in config.canonical()["trainingService"]


def test_draft_of_any_data_does_not_raise() -> None:
    for value in (None, 1, "x", [], {}, {"a": {}}, [{}], [None]):
        for name in ("tuner", "assessor", "advisor", "objectives", "training_service"):
            make_draft({name: value})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(JSON)
def test_json_is_copied_unchanged(data: Any) -> None:
    assert plain(data) == (data, [])


def test_the_copy_shares_nothing() -> None:
    data = {"a": [{"b": 1}]}
    copied, _ = plain(data)
    copied["a"][0]["b"] = 2
    assert data == {"a": [{"b": 1}]}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, 2), [1, 2]),
        (OrderedDict(a=1), {"a": 1}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        (Path("folder"), "folder"),
        (np.float64(0.5), 0.5),
        (np.int32(3), 3),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        (np.array([[1, 2]]), [[1, 2]]),
    ],
)
def test_value_gets_its_plain_type(value: Any, expected: Any) -> None:
    (copied,), findings = plain([value])
    assert (copied, type(copied), findings) == (expected, type(expected), [])


def test_a_section_becomes_its_canonical_form() -> None:
    copied, _ = plain({"service": LocalConfig(platform="local", gpu_indices=(1,))})
    assert (copied["service"]["platform"], copied["service"]["gpuIndices"]) == ("local", [1])


def test_everything_that_is_not_json_is_found_at_its_path() -> None:
    copied, findings = plain({"a": [1, {2}], "b": {3: "x"}, "c": object()})
    assert copied == {"a": [1, None], "b": {}, "c": None}
    assert [(finding.path, finding.message) for finding in findings] == [
        (("a", 1), "set cannot be stored as JSON"),
        (("b",), "the key 3 is not text"),
        (("c",), "object cannot be stored as JSON"),
    ]


def test_a_function_that_was_not_called_is_named() -> None:
    _, (finding,) = plain({"search_space": {"x": uniform}})
    assert finding.message == "the function uniform is not a value"
    assert finding.hint == "call it: uniform(...)"


@pytest.mark.parametrize("option", [len, lambda x: x, dict])
def test_function_or_class_as_an_option_is_to_be_written_as_text(option: Any) -> None:
    _, (finding,) = plain({"search_space": {"act": choice([option, "relu"])}})
    assert finding.path == ("search_space", "act", "_value", 0)
    assert "write a text" in finding.hint
    with pytest.raises(ConfigError) as raised:
        ExperimentConfig.from_dict({"search_space": {"act": option}, "trial_command": "true"})
    assert [problem.path for problem in raised.value.problems] == [("search_space", "act")]


def test_key_that_is_not_text_hides_no_other_problem() -> None:
    data = {
        3: "x",
        "search_space": {4: "y", "lr": {"_type": "unifrom"}},
        "trial_command": "true",
        "seed": "a",
    }
    with pytest.raises(ConfigError) as raised:
        ExperimentConfig.from_dict(data)  # type: ignore[arg-type]  # people write such keys
    paths = {problem.path for problem in raised.value.problems}
    assert {(), ("search_space",), ("search_space", "lr", "_type"), ("seed",)} <= paths


@pytest.mark.parametrize("mine", [object, object()])
def test_own_class_as_a_tuner_is_told_how_it_is_named(mine: Any) -> None:
    _, (finding,) = plain({"tuner": mine})
    assert finding.hint.startswith('write {"class_name": "FILE.object", ')
