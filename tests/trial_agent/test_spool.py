"""The spool: its lines give the same events, live and read again."""

import itertools
import json
import math
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitchpipe.trial_agent import spool
from pitchpipe.trial_agent.spool import LineSplitter, SpoolReader, parse, value_text

from .client import messages, read_spool

VALUES = st.one_of(
    st.floats(), st.integers(-(2**53), 2**53), st.text(), st.fixed_dictionaries({"default": st.floats()})
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
END_FIELDS = ("exit_code", "signal", "error", "killed", "paused", "out_of_memory", "exported", "time")
REPORTS = st.lists(st.tuples(st.sampled_from(["intermediate", "final"]), VALUES), max_size=20)


class Live:
    """A reader of a spool; its events are as the manager receives them."""

    def __init__(self, first_sequence: int = 0) -> None:
        self.reader = SpoolReader(trial="AbCdE", attempt=1, first_sequence=first_sequence, clock=lambda: 12.5)

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        return messages(self.reader.feed(data))

    def finish(self) -> list[dict[str, Any]]:
        return messages(self.reader.finish())


def chunks(data: bytes, cuts: list[int]) -> list[bytes]:
    borders = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(borders)]


@given(REPORTS, st.lists(st.integers(0, 10_000)))
def test_reports_are_the_same_however_the_bytes_arrive(
    reports: list[tuple[str, object]], cuts: list[int]
) -> None:
    data = b"".join(json.dumps({kind: value}).encode() + b"\n" for kind, value in reports)
    live = Live()
    found = [event for chunk in chunks(data, cuts) for event in live.feed(chunk)] + live.finish()
    assert [(e["kind"], e["value"]) for e in found] == [(k, json.dumps(v)) for k, v in reports]
    for kind in ("intermediate", "final"):
        sequences = [event["sequence"] for event in found if event["kind"] == kind]
        assert sequences == list(range(len(sequences)))


@given(st.binary(max_size=300), st.lists(st.integers(0, 10_000)))
def test_rubbish_raises_nothing_and_reads_the_same_again(data: bytes, cuts: list[int]) -> None:
    whole, parts = Live(), Live()
    expected = whole.feed(data) + whole.finish()
    assert [e for chunk in chunks(data, cuts) for e in parts.feed(chunk)] + parts.finish() == expected


def test_value_of_a_checkpoint_is_the_metric_that_scores() -> None:
    reader = SpoolReader(trial="AbCdE", attempt=1, metric="loss")
    events = reader.feed(b'{"intermediate": {"loss": 0.25, "default": 9}}\n{"checkpoint": "1-1"}\n')
    assert [event.value for event in events[1:]] == [0.25]


def test_first_sequence_counts_on_from_a_checkpoint() -> None:
    events = Live(first_sequence=7).feed(b'{"intermediate": 1}\n{"final": 2}\n{"intermediate": 3}\n')
    assert [event["sequence"] for event in events] == [7, 0, 8]


def test_line_without_newline_waits_until_the_end() -> None:
    live = Live()
    assert live.feed(b'{"final": 1}') == []
    assert live.reader.inside_line
    assert live.finish()[0]["value"] == "1"


def test_flood_of_rubbish_gives_few_problems_and_hides_no_report() -> None:
    events = Live().feed(b"\xff\xfe\n" * 1000 + b'{"final": 1}\n')
    assert len(events) == spool.MAX_PROBLEMS + 1
    assert "further problems are not mentioned" in events[-2]["message"]
    assert events[-1]["kind"] == "final"


