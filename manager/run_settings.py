"""From the configuration to what the store, the runner and the executors work with."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..config import ExperimentConfig, RayConfig
from ..protocol import Objective, main_objective
from ..runner import ExperimentStatus, FailureKind, Limits, Repeats, Request, Retries
from ..trial_agent import Keeping, RunSpec, usable_cpus

if TYPE_CHECKING:
    from ..store import ExperimentFolder, Store
    from .manager_snapshot import ManagerSnapshot


def new_store(
    folder: ExperimentFolder, config: ExperimentConfig, now: float, snapshot: ManagerSnapshot | None = None
) -> tuple[Store, ExperimentConfig]:
    """Make the store of a new experiment; return it with the configuration in it, which has a seed."""
    from ..store import ExperimentRow, Store  # `pitchpipe validate` needs no database

    if config.seed is None:
        # A drawn seed is kept: all processes, and a dispatcher that is restored, must propose the same.
        config = config.model_copy(update={"seed": secrets.randbelow(2**31)})
    row = ExperimentRow(
        id=folder.experiment_id,
        name=config.experiment_name,
        status=ExperimentStatus.INITIALIZED.value,
        config=config.canonical(),
        token=secrets.token_hex(16),
        created=now,
        snapshot=None if snapshot is None else {**snapshot},
    )
    return Store.create(folder.database, row, names_of_objectives(config)), config


def limits_of(config: ExperimentConfig) -> Limits:
    """Return the bounds of the experiment."""
    return Limits(
        trial_concurrency=config.trial_concurrency,
        max_trial_number=config.max_trial_number,
        max_trial_duration=config.max_trial_duration,
        max_experiment_duration=config.max_experiment_duration,
        max_identical_failures=config.max_identical_failures,
        retries=retries_of(config.max_failures),
        fail_fast=config.fail_fast,
    )


def retries_of(max_failures: int | Mapping[str, int]) -> Retries:
    """Return how often failed attempts are run again.

    >>> retries_of({"OOM": 1}).by_kind == {FailureKind.INFRA: 3, FailureKind.OOM: 1}
    True
    >>> retries_of(2)
    Retries(in_all=2, by_kind={})
    """
    if isinstance(max_failures, int):
        return Retries(max_failures, {})
    named = {FailureKind(kind): count for kind, count in max_failures.items()}
    return Retries(None, {FailureKind.INFRA: 3, **named})


def objectives_of(config: ExperimentConfig) -> tuple[Objective, ...]:
    """Return what is optimised and limited."""
    return tuple(objective.parsed() for objective in config.objectives)


def names_of_objectives(config: ExperimentConfig) -> tuple[str, ...]:
    """Return the names of what is optimised and limited, in the order of a trial's values."""
    return tuple(objective.name for objective in config.objectives)


def repeats_of(config: ExperimentConfig) -> Repeats:
    """Return how often each configuration is run; the seeds follow from the seed of the experiment."""
    repeats = config.repeats
    if repeats is None:
        return Repeats()
    seeds = range(repeats.count) if repeats.seed else ()
    return Repeats(repeats.count, [_seed(config.seed or 0, repeat) for repeat in seeds], repeats.race)


def _seed(seed: int, repeat: int) -> int:
    """Return the seed of a repeat: any 31 bits, which all libraries take."""
    digest = hashlib.blake2b(f"{seed}/{repeat}".encode(), digest_size=4).digest()
    return int.from_bytes(digest) >> 1


def request_of(config: ExperimentConfig) -> Request:
    """Return what one trial takes."""
    team = config.resources
    if team is not None:
        gpus = team.gpus_per_process
        return Request(
            cpus=team.processes * team.cpus_per_process,
            memory=config.trial_memory_size or 0,
            gpus=None if gpus is None else float(team.processes * gpus),
            custom=dict(config.trial_resources),
            nodes=team.nodes,
        )
    return Request(
        cpus=config.trial_cpu_number or 0.0,
        memory=config.trial_memory_size or 0,
        gpus=config.trial_gpu_number,
        custom=dict(config.trial_resources),
    )


def agent_timeout_of(config: ExperimentConfig) -> float:
    """Return how long (s) an agent may be silent; a function may keep its agent busy for a while."""
    if config.agent_timeout is not None:
        return config.agent_timeout
    return 60.0 if config.trial_command is None else 10.0


def run_of(config: ExperimentConfig, folder: ExperimentFolder) -> RunSpec:
    """Return how the trial agent runs a trial."""
    is_function = config.trial_command is None
    team, memory = config.resources, config.trial_memory_size
    processes, nodes = (1, 1) if team is None else (team.processes, team.nodes)
    return RunSpec(
        kind="function" if is_function else "command",
        experiment=folder.experiment_id,
        folder=str(folder.path),
        command=config.trial_command or "",
        path=str(folder.function_file) if is_function else "",
        code_directory=str(code_directory_of(config, folder)),
        environment=dict(config.trial_environment),
        threads=_threads_of(config),
        grace=config.kill_grace,
        memory_limit=None if memory is None else memory // nodes,
        orphan_timeout=config.orphan_timeout,
        reuse_actors=config.reuse_actors,
        synced=config.durability == "power",
        processes=processes,
        nodes=nodes,
        trial_start=config.trial_start,
        function_files=_function_files(folder) if is_function else {},
        keeping=_keeping_of(config),
    )


def code_directory_of(config: ExperimentConfig, folder: ExperimentFolder) -> Path:
    """Return the folder in which trials run."""
    return folder.code_snapshot if config.trial_code == "snapshot" else config.trial_code_directory


def _function_files(folder: ExperimentFolder) -> dict[str, str]:
    """Return the digests of the files that the function came from; experiments of earlier versions have none."""
    try:
        files = json.loads(folder.function_files.read_bytes())
    except (OSError, ValueError):
        return {}
    return files if isinstance(files, dict) else {}


def _threads_of(config: ExperimentConfig) -> int | None:
    """Return how many threads a process may use: its CPUs, or its share of this machine if trials run here."""
    if config.resources is not None:
        return max(1, int(config.resources.cpus_per_process))
    if config.trial_cpu_number is not None:
        return max(1, int(config.trial_cpu_number))
    service = config.training_service
    if isinstance(service, RayConfig) and service.address is not None:
        return None  # the nodes may differ
    return max(1, usable_cpus() // config.trial_concurrency)


def _keeping_of(config: ExperimentConfig) -> Keeping:
    """Return which checkpoints of a trial are kept, and when a class saves one."""
    checkpoint = config.checkpoint
    main = main_objective(objectives_of(config))
    return Keeping(
        keep=checkpoint.keep,
        rank_by=checkpoint.rank_by,
        mode=main.direction or "minimize",
        metric=main.name,
        frequency=checkpoint.frequency,
        at_end=checkpoint.at_end,
    )


def difference_in(name: str, stored: ExperimentConfig, given: ExperimentConfig) -> str:
    """Return a field with what differs in it, such as `search_space (lr)`; empty if nothing does."""
    before, now = getattr(stored, name), getattr(given, name)
    if before == now:
        return ""
    if not isinstance(before, Mapping) or not isinstance(now, Mapping):
        return name
    keys = [str(key) for key in {**before, **now} if before.get(key, ...) != now.get(key, ...)]
    more = [*keys[:3], *([f"{len(keys) - 3} more"] if len(keys) > 3 else [])]
    return f"{name} ({', '.join(more)})"
