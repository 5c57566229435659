"""How an experiment, or its best trial, is done again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...store.reading import ExperimentView
from .secrecy import hidden, hidden_values

__all__ = ["Step", "configuration_text", "steps_of"]


@dataclass(frozen=True, slots=True)
class Step:
    """What to do, in a sentence, and the commands or the text for it."""

    what: str
    text: str = ""


def steps_of(view: ExperimentView) -> list[Step]:
    """How to see the experiment, to run its best trial again, and to run all of it again."""
    config, folder = view.config(), view.folder
    name = f"{folder.experiment_id} --dir {shlex.quote(str(folder.path.parent))}"
    steps = [Step("See it in the browser, offline, nothing has to run:", f"pitchpipe ui {name}")]
    for row in view.best(1)[:1]:
        number = row["sequence_id"]
        steps += [
            Step(
                f"Run trial {number} again, with its parameters, its environment and its code directory:",
                f"pitchpipe trial rerun {folder.experiment_id} {number} --dir {shlex.quote(str(folder.path.parent))}",
            ),
            Step("The best parameters, for a script of your own:", json.dumps(row["parameters"], indent=2)),
        ]
    return [*steps, _again(config, folder.path)]


def _again(config: Mapping[str, Any], folder: Path) -> Step:
    seed = config.get("seed")
    if config.get("trialCommand") is None:
        return Step(
            "The trial is a Python function or class: run the program again that made the experiment."
        )
    directory = config.get("trialCodeDirectory") or "."
    exact = (
        "With the same seed the tuner proposes the same parameters as long as the same results come in the same order; "
        "with several trials at once their order is a matter of time."
        if seed is not None
        else "It had no seed: another run proposes other parameters."
    )
    text = f"cd {shlex.quote(str(directory))}\npitchpipe run {shlex.quote(str(folder / 'experiment.yml'))}"
    return Step(f"Run all of it again. {exact}", text)


def configuration_text(view: ExperimentView) -> str:
    """The configuration as it was given, or as it is stored; nothing secret in it."""
    given = view.folder.path / "experiment.yml"
    if given.is_file():
        return hidden(given.read_text(encoding="utf-8", errors="replace"))
    return json.dumps(hidden_values(view.config()), indent=2, ensure_ascii=False)
