"""The resources of this machine: CPUs, memory and GPUs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping

import psutil

from ...runner import Ledger, Request, Totals
from ..errors import ExecutorError

__all__ = ["DEVICES_ENVIRONMENT", "local_totals", "sufficient_totals"]

# Lists GPU indices to use whatever the driver reports ("0,1"): for tests, and for machines without nvidia-smi.
DEVICES_ENVIRONMENT = "PITCHPIPE_GPUS"


def local_totals(
    request: Request,
    gpu_indices: tuple[int, ...] | None = None,
    trials_per_gpu: int = 1,
    use_active_gpus: bool = False,
    custom: Mapping[str, float] | None = None,
) -> Totals:
    """Return what trials may share on this machine; look for GPUs only if trials request them."""
    memory = float(psutil.virtual_memory().total)
    amounts = {"CPU": float(os.cpu_count() or 1), "memory": memory, **(custom or {})}
    if not request.gpus:
        return Totals(amounts=amounts)
    found = [index for index, is_active in _gpus() if use_active_gpus or not is_active]
    chosen = tuple(index for index in found if gpu_indices is None or index in gpu_indices)
    return Totals(amounts=amounts, devices=chosen, trials_per_device=trials_per_gpu)


def sufficient_totals(
    request: Request,
    gpu_indices: tuple[int, ...] | None = None,
    trials_per_gpu: int = 1,
    use_active_gpus: bool = False,
    custom: Mapping[str, float] | None = None,
) -> Totals:
    """Return the totals of this machine; raise `ExecutorError` if they are too little for one trial."""
    totals = local_totals(request, gpu_indices, trials_per_gpu, use_active_gpus, custom)
    if (why := Ledger(totals).infeasible(request)) is not None:
        raise ExecutorError(f"no trial can ever run on this machine: {why}")
    return totals


def _gpus() -> list[tuple[int, bool]]:
    """Return the index of each GPU, and whether a process uses it."""
    named = os.environ.get(DEVICES_ENVIRONMENT)
    if named is not None:
        return [(int(index), False) for index in named.split(",") if index.strip()]
    if shutil.which("nvidia-smi") is None:
        return []
    busy = set(_nvidia_smi("--query-compute-apps=gpu_uuid"))
    rows = [row.split(", ") for row in _nvidia_smi("--query-gpu=index,uuid")]
    return [(int(index), uuid in busy) for index, uuid in rows]


def _nvidia_smi(query: str) -> list[str]:
    done = subprocess.run(
        ["nvidia-smi", query, "--format=csv,noheader"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return [line.strip() for line in done.stdout.splitlines() if line.strip()] if done.returncode == 0 else []
