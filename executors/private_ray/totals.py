"""What a Ray on this machine has at most, asked without starting it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import psutil

from ...trial_agent import available_bytes, usable_bytes, usable_cpus
from .supervisor_files import SupervisorFiles

if TYPE_CHECKING:
    from ...runner import Request, Totals


def limits_of_this_machine() -> dict[str, float]:
    """Return what Ray itself would overestimate: it knows neither the affinity nor nested control groups.

    Without a limit, Ray is right about the memory: it keeps some for objects.
    """
    is_limited = usable_bytes() < psutil.virtual_memory().total
    return {"CPU": usable_cpus(), **({"memory": available_bytes()} if is_limited else {})}


def most_of_this_machine(request: Request) -> Totals:
    """Return what Ray can find on this machine; look for GPUs only if trials request them (half a second).

    Ray may offer less memory. One that runs already has what it was started with.
    """
    from ...runner import Totals  # the supervisor, which starts with Ray, needs the limits only

    state = SupervisorFiles.current().read_state()
    declared = {} if state is None else state.resources
    amounts = {"memory": float(usable_bytes()), **limits_of_this_machine(), **declared}
    gpus = amounts.pop("GPU", None)
    return Totals(
        amounts=amounts, anonymous_gpus=(_gpus() if gpus is None else gpus) if request.gpus else 0.0
    )


def _gpus() -> float:
    """Return how many GPUs of any vendor Ray itself would find."""
    accelerators: Any = importlib.import_module("ray._private.accelerators")
    vendor = accelerators.get_accelerator_manager_for_resource("GPU")
    count, visible = (
        vendor.get_current_node_num_accelerators(),
        vendor.get_current_process_visible_accelerator_ids(),
    )
    return float(count if visible is None else min(count, len(visible)))
