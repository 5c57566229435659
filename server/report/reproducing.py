"""How to reproduce an experiment or its best trial."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...protocol import Config
from ...store import shell_word
from ...store.reading import ExperimentView, TrialRow
from ..secrecy import hidden, hidden_values

# Where a file names another folder than its own.
_CODE_DIRECTORY = re.compile(
    r"""(?:trial_?code_?directory|codeDir)["']?\s*:\s*(?!["']?\./?["']?\s*(?:[,}#]|$))\S""", re.I | re.M
)


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction in a sentence, with its commands or text."""

    what: str
    text: str = ""


def steps_of(view: ExperimentView) -> list[Instruction]:
    """Return how to view the experiment, rerun its best trial, and run all of it again."""
    config, folder = view.config(), view.folder
    name = f"{folder.experiment_id} --dir {shell_word(folder.path.parent)}"
    steps = [Instruction("View it in a browser, offline:", f"pitchpipe ui {name}")]
    for row, what in _chosen(view):
        number = row.sequence_id
        trial = f"{folder.experiment_id} {number} --dir {shell_word(folder.path.parent)}"
        is_scheduled = view.parameter_changes(number) > 0
        those = "schedule of parameters" if is_scheduled else "parameters"
        steps += [
            Instruction(
                f"Rerun trial {number}{what} with its {those}, environment and code directory:",
                f"pitchpipe trial rerun {trial}",
            ),
            Instruction(
                f"The {those} of trial {number}, for your own script:",
                f"pitchpipe trial show {trial} --schedule --json > schedule.json"
                if is_scheduled
                else json.dumps(row.parameters, indent=2),
            ),
        ]
    return [*steps, _again(config, folder.path)]


def _chosen(view: ExperimentView) -> Iterator[tuple[TrialRow, str]]:
    """Yield the best trial, if there is one, and what it is; with several objectives, the knee of the front if any."""
    best = view.best()
    if len(best) > 1:
        knee = view.front().knee
        row = next((trial for trial in best if trial.sequence_id == knee), best[0])
        yield row, ", the knee of the front," if row.sequence_id == knee else ", one of the front,"
    elif best:
        yield best[0], ""


def _again(config: Config, folder: Path) -> Instruction:
    seed = config.get("seed")
    file = folder / "experiment.yml"
    if not file.is_file():
        return Instruction("A Python program made the experiment: run the program again.")
    exact = (
        "With the same seed the tuner proposes the same parameters as long as the same results come in the same order; "
        "with several trials at once their order is a matter of time."
        if seed is not None
        else "It had no seed, so another run suggests other parameters."
    )
    return Instruction(f"Run the whole experiment again. {exact}", _command(file, config))


def _command(file: Path, config: Config) -> str:
    """Return how to run the copy of a config file; its relative paths count from where the file was."""
    directory = config.get("trialCodeDirectory") or "."
    copy = shell_word(file)
    elsewhere = _CODE_DIRECTORY.search(file.read_text(encoding="utf-8", errors="replace"))
    if elsewhere is not None:
        paths = {"trial_code_directory": directory, "search_space_file": config.get("searchSpaceFile")}
        settings = [f" --set {shlex.quote(f'{name}={path}')}" for name, path in paths.items() if path]
        return f"pitchpipe run {copy}" + "".join(settings)
    place = shell_word(Path(directory) / f"{file.parent.name}.yml")
    return f"cp {copy} {place}\npitchpipe run {place}"


def configuration_text(view: ExperimentView) -> str:
    """Return the original configuration, or the stored one, without secrets."""
    given = view.folder.path / "experiment.yml"
    if given.is_file():
        return hidden(given.read_text(encoding="utf-8", errors="replace"))
    return json.dumps(hidden_values(view.config()), indent=2, ensure_ascii=False)
