"""What this machine has to give out: CPUs, memory and GPUs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

import psutil

from ...runner import Request, Totals

__all__ = ["DEVICES_ENVIRONMENT", "local_totals"]

# Names GPU indices that are taken to be there, whatever the driver says ("0,1"): for tests, and for machines whose
# driver has no nvidia-smi.
DEVICES_ENVIRONMENT = "PITCHPIPE_GPUS"


@dataclass(frozen=True, slots=True)
class _Gpu:
    index: int
    is_active: bool


def local_totals(
    request: Request,
    gpu_indices: tuple[int, ...] | None = None,
    trials_per_gpu: int = 1,
    use_active_gpus: bool = False,
    custom: Mapping[str, float] | None = None,
) -> Totals:
    """Return what trials may share on this machine; GPUs are looked for only if trials ask for them."""
    memory = float(psutil.virtual_memory().total)
    amounts = {"CPU": float(os.cpu_count() or 1), "memory": memory, **(custom or {})}
    if not request.gpus:
        return Totals(amounts)
    gpus = _gpus()
    found = [gpu.index for gpu in gpus if use_active_gpus or not gpu.is_active]
    chosen = tuple(index for index in found if gpu_indices is None or index in gpu_indices)
    return Totals(amounts, chosen, trials_per_gpu)


def _gpus() -> list[_Gpu]:
    named = os.environ.get(DEVICES_ENVIRONMENT)
    if named is not None:
        return [_Gpu(int(index), False) for index in named.split(",") if index.strip()]
    if shutil.which("nvidia-smi") is None:
        return []
    busy = set(_nvidia_smi("--query-compute-apps=gpu_uuid"))
    rows = [row.split(", ") for row in _nvidia_smi("--query-gpu=index,uuid")]
    return [_Gpu(int(index), uuid in busy) for index, uuid in rows]


def _nvidia_smi(query: str) -> list[str]:
    done = subprocess.run(
        ["nvidia-smi", query, "--format=csv,noheader"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return [line.strip() for line in done.stdout.splitlines() if line.strip()] if done.returncode == 0 else []
