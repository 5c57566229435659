"""The section on trials of several processes."""

from __future__ import annotations

from pydantic import Field

from .sections import Section

__all__ = ["ResourcesConfig"]


class ResourcesConfig(Section):
    """The processes of a trial, and what each of them takes."""

    processes: int = Field(gt=0, description="Processes of a trial, in all. Each runs `trial_command`.")
    nodes: int = Field(
        default=1,
        gt=0,
        description="Nodes of a trial, with equally many processes on each. More than 1 needs Ray.",
    )
    cpus_per_process: float = Field(default=1.0, gt=0, description="CPUs of each process.")
    gpus_per_process: int | None = Field(
        default=None,
        ge=0,
        description="GPUs of each process. A process sees all GPUs that its trial has on the node; 0 hides all GPUs,"
        " not set hides none.",
    )