def test_line_over_the_limit_is_one_problem_and_the_next_line_is_read() -> None:
    live = Live()
    long = b"x" * (spool.MAX_LINE // 2)
    events = [event for chunk in (long, long, long, b'x\n{"final"', b": 1}\n") for event in live.feed(chunk)]
    assert [event["e"] for event in events] == ["problem", "report"]
    assert "longer than" in events[0]["message"]


def test_splitter_keeps_no_more_than_the_limit_of_an_endless_line() -> None:
    splitter = LineSplitter()
    for _ in range(30):
        splitter.feed(b"x" * 100_000)
    assert len(splitter.rest) <= spool.MAX_LINE


def test_not_a_number_and_infinities_survive() -> None:
    record = parse(b'{"intermediate": -Infinity, "final": NaN}')
    assert record is not None
    assert record["intermediate"] == -math.inf
    assert [value_text(math.nan), value_text(-math.inf)] == ["NaN", "-Infinity"]


def test_time_in_a_line_is_taken_and_a_strange_one_is_not() -> None:
    events = Live().feed(b'{"final": 1, "time": 3.5}\n{"final": 1, "time": "noon"}\n{"final": 1}\n')
    assert [event["time"] for event in events] == [3.5, 12.5, 12.5]


@pytest.mark.parametrize(
    "time", ["NaN", "Infinity", "-Infinity", "1e999", "1" + "0" * 400, "null", "[]", "{}"]
)
def test_invalid_time_loses_only_itself(time: str, tmp_path: Path) -> None:
    line = f'{{"final": 0.5, "time": {time}}}\n'.encode()
    (event,) = Live().feed(line)
    assert (event["value"], event["time"]) == ("0.5", 12.5)
    (tmp_path / "spool").write_bytes(line + f'{{"ended": {{"exit_code": 0, "time": {time}}}}}\n'.encode())
    report, ended = read_spool(tmp_path / "spool", "AbCdE", 1)
    assert report["value"] == "0.5"
    assert all(math.isfinite(event["time"]) for event in (report, ended))


@pytest.mark.parametrize("value", ["1" + "0" * 30, '"\\ud800"', "1" + "0" * 400, "[" * 1010 + "]" * 1010])
@pytest.mark.parametrize("key", ["loss", "intermediate"])
def test_strange_value_loses_at_most_its_line(key: str, value: str) -> None:
    line = f'{{"{key}": {value}}}\n{{"checkpoint": "1-1"}}\n{{"final": 1}}\n'.encode()
    events = Live().feed(line)
    assert [event["e"] for event in events[1:]] == ["checkpoint", "report"]


def test_spool_read_again_gives_the_events_and_the_end(tmp_path: Path) -> None:
    path = tmp_path / "reports-2.jsonl"
    path.write_text(
        '{"intermediate": 0.5, "time": 1}\nrubbish\n{"final": NaN, "time": 2}\n'
        '{"ended": {"exit_code": 0, "signal": null, "error": null, "killed": false, "time": 3}}\n'
        '{"intermediate": 9, "time": 4}\n'
    )
    events = read_spool(path, "AbCdE", 2, first_sequence=4)
    assert [event["e"] for event in events] == ["report", "problem", "report", "ended"]
    assert {(event["trial"], event["attempt"]) for event in events} == {("AbCdE", 2)}
    assert events[0]["sequence"] == 4
    assert events[2]["value"] == "NaN"
    assert events[3]["exit_code"] == 0


@pytest.mark.parametrize(
    ("last", "values"),
    [('{"intermediate": 0.', ["1"]), ('{"inter', ["1"]), ("{", ["1"]), ('{"final": 2}', ["1", "2"])],
)
def test_last_line_without_a_newline_counts_if_it_is_not_torn(
    tmp_path: Path, last: str, values: list[str]
) -> None:
    path = tmp_path / "reports-1.jsonl"
    path.write_text('{"intermediate": 1}\n' + last)
    assert [event["value"] for event in read_spool(path, "AbCdE", 1)] == values


@given(
    st.lists(st.sampled_from(['"a"', "0.5", None]), max_size=4),
    st.integers(0, 150),
    st.integers(1, 5000) | st.just(spool.MAX_LINE + 1),
    st.booleans(),
)
def test_nuls_that_a_power_cut_left_end_what_counts(
    values: list[str | None], at: int, size: int, more: bool
) -> None:
    lines = ['{"checkpoint": "1-1"}' if value is None else f'{{"intermediate": {value}}}' for value in values]
    kept = "".join(f"{line}\n" for line in lines).encode()[:at]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "reports-1.jsonl")
        path.write_bytes(kept)
        expected = [(event["e"], event.get("value")) for event in read_spool(path, "AbCdE", 1)]
        path.write_bytes(kept + bytes(size) + (b'\n{"final": 1}\n' if more else b""))
        found = [(event["e"], event.get("value")) for event in read_spool(path, "AbCdE", 1)]
    assert found == expected
    assert "problem" not in dict(found)


