"""A trial around the test: what is reported goes into a file, as in a command trial, and can be looked at."""

import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.sdk import TrialStopped
from pitchpipe.sdk.current_trial import current

# One thread is enough for the small models of the tests, and does not wait for the others.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("KERAS_BACKEND", "torch")


def tiny_bert(rows: int) -> tuple[Any, list[Any]]:
    """Return the configuration of a small model, and as many rows of data."""
    import torch
    from transformers import BertConfig

    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    data = [{"input_ids": torch.randint(0, 9, (4,)), "labels": index % 2} for index in range(rows)]
    return BertConfig(vocab_size=9, **sizes), data


@pytest.fixture
def quiet() -> Iterator[None]:
    """Hide the warnings of the libraries."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class Trial:
    """A command trial without an agent."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._spool, self._monkeypatch = folder / "reports.jsonl", monkeypatch
        monkeypatch.setenv("PITCHPIPE_REPORTS", str(self._spool))
        monkeypatch.setenv("PITCHPIPE_TRIAL_ID", "AbCdE")
        current.enter(None)

    def set_budget(self, budget: float) -> None:
        """Give the trial a budget."""
        self._monkeypatch.setenv("PITCHPIPE_BUDGET", str(budget))
        current.enter(None)

    @property
    def intermediate(self) -> list[Any]:
        """Return the intermediate results."""
        return self._reported("intermediate")

    @property
    def final(self) -> list[Any]:
        """Return the final results."""
        return self._reported("final")

    def _reported(self, kind: str) -> list[Any]:
        lines = self._spool.read_text().splitlines() if self._spool.exists() else []
        return [json.loads(line)[kind] for line in lines if kind in json.loads(line)]


class StoppedTrial:
    """The channel of a function trial that is stopped before its second report."""

    experiment_id = trial_id = "AbCdE"
    sequence_id = 0
    checkpoint = budget = seed = None
    reports = 0

    def parameters(self) -> dict[str, Any]:
        """Return no parameters."""
        return {}

    def report(self, kind: str, value: str) -> None:
        """Take a report, or end the trial."""
        self.reports += 1
        if self.reports >= 2:
            raise TrialStopped

    def save(self, fill: Any) -> None:
        """Save nothing."""


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trial:
    """Run the test as a trial."""
    return Trial(tmp_path, monkeypatch)


@pytest.fixture
def stopped_trial() -> StoppedTrial:
    """Run the test as a function trial that is stopped at its second report."""
    channel = StoppedTrial()
    current.enter(channel)
    return channel
