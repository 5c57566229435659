"""How much of this machine this process may use: what its affinity, its control groups and Slurm leave to it.

A container, a cpuset or `taskset` shows in the affinity; quotas of CPU time and limits of memory are only in the
files of the control groups. Each group is limited by those that it is in, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping


def usable_cpus(environment: Mapping[str, str] = os.environ, root: str = "/") -> int:
    """Return how many CPUs this process may use: whole ones, at least one.

    >>> 1 <= usable_cpus() <= os.cpu_count()
    True
    """
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    files = ("cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us")
    limits = [_words(group, *files) for group in _groups("cpu", root)]
    quotas = [int(limit[0]) // int(limit[1]) for limit in limits if len(limit) == 2 and limit[0].isdigit()]
    return max(1, min([cpus, *quotas, *_of_slurm("SLURM_CPUS_ON_NODE", environment)]))


def usable_bytes(environment: Mapping[str, str] = os.environ, root: str = "/") -> int:
    """Return how much memory this process may use, with its children and what else shares its limits."""
    import psutil

    limits = [limit for _, limit in _memory_limits(root)]
    for cpus in _of_slurm("SLURM_CPUS_ON_NODE", environment):  # otherwise, this is not a node of the job
        limits += [size * 2**20 for size in _of_slurm("SLURM_MEM_PER_NODE", environment)]
        limits += [size * 2**20 * cpus for size in _of_slurm("SLURM_MEM_PER_CPU", environment)]
    return min([psutil.virtual_memory().total, *limits])


def available_bytes(environment: Mapping[str, str] = os.environ, root: str = "/") -> int:
    """Return how much memory this process can still get without swapping, and without being killed for it.

    >>> 1_000_000 < available_bytes() <= usable_bytes()
    True
    """
    import psutil

    free = [limit - _used(group) for group, limit in _memory_limits(root)]
    return max(0, min(psutil.virtual_memory().available, usable_bytes(environment, root), *free))


def _of_slurm(name: str, environment: Mapping[str, str]) -> list[int]:
    """Return the number in a variable of Slurm, if it is set; 0 stands for all that the node has."""
    value = environment.get(name, "")
    return [int(value)] if value.isdigit() and int(value) else []


def _memory_limits(root: str) -> Iterator[tuple[str, int]]:
    """Yield the control groups that limit the memory, each with its limit."""
    for group in _groups("memory", root):
        for word in _words(group, "memory.max", "memory.limit_in_bytes"):
            if word.isdigit():
                yield group, int(word)


def _used(group: str) -> int:
    """Return the memory that a control group uses, less the files that the kernel can drop from it."""
    used = sum(map(int, _words(group, "memory.current", "memory.usage_in_bytes")))
    words = _words(group, "memory.stat")
    counts = dict(zip(words[::2], words[1::2], strict=False))
    return used - int(counts.get("total_inactive_file", counts.get("inactive_file", 0)))


def _words(group: str, *names: str) -> list[str]:
    """Return the words of these files of a control group; version 1 and version 2 have different ones."""
    words = []
    for name in names:
        try:
            with open(os.path.join(group, name), encoding="ascii") as file:
                words += file.read().split()
        except OSError:
            continue
    return words


def _groups(controller: str, root: str) -> Iterator[str]:
    """Yield the folders of the control group that this process is in, and of all groups around it."""
    own = [line.split(":", 2) for line in _lines(root, "cgroup")]
    paths = {name: path for _, names, path in own for name in names.split(",")}
    kind = "cgroup" if controller in paths else "cgroup2"  # of version 2, names are empty
    for line in _lines(root, "mountinfo"):
        mount, _, source = line.partition(" - ")
        file_system, _, options = source.split(" ", 2)
        if file_system == kind and (kind == "cgroup2" or controller in options.split(",")):
            top, place = mount.split(" ")[3:5]
            return _upwards(os.path.join(root, place[1:]), top, paths.get(controller, paths.get("", "/")))
    return iter(())


def _upwards(mount: str, top: str, path: str) -> Iterator[str]:
    """Yield the folder of a group and those above it; `mount` shows the group `top` and those below."""
    below = os.path.relpath(path, top).split("/")
    steps = [] if below[0] in (".", "..") else below  # outside of its namespace, only the mount is known
    for count in range(len(steps), -1, -1):
        yield os.path.join(mount, *steps[:count])


def _lines(root: str, name: str) -> list[str]:
    try:
        with open(os.path.join(root, "proc/self", name), encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return []  # not Linux