def test_checkpoint_that_no_agent_has_admitted_does_not_count_after_a_power_cut(tmp_path: Path) -> None:
    path = tmp_path / "reports-1.jsonl"
    path.write_text(
        '{"checkpoint": "1-1"}\n{"checkpoint": "1-2"}\n{"checkpoint": "1-3"}\n{"intermediate": 1}\n'
    )
    for number, about in enumerate(('{"sequence": 0, "value": null, "time": 1}', "", None), 1):
        (tmp_path / f"1-{number}").mkdir()
        if about is not None:
            (tmp_path / f"1-{number}" / "checkpoint.json").write_text(about)
    found = read_spool(path, "AbCdE", 1, checkpoints=tmp_path)
    assert [event.get("name", event["e"]) for event in found] == ["1-1", "report"]
    assert len(read_spool(path, "AbCdE", 1)) == 4


def test_shared_spool_counts_each_attempt_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "agent-1.jsonl"
    keys = [("a", 1), ("a", 1), ("b", 1), ("a", 2)]
    lines = [{"trial": t, "attempt": n, "intermediate": i, "time": 0.0} for i, (t, n) in enumerate(keys)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = {key: [(e["sequence"], e["value"]) for e in read_spool(path, *key)] for key in keys}
    assert found == {("a", 1): [(0, "0"), (1, "1")], ("b", 1): [(0, "2")], ("a", 2): [(0, "3")]}


def test_missing_spool_is_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_spool(tmp_path / "no.jsonl", "AbCdE", 1)


def test_lines_of_a_forgotten_trial_with_the_same_id_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "0-0.jsonl"
    own, older = {"trial": "AbCdE", "attempt": 1, "mark": "b"}, {"trial": "AbCdE", "attempt": 1, "mark": "a"}
    lines = [{**older, "final": 9}, {**older, "ended": {"exit_code": 0}}, {**own, "intermediate": 1}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [event["value"] for event in read_spool(path, "AbCdE", 1, mark="b")] == ["1"]
    assert [event["e"] for event in read_spool(path, "AbCdE", 1, mark="a")] == ["report", "ended"]


GOOD_END = b'{"ended": {"exit_code": 0, "signal": null, "error": null, "killed": false, "time": 3}}\n'


def test_fields_that_an_end_should_not_have_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "reports-1.jsonl"
    path.write_text(
        '{"ended": {"exit_code": 0, "e": "report", "trial": 7, "of_a_later_version": 1, "time": 3}}\n'
    )
    (ended,) = read_spool(path, "AbCdE", 1)
    assert (ended["e"], ended["trial"], ended["exit_code"], ended["time"]) == ("ended", "AbCdE", 0, 3.0)


@given(st.dictionaries(st.sampled_from(END_FIELDS), JSON_VALUES))
def test_any_end_of_an_attempt_is_an_event_or_a_problem(outcome: dict[str, object]) -> None:
    lines = json.dumps({"ended": outcome}).encode() + b"\n" + GOOD_END
    with tempfile.NamedTemporaryFile() as file:
        file.write(lines)
        file.flush()
        events = read_spool(file.name, "AbCdE", 1)
    assert [event["e"] for event in events] in (["ended"], ["problem", "ended"])
    ended = events[-1]
    assert ended["exit_code"] is None or type(ended["exit_code"]) is int
    assert ended["error"] is None or isinstance(ended["error"], str)
    assert type(ended["killed"]) is type(ended["paused"]) is bool


@pytest.mark.parametrize("who", ['"trial": [], "attempt": 1', '"trial": "AbCdE", "attempt": {}'])
def test_line_that_names_no_attempt_properly_is_not_read(who: str, tmp_path: Path) -> None:
    path = tmp_path / "agent-1.jsonl"
    path.write_text(f'{{{who}, "final": 1}}\n{{"trial": "AbCdE", "attempt": 1, "final": 2}}\n')
    assert [event["value"] for event in read_spool(path, "AbCdE", 1)] == ["2"]
