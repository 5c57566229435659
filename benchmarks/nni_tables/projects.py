"""How the examples run from their configs, and from the scripts that start an experiment."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .configs import found_configs, registered
from .place import Place, Ran, outcome

__all__ = ["examples", "scripts"]

_STAND_IN = """\
import nni
parameters = nni.get_next_parameter()
nni.report_intermediate_result(len(parameters))
nni.report_final_result(len(parameters))
"""
_FAILED = re.compile(r"^\d+ trials? failed[^:]*: (?P<why>.*)", re.MULTILINE)
_COMMAND = re.compile(r"trial_?command\W+(?P<command>[^'\"\n]+)", re.IGNORECASE)


def examples(sources: Path, patience_s: float) -> Iterator[str]:
    """Yield how each experiment ends that a config for `local` describes, within a time."""
    yield "| config | trial | experiment |\n|---|---|---|"
    missing: Counter[str] = Counter()
    with Place(sources) as place:
        registered(place)
        for path, _version, data in found_configs(place.folder):
            command, script = _trial_of(data, path.parent)
            if "invalid" in path.parts or script is None or not _is_local(data):
                continue
            if absent := place.missing(script):
                missing[absent] += 1
            else:
                name = path.relative_to(place.folder)
                yield f"| {name} | {command} | {_ending(place, path, patience_s)} |"
    for absent, count in missing.most_common():
        yield f"| {count} more | need {absent} | not run |"


def scripts(sources: Path, patience_s: float) -> Iterator[str]:
    """Yield how each script and notebook ends that starts an experiment or connects to one."""
    yield "| script | trial | ends with | experiment |\n|---|---|---|---|"
    with Place(sources) as place:
        for path in sorted(
            [*place.folder.rglob("examples/**/*.py"), *place.folder.rglob("examples/**/*.ipynb")]
        ):
            text = _code(path)
            if "nni.experiment" not in text or "nni.nas" in text:
                continue
            trial = _prepare_trial(place, path, text)
            if "Experiment.connect" in text:
                place.run(["nnictl", "create", "--config", "config.yml"], path.parent)
            script = path.with_name(f"{path.stem}_as_script.py")
            script.write_text(text, encoding="utf-8")
            ran = place.python("-m", "pitchpipe.nni", script.name, folder=path.parent, patience_s=patience_s)
            ending = (
                "not in time" if ran.code is None else "0" if ran.code == 0 else f"{ran.code}: {ran.output}"
            )
            place.stop_all()
            facts = place.newest() if ran.code != 1 else None
            name = path.relative_to(place.folder)
            yield f"| {name} | {trial} | {ending} | {outcome(facts)} |"


def _is_local(data: dict[str, Any]) -> bool:
    service = data.get("trainingService") or data.get("training_service")
    given = service.get("platform") if isinstance(service, dict) else data.get("trainingServicePlatform")
    return given == "local"


def _trial_of(data: dict[str, Any], folder: Path) -> tuple[str, Path | None]:
    """Return the command of a config's trials, and the Python script that it runs, if it is there."""
    section = data.get("trial") or {}
    command = str(data.get("trialCommand") or data.get("trial_command") or section.get("command") or "")
    given = (
        data.get("trialCodeDirectory") or data.get("trial_code_directory") or section.get("codeDir") or "."
    )
    return command, _script_of(command, folder / str(given))


def _ending(place: Place, config: Path, patience_s: float) -> str:
    before = place.newest()
    ran = place.run(["nnictl", "create", "--config", config.name, "--foreground"], config.parent, patience_s)
    facts = place.newest()
    place.stop_all()
    if facts == before:
        return f"{ran.code}: {' '.join(ran.output.split())[:150]}"
    failed = _FAILED.search(ran.output)
    why = f" ({failed['why'][:150]})" if failed else ""
    return outcome(facts) + why + (f", after {patience_s:g} s" if ran.code is None else "")


def _error(ran: Ran) -> str:
    """Return the message of the exception with which a script ended, on one line."""
    found = re.search(r"^[\w.]+Error: .*", ran.output, re.MULTILINE | re.DOTALL)
    return " ".join((found.group() if found else ran.output).split())[:200].replace("|", " ")


def _code(path: Path) -> str:
    """Return a script, or the code of a notebook."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return text
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    return "\n".join("".join(cell["source"]) for cell in cells)


def _prepare_trial(place: Place, path: Path, text: str) -> str:
    """Return what the trials run: the script's own, or a stand-in, if that needs what is not installed."""
    found = _COMMAND.search(text)
    script = _script_of(found["command"], path.parent) if found else None
    if script is None:
        return "its config's"
    missing = place.missing(script)
    if not missing:
        return script.name
    script.write_text(_STAND_IN, encoding="utf-8")
    return f"a stand-in: {script.name} needs {missing}"


def _script_of(command: str, folder: Path) -> Path | None:
    """Return the Python script that a command runs, if it is there."""
    found = re.search(r"[\w./-]+\.py\b", command)
    script = folder / found.group() if found else None
    return script if script is not None and script.is_file() else None
