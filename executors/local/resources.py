"""The resources of this machine: CPUs, memory and GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...runner import Ledger, Request, Totals
from ...trial_agent import usable_bytes, usable_cpus
from ..errors import ExecutorError
from .local_resources import Gpu, hidden_by, visible_gpus


def local_totals(
    request: Request,
    gpu_indices: tuple[int, ...] | None = None,
    trials_per_gpu: int = 1,
    use_active_gpus: bool = False,
    custom: Mapping[str, float] | None = None,
    gpus: Sequence[Gpu] | None = None,
) -> Totals:
    """Return what trials may share on this machine; look for GPUs only if trials request them.

    `gpus` are those that are found; None: look for them.
    """
    amounts = {"CPU": float(usable_cpus()), "memory": float(usable_bytes()), **(custom or {})}
    if not request.gpus:
        return Totals(amounts=amounts)
    every = visible_gpus() if gpus is None else gpus
    found = [gpu.index for gpu in every if use_active_gpus or not gpu.is_active]
    chosen = tuple(index for index in found if gpu_indices is None or index in gpu_indices)
    return Totals(amounts=amounts, devices=chosen, trials_per_device=trials_per_gpu)


def sufficient_totals(
    request: Request,
    gpu_indices: tuple[int, ...] | None = None,
    trials_per_gpu: int = 1,
    use_active_gpus: bool = False,
    custom: Mapping[str, float] | None = None,
    gpus: Sequence[Gpu] | None = None,
) -> Totals:
    """Return the totals of this machine; raise `ExecutorError` if they are too little for one trial."""
    totals = local_totals(request, gpu_indices, trials_per_gpu, use_active_gpus, custom, gpus)
    if (why := Ledger(totals).infeasible(request)) is not None:
        hidden = f" ({hidden_by()})" if request.gpus and hidden_by() else ""
        raise ExecutorError(f"no trial can ever run on this machine: {why}{hidden}")
    return totals
