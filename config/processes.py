"""Checks of trials of several processes: what excludes them, and where they cannot run."""

from __future__ import annotations

from .platforms import LocalConfig
from .problems import Finding
from .root_fields import ConfigFields

__all__ = ["check_resources"]

_EXCLUDED = {"trial_cpu_number": "cpus_per_process", "trial_gpu_number": "gpus_per_process"}


def check_resources(config: ConfigFields, *, has_command: bool) -> list[Finding]:
    """Return the problems of trials of several processes."""
    asked = config.resources
    if asked is None:
        return []
    findings = [
        Finding(
            path=("resources",),
            message="excludes",
            hint=f"use resources.{instead}",
            also=(name,),
            at_key=True,
        )
        for name, instead in _EXCLUDED.items()
        if getattr(config, name) is not None
    ]
    if not has_command:
        what, hint = (
            "needs a trial_command: a function trial is one process",
            "call the function in a script",
        )
        findings.append(Finding(path=("resources",), message=what, hint=hint, at_key=True))
    if asked.processes % asked.nodes:
        what = f"is {asked.processes}, which {asked.nodes} nodes cannot share equally"
        findings.append(
            Finding(path=("resources", "processes"), message=what, hint=f"a multiple of {asked.nodes}")
        )
    return findings + _check_nodes(config, asked.nodes)


def _check_nodes(config: ConfigFields, nodes: int) -> list[Finding]:
    service, path = config.training_service, ("resources", "nodes")
    if nodes == 1:
        return []
    if isinstance(service, LocalConfig):
        what = f"is {nodes}, and the platform local has one node"
        return [Finding(path=path, message=what, hint="join a cluster: platform: ray, and its address")]
    if service.address is None:
        what = f"is {nodes}, and a private Ray has one node"
        return [
            Finding(
                path=path,
                message=what,
                hint="set training_service.address: `pitchpipe cluster up` prints one",
            )
        ]
    return []
