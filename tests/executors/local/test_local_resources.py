"""What a machine has, and which of its GPUs may be used: a stand-in for nvidia-smi lists four."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from pitchpipe.executors.errors import ExecutorError
from pitchpipe.executors.local.local_resources import (
    DEVICES_ENVIRONMENT,
    Gpu,
    hidden_by,
    local_totals,
    names_of_gpus,
    require_enough,
    visible_gpus,
)
from pitchpipe.manager.dispatcher_link.dispatcher import _gpus_of_tuner
from pitchpipe.manager.dispatcher_link.dispatcher_process import dispatcher_environment
from pitchpipe.runner.ledger import Request

from .test_gpu_claims import claims
from .test_local_executor import experiment, start

pytestmark = pytest.mark.usefixtures("forked_agents")

VARIABLES = (
    *("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "SLURM_STEP_GPUS", "SLURM_JOB_GPUS"),
    *("GPU_DEVICE_ORDINAL", "CUDA_DEVICE_ORDER", DEVICES_ENVIRONMENT),
)


def install_nvidia_smi(folder: Path, monkeypatch: pytest.MonkeyPatch, count: int = 4, first: int = 0) -> None:
    """Put a stand-in on PATH that lists cards with the UUIDs GPU-0000000N-aaaa; card `first` is number 0."""
    rows = "".join(f"echo '{index}, GPU-0000000{first + index}-aaaa'\n" for index in range(count))
    program = folder / "nvidia-smi"
    program.write_text(f'#!/bin/sh\ncase "$1" in\n--query-gpu=index,uuid)\n{rows};;\n*) ;;\nesac\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "bin"
    folder.mkdir()
    install_nvidia_smi(folder, monkeypatch)


def test_card_on_which_another_program_computes_is_active(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "nvidia-smi"
    program.write_text(
        program.read_text().replace("*) ;;", "*) echo GPU-00000002-aaaa; echo GPU-00000002-aaaa;;")
    )
    assert [gpu.index for gpu in visible_gpus({}) if gpu.is_active] == [2]
    assert local_totals(Request(gpus=1)).devices == (0, 1, 3)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (
            "echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18",
            "Driver/library version",
        ),
        ("echo boom >&2; exit 9", "boom"),
        ("exit 255", "exit code 255"),
    ],
)
def test_nvidia_smi_that_fails_is_quoted(
    script: str, said: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "bin" / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
    assert visible_gpus({}) == []
    assert caplog.text.count(said) == 1


@pytest.mark.parametrize("rows", ["No devices were found", "0, [Unknown Error]", "", "index, uuid"])
def test_rows_that_name_no_card_are_left_out(rows: str, tmp_path: Path) -> None:
    (tmp_path / "bin" / "nvidia-smi").write_text(f"#!/bin/sh\necho '{rows}'\n")
    assert visible_gpus({}) == []


CUDA = [
    ("2,3", ["2", "3"]),
    (" 3 , 1", ["3", "1"]),
    ("", []),
    ("-1", []),
    ("1,-1,2", ["1"]),
    ("NoDevFiles", []),
    ("7,0", []),
    ("2,2", ["2"]),
    ("GPU-00000003-aaaa,GPU-00000001", ["GPU-00000003-aaaa", "GPU-00000001"]),
    ("GPU-0000000", []),
    ("MIG-7f0e,MIG-81ac", ["MIG-7f0e", "MIG-81ac"]),
]


@pytest.mark.parametrize(("given", "names"), CUDA)
def test_cuda_visible_devices_is_read_as_cuda_reads_it(given: str, names: list[str]) -> None:
    found = visible_gpus({"CUDA_VISIBLE_DEVICES": given, "SLURM_JOB_GPUS": "0"})
    assert [gpu.name for gpu in found] == names
    assert len({gpu.index for gpu in found}) == len({gpu.uuid for gpu in found}) == len(names)


@pytest.mark.parametrize(
    ("environment", "indices"),
    [
        ({}, [0, 1, 2, 3]),
        ({"NVIDIA_VISIBLE_DEVICES": "none"}, []),
        ({"NVIDIA_VISIBLE_DEVICES": "void", "CUDA_VISIBLE_DEVICES": "0"}, []),
        ({"NVIDIA_VISIBLE_DEVICES": "all"}, [0, 1, 2, 3]),
        ({"NVIDIA_VISIBLE_DEVICES": "all", "SLURM_JOB_GPUS": "1"}, [1]),
        ({"NVIDIA_VISIBLE_DEVICES": "2,3"}, [2, 3]),
        ({"NVIDIA_VISIBLE_DEVICES": "GPU-00000002-aaaa"}, [2]),
        ({"NVIDIA_VISIBLE_DEVICES": "4,5,6,7"}, [0, 1, 2, 3]),  # the container has four, under other numbers
        ({"SLURM_JOB_GPUS": "1-3"}, [1, 2, 3]),
        ({"SLURM_JOB_GPUS": "1-3", "SLURM_STEP_GPUS": "3"}, [3]),
        ({"GPU_DEVICE_ORDINAL": "0"}, [0]),
        ({DEVICES_ENVIRONMENT: "8", "CUDA_VISIBLE_DEVICES": "0"}, [8]),
    ],
)
def test_lists_of_containers_and_of_slurm(environment: Mapping[str, str], indices: list[int]) -> None:
    assert [gpu.name for gpu in visible_gpus(environment)] == indices


def test_gpu_indices_are_those_of_nvidia_smi_and_hidden_gpus_are_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,GPU-00000002-aaaa")
    assert local_totals(Request(gpus=1)).devices == (3, 2)
    assert local_totals(Request(gpus=1), gpu_indices=(2,)).devices == (2,)
    assert local_totals(Request()).devices == ()
    assert names_of_gpus([0, 2]) == ["GPU-00000002-aaaa"]
    with pytest.raises(ExecutorError, match=r"there is none \(CUDA_VISIBLE_DEVICES=3,GPU-00000002-aaaa\)"):
        require_enough(local_totals(Request(gpus=1), gpu_indices=(0,)), Request(gpus=1))


def test_the_variable_that_counts_is_named() -> None:
    assert hidden_by({"CUDA_VISIBLE_DEVICES": "", "SLURM_JOB_GPUS": "1"}) == "CUDA_VISIBLE_DEVICES="
    assert hidden_by({"NVIDIA_VISIBLE_DEVICES": "all"}) == ""


@pytest.mark.parametrize(
    ("visible", "seen"),
    [
        ("2,3", {"2", "3"}),
        ("GPU-00000003-aaaa", {"GPU-00000003-aaaa"}),
        ("MIG-7f0e", {"MIG-7f0e"}),
        (None, {"0", "1", "2", "3"}),
    ],
)
async def test_a_trial_gets_its_gpu_under_the_name_that_was_given(
    visible: str | None, seen: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    got = set()
    async with experiment(tmp_path / "one") as session:
        for device in [gpu.index for gpu in visible_gpus()]:
            order = start(session, (device,))
            await session.end_of(order)
            got.add(session.outcome(order)[0][2]["devices"])
    assert got == seen


def test_the_same_number_in_another_container_is_another_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive = {"inside", "outside"}
    install_nvidia_smi(tmp_path / "bin", monkeypatch, count=2, first=2)
    inside = claims(tmp_path, "inside", alive, {gpu.index: gpu.uuid for gpu in visible_gpus()})
    install_nvidia_smi(tmp_path / "bin", monkeypatch)
    outside = claims(tmp_path, "outside", alive, {gpu.index: gpu.uuid for gpu in visible_gpus()})
    assert inside.take("A", (0,)) == ()
    assert outside.busy() == {2}
    assert outside.take("B", (0, 3)) == ()
    assert inside.take("C", (1,)) == (1,)
    outside.give_back("B")
    assert inside.take("C", (1,)) == ()


@pytest.mark.parametrize(("visible", "passed"), [(None, "0,2"), ("2,3", "2"), ("", "")])
def test_the_tuner_gets_none_that_is_hidden(
    visible: str | None, passed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    environment = dispatcher_environment(
        {}, tmp_path, mode="create", log_level="info", gpus=_gpus_of_tuner({"tunerGpuIndices": [0, 2]})
    )
    assert environment["CUDA_VISIBLE_DEVICES"] == passed


GPUS = [Gpu(0, "", 0), Gpu(1, "", 1, is_active=True), Gpu(3, "", 3)]


@pytest.mark.parametrize(
    ("gpus", "options", "devices"),
    [
        (1, {}, (0, 3)),
        (1, {"use_active_gpus": True}, (0, 1, 3)),
        (1, {"use_active_gpus": True, "gpu_indices": (1, 2)}, (1,)),
        (0, {}, ()),
    ],
)
def test_devices_are_the_idle_gpus_that_the_config_lists(
    gpus: int, options: dict[str, object], devices: tuple[int, ...]
) -> None:
    assert local_totals(Request(gpus=gpus), gpus=GPUS, **options).devices == devices  # type: ignore[arg-type]


def test_cpus_and_memory_are_those_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {5}, raising=False)
    monkeypatch.setattr("pitchpipe.executors.local.local_resources.usable_bytes", lambda: 2**20)
    assert local_totals(Request(cpus=1)).amounts == {"CPU": 1.0, "memory": 2.0**20}
