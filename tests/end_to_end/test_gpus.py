"""Trials on GPUs, of which a stand-in for nvidia-smi lists some: who runs beside whom, and what each trial sees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ..executors.local.test_local_resources import VARIABLES, install_nvidia_smi
from .running import Lab

# Of the first trials, each waits until as many run as the test expects.
SCRIPT = """
mkdir -p started && touch started/$PITCHPIPE_SEQUENCE_ID
while [ $(ls started | wc -l) -lt AT_ONCE ]; do sleep 0.02; done
echo "{\\"final\\": {\\"default\\": 0, \\"seen\\": \\"$CUDA_VISIBLE_DEVICES\\"}}" >> $PITCHPIPE_REPORTS
"""

OF_PLATFORM = ("max_trial_number_per_gpu",)


@pytest.fixture
def cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that gives this machine so many cards, and an environment."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def install(count: int, environment: dict[str, str]) -> None:
        install_nvidia_smi(folder, monkeypatch, count)
        for name in VARIABLES:
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)

    return install


@pytest.mark.parametrize(
    ("count", "environment", "fields", "at_once", "seen"),
    [
        (1, {}, {"trial_gpu_number": 0.5}, 2, {"0"}),
        (1, {}, {"trial_gpu_number": 1, "max_trial_number_per_gpu": 2}, 2, {"0"}),
        (1, {}, {"trial_gpu_number": 1}, 1, {"0"}),
        (1, {}, {"trial_gpu_number": 0}, 3, {""}),
        (
            4,
            {"CUDA_VISIBLE_DEVICES": "3, GPU-00000001-aaaa"},
            {"trial_gpu_number": 1},
            2,
            {"3", "GPU-00000001-aaaa"},
        ),
        (4, {"CUDA_VISIBLE_DEVICES": "2,3,1"}, {"trial_gpu_number": 2}, 1, {"1,2"}),
        (1, {"CUDA_VISIBLE_DEVICES": "MIG-1-a,MIG-2-b"}, {"trial_gpu_number": 1}, 2, {"MIG-1-a", "MIG-2-b"}),
        (4, {"SLURM_JOB_GPUS": "1-2"}, {"trial_gpu_number": 1}, 2, {"1", "2"}),
        (1, {"CUDA_VISIBLE_DEVICES": "-1"}, {"trial_gpu_number": 0}, 3, {""}),
    ],
)
def test_trials_share_the_cards_that_are_visible_and_see_only_theirs(
    count: int,
    environment: dict[str, str],
    fields: dict[str, Any],
    at_once: int,
    seen: set[str],
    lab: Lab,
    cards: Any,
) -> None:
    cards(count, environment)
    service = {"platform": "local", **{name: fields[name] for name in fields if name in OF_PLATFORM}}
    fields = {name: value for name, value in fields.items() if name not in OF_PLATFORM}
    script = SCRIPT.replace("AT_ONCE", str(at_once))
    config = lab.write(
        script, "trial.sh", **fields, max_trial_number=4, trial_concurrency=3, training_service=service
    )
    assert lab.run_json(config)["status"] == "DONE"
    trials = lab.trials()
    assert {trial["final"]["seen"] for trial in trials} == seen
    times = [(trial["start_time"], trial["end_time"]) for trial in trials]
    assert max(sum(start <= moment < end for start, end in times) for moment, _ in times) == at_once


@pytest.mark.parametrize("visible", ["", "-1", "9", "GPU-9", "NoDevFiles"])
def test_experiment_whose_gpus_are_hidden_is_refused(visible: str, lab: Lab, cards: Any) -> None:
    cards(2, {"CUDA_VISIBLE_DEVICES": visible})
    called = lab.run("run", lab.write(SCRIPT, "trial.sh", trial_gpu_number=1), "--experiment-id", "exp")
    assert called.code == 1
    assert not lab.database.exists()
