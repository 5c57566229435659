"""The resources of this machine: CPUs, memory, and the GPUs that nvidia-smi lists, less those hidden from this process.

CUDA reads `CUDA_VISIBLE_DEVICES` alone. Containers and Slurm have variables of their own, which count where they have
not been applied yet: inside a container, nvidia-smi lists only what is allowed, numbered from 0.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...runner import Ledger, Request, Totals
from ...trial_agent import usable_bytes, usable_cpus
from ..errors import ExecutorError

_log = logging.getLogger(__name__)

# Lists GPU indices to use whatever the driver reports ("0,1"): for tests, and for machines without nvidia-smi.
DEVICES_ENVIRONMENT = "PITCHPIPE_GPUS"
_CUDA = "CUDA_VISIBLE_DEVICES"
_CONTAINER = "NVIDIA_VISIBLE_DEVICES"
_LISTS = (_CONTAINER, "SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "GPU_DEVICE_ORDINAL")
_MIG = "MIG-"
_PATIENCE = 30.0  # seconds; the driver of a machine with many GPUs can take some to start


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU, or a part of one (a MIG instance).

    `index` is its number in nvidia-smi (of a MIG instance: one that is made of its id), `uuid` tells it from all
    others whatever is visible, and `name` is what `CUDA_VISIBLE_DEVICES` calls it: a text is the user's own word.
    """

    index: int
    uuid: str
    name: int | str
    is_active: bool = False


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
    usable = [gpu.index for gpu in every if use_active_gpus or not gpu.is_active]
    chosen = tuple(index for index in usable if gpu_indices is None or index in gpu_indices)
    return Totals(amounts=amounts, devices=chosen, trials_per_device=trials_per_gpu)


def require_enough(totals: Totals, request: Request) -> None:
    """Raise `ExecutorError` if this machine has too little for one trial."""
    if (why := Ledger(totals).infeasible(request)) is not None:
        hidden = f" ({hidden_by()})" if request.gpus and hidden_by() else ""
        raise ExecutorError(f"no trial can ever run on this machine: {why}{hidden}")


def visible_gpus(environment: Mapping[str, str] = os.environ) -> list[Gpu]:
    """Return the GPUs that this process may use."""
    named = environment.get(DEVICES_ENVIRONMENT)
    if named is not None:
        return [Gpu(int(index), "", int(index)) for index in named.split(",") if index.strip()]
    cards = list(_cards())
    variable = _variable(environment)
    if not cards or not variable:
        return cards
    words = [word.strip() for word in environment[variable].split(",")]
    return list(_seen_by_cuda(words, cards) if variable == _CUDA else _allowed(words, cards))


def hidden_by(environment: Mapping[str, str] = os.environ) -> str:
    """Return the variable that says which GPUs are visible, with its value; empty if there is none.

    >>> hidden_by({"CUDA_VISIBLE_DEVICES": "2,3"}), hidden_by({"PATH": "/bin"})
    ('CUDA_VISIBLE_DEVICES=2,3', '')
    """
    variable = "" if DEVICES_ENVIRONMENT in environment else _variable(environment)
    return variable and f"{variable}={environment[variable]}"


def names_of_gpus(indices: Sequence[int]) -> list[int | str]:
    """Return what `CUDA_VISIBLE_DEVICES` calls these GPUs; those that are hidden from this process are left out."""
    gpus = visible_gpus()
    if not gpus and not hidden_by():
        return list(indices)  # the machine has no nvidia-smi
    names = {gpu.index: gpu.name for gpu in gpus}
    return [names[index] for index in indices if index in names]


def _variable(environment: Mapping[str, str]) -> str:
    """Return the variable that counts; empty if all GPUs are visible."""
    if environment.get(_CONTAINER) in ("none", "void"):
        return _CONTAINER
    if _CUDA in environment:
        return _CUDA
    return next((name for name in _LISTS if environment.get(name, "all") not in ("all", "")), "")


def _seen_by_cuda(words: Sequence[str], cards: Sequence[Gpu]) -> Iterator[Gpu]:
    """Yield the GPUs that CUDA uses of a list: each once, up to the first word that names none."""
    seen = set()
    for word in words:
        gpu = _named(word, cards)
        if gpu is None:
            return
        if gpu.index not in seen:
            seen.add(gpu.index)
            yield replace(gpu, name=word)


def _allowed(words: Sequence[str], cards: Sequence[Gpu]) -> Iterator[Gpu]:
    """Yield the GPUs of a list that CUDA does not read."""
    if words in (["none"], ["void"]):
        return
    singles = [single for word in words for single in _singles(word)]
    named = [gpu for word in singles if (gpu := _named(word, cards)) is not None]
    if len(cards) <= len(singles):  # it is applied already, and the numbers are those of the outside
        by_id = any(not word.isdigit() for word in singles)
        yield from named if named and by_id else cards
        return
    yield from dict.fromkeys(named)


def _singles(word: str) -> list[str]:
    """Return the indices of a range: "1-3"."""
    ends = re.fullmatch(r"(\d+)-(\d+)", word)
    return [word] if ends is None else [str(index) for index in range(int(ends[1]), int(ends[2]) + 1)]


def _named(word: str, cards: Sequence[Gpu]) -> Gpu | None:
    """Return the GPU that an index, the beginning of a UUID, or the id of a MIG instance names."""
    if word.startswith(_MIG):
        return Gpu(zlib.crc32(word.encode()), word, word)
    if word.isdigit():
        return next((gpu for gpu in cards if gpu.index == int(word)), None)
    named = [gpu for gpu in cards if word.startswith("GPU-") and gpu.uuid.startswith(word)]
    return named[0] if len(named) == 1 else None


def _cards() -> Iterator[Gpu]:
    """Yield the GPUs that nvidia-smi lists, and whether a process uses them."""
    if shutil.which("nvidia-smi") is None:
        return
    rows = _nvidia_smi("--query-gpu=index,uuid")
    busy = set(_nvidia_smi("--query-compute-apps=gpu_uuid")) if rows else set()
    for row in rows:
        if fields := re.fullmatch(r"(\d+), (\S+)", row):
            yield Gpu(int(fields[1]), fields[2], int(fields[1]), fields[2] in busy)


def _nvidia_smi(query: str) -> list[str]:
    words = ["nvidia-smi", query, "--format=csv,noheader"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        _log.warning("GPUs cannot be listed: %s", error)
        return []
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    if done.returncode:
        said = " ".join([*lines, done.stderr.strip()]).strip() or f"exit code {done.returncode}"
        _log.warning("GPUs cannot be listed: nvidia-smi: %s", said)
        return []
    return lines
