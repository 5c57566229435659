"""`pitchpipe trials`: what it selects, and in which order."""

import json

import pytest

from .conftest import Call, Storing, make_trial


def test_trials_are_sorted_filtered_and_limited(stored: Storing, call: Call) -> None:
    values = [0.3, 0.9, 0.1, 0.5]
    trials = [make_trial(n, "SUCCEEDED", None, value) for n, value in enumerate(values)]
    trials.append(make_trial(4, "FAILED", None, reason="no good", end_time=2000.0))
    stored().write("e", trials)

    def numbers(*words: str) -> list[str]:
        return [line.split()[0] for line in call("trials", "e", *words).out.splitlines()[1:]]

    assert numbers() == ["0", "1", "2", "3", "4"]
    assert numbers("--sort", "best") == ["1", "3", "0", "2", "4"]
    assert numbers("--sort", "highest", "--limit", "2") == ["1", "3"]
    assert numbers("--sort", "lowest", "--limit", "2") == ["2", "0"]
    assert numbers("--sort", "longest")[0] == "4"
    assert numbers("--sort", "latest") == ["4", "3", "2", "1", "0"]
    assert numbers("--limit", "2") == ["3", "4"]
    assert numbers("--limit", "2", "--sort", "best") == ["1", "3"]
    assert numbers("--status", "failed") == ["4"]
    assert "no good" in call("trials", "e").out
    assert "2 of 5 trials" in call("trials", "e", "--limit", "2").err
    assert numbers("--where", "value > 0.2 and status == 'SUCCEEDED' AND sequence_id != 1") == ["0", "3"]
    assert numbers("--where", "reason ~ 'no good'") == ["4"]
    listed = json.loads(call("trials", "e", "--where", "value >= 0.5", "--json", "--sort", "best").out)
    assert [(trial["sequence_id"], trial["final"]) for trial in listed] == [(1, 0.9), (3, 0.5)]


@pytest.mark.usefixtures("three")
def test_filter_without_a_hit_is_an_empty_list(call: Call) -> None:
    assert json.loads(call("trials", "first", "--where", "value > 1e9", "--json").out) == []
