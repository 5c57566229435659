"""What command lines of nnictl do, on an experiment that runs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from .place import Place

__all__ = ["LINES", "command_lines"]

_SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}
_CONFIG = {
    "searchSpace": _SPACE,
    "trialCommand": "python trial.py",
    "trialConcurrency": 1,
    "maxTrialNumber": 1000,
    "tuner": {"name": "Random"},
    "trainingService": {"platform": "local"},
}
_TRIAL = """\
import nni, time
x = nni.get_next_parameter()["x"]
nni.report_intermediate_result(x)
nni.report_final_result(x)
print("trained with", x, flush=True)
if nni.get_sequence_id():
    time.sleep(600)  # until it is killed, or the experiment stopped
"""
_META = "algoType: tuner\nbuiltinName: mine\nclassName: mine.Mine\n"
_TUNER = "from nni.algorithms.hpo.random_tuner import RandomTuner\nclass Mine(RandomTuner): pass\n"
_WAITS_S = 5.0  # for lines that go on until Ctrl-C

#: The lines of NNI 2.10 and 3.0, in this order; ID and TRIAL are filled in.
LINES: Sequence[str] = (
    *("-v", "--version", "hello", "experiment show", "experiment show ID", "experiment status ID"),
    *("experiment list", "experiment list --all", "trial ls", "trial ls ID --head 2", "trial ls ID --tail 2"),
    *("trial kill ID --trial_id TRIAL", "trial kill ID -T TRIAL", "update concurrency ID --value 2"),
    *("update trialnum ID -v 100000", "update duration ID --value 2h"),
    *("update searchspace ID --filename space.json", "experiment export ID --filename out.json --type json"),
    *("experiment export ID -f out.csv -t csv -i", "experiment import ID --filename import.json"),
    *("log trial ID --trial_id TRIAL", "log trial ID -T TRIAL", "log trial ID", "log stdout ID"),
    *(
        "log stdout ID --tail 3",
        "log stderr ID --head 3",
        "log stderr ID --path",
        "webui url",
        "webui url ID",
    ),
    *(
        "config show",
        "config show ID",
        "top",
        "top --time 1",
        "algo register --meta meta.yml",
        "algo show mine",
    ),
    *("algo list", "algo unregister mine", "algo reg -m meta.yml", "algo unreg mine", "experiment save ID"),
    *("experiment save ID --path . --saveCodeDir", "experiment load --path saved.zip --codeDir ."),
    *(
        "platform clean --config config.yml",
        "trainingservice list",
        "trainingservice register --package none",
    ),
    *("ss_gen --trial_command 'python trial.py'", "package list", "jupyter-extension install"),
    *("stop --port 8080", "create --config config.yml --port 8081 --url_prefix two --debug", "stop ID"),
    *(
        "resume ID",
        "stop ID",
        "resume ID --foreground",
        "stop ID",
        "view ID",
        "view ID --port 8099",
        "stop --all",
    ),
    *("experiment delete ID", "experiment delete --all"),
)


def command_lines(sources: Path, lines: Sequence[str] = LINES) -> Iterator[str]:
    """Yield how each line ends."""
    yield "| nnictl | ends with | last line |\n|---|---|---|"
    with Place(sources) as place:
        folder = place.folder / "project"
        folder.mkdir(parents=True)
        _write(folder)
        place.run(["nnictl", "create", "--config", "config.json"], folder)
        facts = place.newest() or {"id": "none"}
        for line in lines:
            trial = _newest_trial(place, facts["id"]) if "TRIAL" in line else ""
            filled = line.replace("TRIAL", trial).replace("ID", facts["id"])
            ran = place.run(["nnictl", *shlex.split(filled)], folder, _patience(line))
            ending = "until Ctrl-C" if ran.code is None else str(ran.code)
            yield f"| {line} | {ending} | {ran.last_line[:110].replace('|', ' ')} |"


def _write(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps(_CONFIG), encoding="utf-8")
    (folder / "config.yml").write_text(json.dumps(_CONFIG), encoding="utf-8")
    (folder / "space.json").write_text(json.dumps(_SPACE), encoding="utf-8")
    (folder / "import.json").write_text(
        json.dumps([{"parameter": {"x": 0.5}, "value": 0.5}]), encoding="utf-8"
    )
    (folder / "trial.py").write_text(_TRIAL, encoding="utf-8")
    (folder / "meta.yml").write_text(_META, encoding="utf-8")
    (folder / "mine.py").write_text(_TUNER, encoding="utf-8")


def _newest_trial(place: Place, experiment: str) -> str:
    jobs = json.loads(place.run(["nnictl", "trial", "ls", experiment]).output)
    return jobs[-1]["trialJobId"] if jobs else "none"


def _patience(line: str) -> float:
    lasts = line.split()[0] in ("top", "view") or "--foreground" in line
    return _WAITS_S if lasts else 60.0
