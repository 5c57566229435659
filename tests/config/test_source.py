"""YAML and JSON to plain data with positions."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitchpipe.config.problems import ConfigError
from pitchpipe.config.source import parse_source, read_source

KEYS = st.text(st.characters(min_codepoint=32, max_codepoint=0xD7FF), max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | KEYS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


def problem_of(text: str, name: str = "a.yml") -> str:
    with pytest.raises(ConfigError) as caught:
        parse_source(text, name)
    (problem,) = caught.value.problems
    return str(problem)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-5", 1e-5),
        ("1.0e+3", 1000.0),
        ("on", "on"),
        ("yes", "yes"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("null", None),
        ("0x1F", 31),
        ("0o17", 15),
        ("-12", -12),
        (".inf", math.inf),
        ("-.inf", -math.inf),
        ("2001-01-01", "2001-01-01"),
        ("'1'", "1"),
        ("12:30:45", "12:30:45"),
    ],
)
def test_yaml_scalars_are_those_of_version_1_2(text: str, value: Any) -> None:
    read = parse_source(f"a: {text}", "a.yml").data["a"]
    assert read == value
    assert type(read) is type(value)


def test_positions_of_keys_values_and_items() -> None:
    source = parse_source("a: 1\nb:\n  - x\n  - {c: 2}\n", "a.yml")
    assert source.position(("a",), at_key=True) == (1, 1)
    assert source.position(("a",)) == (1, 4)
    assert source.position(("b", 1, "c")) == (4, 9)
    assert source.position(("b", 1, "c"), at_key=True) == (4, 6)


def test_position_of_an_absent_path_is_that_of_its_surroundings() -> None:
    source = parse_source("a:\n  b: {c: 1}\n", "a.yml")
    assert source.position(("a", "b", "x", "y"), at_key=True) == (2, 6)
    assert source.position(("z",)) == (1, 1)


def test_merge_key_brings_defaults_that_explicit_keys_override() -> None:
    text = "base: &b {x: 1, y: 2}\nmore: &m {y: 3}\nuse:\n  x: 5\n  <<: [*m, *b]\n"
    source = parse_source(text, "a.yml")
    assert source.data["use"] == {"x": 5, "y": 3}
    assert source.position(("use", "x")) == (4, 6)
    assert source.position(("use",)) == (4, 3)


def test_alias_bomb_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [" + ", ".join([f"*a{i - 1}"] * 10) + "]" for i in range(1, 9)]
    assert "too large" in problem_of("\n".join(lines))


@pytest.mark.parametrize("text", ["a: !!python/object:os.system x", "a: !foo [1]", "a: !!binary YQ=="])
def test_tag_is_a_problem_and_makes_nothing(text: str) -> None:
    source = parse_source(text, "a.yml")
    assert source.data == {"a": None}
    assert "not supported" in source.problems[0].message


@pytest.mark.parametrize(("depth", "name"), [(20_000, "a.yml"), (200_000, "a.json")])
def test_nesting_has_a_limit(depth: int, name: str) -> None:
    assert "nested too deeply" in problem_of("[" * depth, name)


def test_json_with_tabs_is_read_and_has_positions() -> None:
    source = parse_source('{\n\t"a":\t{"b": [1,\t2]}\n}', "a.json")
    assert source.data == {"a": {"b": [1, 2]}}
    assert source.position(("a", "b", 1)) == (2, 17)


def test_flow_style_yaml_is_read_as_yaml() -> None:
    assert parse_source("{a: 1, b: [1e-3,],}", "a.yml").data == {"a": 1, "b": [1e-3]}


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ('{"a": [1, 2,],}', {"a": [1, 2]}),
        ('{\n\t"a": {"_value": ["x", "y",],},\n}', {"a": {"_value": ["x", "y"]}}),
        ("{'a': 'it', \"b\": \"http://x/*\"}", {"a": "it", "b": "http://x/*"}),
        ('{"a": 1, # one\n "b": True, "c": 1e-3}', {"a": 1, "b": True, "c": 0.001}),
    ],
)
def test_what_nni_takes_for_json_is_read(text: str, data: dict[str, Any]) -> None:
    source = parse_source(text, "space.json")
    assert source.data == data
    assert source.position(("a",))[0] == 1 + text[: text.index("a")].count("\n")


@pytest.mark.parametrize(
    "text", ['{"a": 1, // one\n "b": 2,}', "{'a': 1 /* one */}", '// one\n{"a": 1}', '{"a": 1,\n//"b": 2,\n}']
)
def test_comment_that_would_become_a_value_is_refused(text: str) -> None:
    assert "is not valid" in problem_of(text, "space.json")


def test_words_that_are_booleans_in_yaml_1_1_are_text_until_they_are_turned() -> None:
    text = "a: [yes, 'yes', No, ON, off, on off, y]\nb: {c: NO}\nd: &w Off\ne: *w\n"
    source = parse_source(text, "a.yml")
    data = {"a": ["yes", "yes", "No", "ON", "off", "on off", "y"], "b": {"c": "NO"}, "d": "Off", "e": "Off"}
    assert source.data == data
    source.data["e"] = 3  # set by an option
    turned = [("a", 0), ("a", 2), ("a", 3), ("a", 4), ("b", "c"), ("d",)]
    assert source.turn_old_booleans() == turned
    data = {"a": [True, "yes", False, True, False, "on off", "y"], "b": {"c": False}, "d": False, "e": 3}
    assert source.data == data
    assert parse_source("a: true", "a.yml").turn_old_booleans() == []


def test_yaml_under_a_json_name_is_read() -> None:
    assert parse_source("a: 1e-3", "space.json").data == {"a": 1e-3}


def test_file_that_is_absent_or_a_folder_or_not_text(tmp_path: Path) -> None:
    (tmp_path / "latin.yml").write_bytes(b"a: 1\nb: \xe9\n")
    for name, expected in [
        ("x.yml", "cannot be read"),
        (".", "cannot be read"),
        ("latin.yml", ":2:1: is not UTF-8"),
    ]:
        with pytest.raises(ConfigError, match=expected):
            read_source(tmp_path / name)


def test_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read_source(tmp_path / "a.yml").data == {"a": 1}


@given(st.dictionaries(KEYS, JSON, max_size=4), st.sampled_from([None, 1, "\t"]))
def test_every_json_document_is_read_as_json_reads_it(data: dict[str, Any], indent: Any) -> None:
    text = json.dumps(data, indent=indent)
    assert parse_source(text, "a.json").data == data


@given(
    st.dictionaries(st.text("ab_", min_size=1, max_size=6), JSON, max_size=4),
    st.sampled_from([None, 1, "\t"]),
)
def test_position_in_json_is_where_the_value_starts(data: dict[str, Any], indent: Any) -> None:
    text = json.dumps(data, indent=indent)
    source = parse_source(text, "a.json")
    lines = text.split("\n")
    for key, value in data.items():
        line, column = source.position((key,))
        assert lines[line - 1][column - 1 :].startswith(json.dumps(value, indent=indent).split("\n")[0])


@given(st.text(max_size=40) | st.text("a:-[]{},&*!<?'\"\n\t #|>", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        source = parse_source(text, "a.yml")
    except ConfigError as error:
        result = str(error)
    else:
        result = json.dumps(source.data)
    assert result
