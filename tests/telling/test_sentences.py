"""What users read about numbers and gains: each input is YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from syrupy.assertion import SnapshotAssertion

from pitchpipe.store.reading import Goal
from pitchpipe.telling import gain_text, words

from ..sentences import SentencesFile, answered
from ..stored import a_row, a_summary, some_repeats


def of_word(line: str) -> list[str]:
    """Return a value as a function of `words` shows it; the line has the function's name, without `_text`."""
    name, _, value = line.partition(" ")
    return [getattr(words, f"{name}_text")(yaml.safe_load(value))]


def of_gain(line: str) -> list[str]:
    """Return how the best trials compare with the defaults: `[result or status, [results of best trials], more]`."""
    defaults, best, *more = yaml.safe_load(line)
    status = defaults if isinstance(defaults, str) else "SUCCEEDED"
    values = [{"default": one} if isinstance(one, float) else one for one in (defaults, *best)]
    row: dict[str, Any] = {"status": status}
    trials = [a_row(number, one) for number, one in enumerate(values[1:], start=4)]
    fields: dict[str, Any] = {"objectives": [Goal("default", "maximize")]}
    for changed in more:
        row |= changed.pop("defaults", {})
        if "repeats" in row:
            row["repeats"] = some_repeats(**row["repeats"])
        if "objectives" in changed:
            changed["objectives"] = [Goal(**one) for one in changed["objectives"]]
        fields |= changed
    return [
        gain_text(
            a_summary(*trials, defaults=a_row(0, {} if status == defaults else values[0], **row), **fields)
        )
    ]


def test_sentences(snapshot: SnapshotAssertion) -> None:
    sections = {"words": of_word, "gains over the defaults": of_gain}
    assert answered(Path(__file__).parent, sections) == snapshot(extension_class=SentencesFile)
