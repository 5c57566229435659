"""What a process may use of its machine: trees of control groups as containers, systemd and Slurm make them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from pitchpipe.trial_agent.machine_limits import available_bytes, usable_bytes, usable_cpus

GIB = 2**30
UNLIMITED = {
    "memory.limit_in_bytes": "9223372036854771712",
    "cpu.cfs_quota_us": "-1",
    "cpu.cfs_period_us": "100000",
}
V2 = "30 22 0:26 {top} /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"
V1 = "\n".join(
    (
        "25 22 0:25 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755",
        "31 25 0:27 {top} /sys/fs/cgroup/cpu,cpuacct rw shared:5 - cgroup cgroup rw,cpu,cpuacct",
        "32 25 0:28 {top} /sys/fs/cgroup/memory rw shared:6 - cgroup cgroup rw,memory",
        "33 25 0:29 {top} /sys/fs/cgroup/unified rw shared:7 - cgroup2 cgroup2 rw",
    )
)
V1_GROUPS = "5:memory:{path}\n4:cpu,cpuacct:{path}\n1:name=systemd:{path}\n0::{path}"


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the machine 64 CPUs, and 512 GiB of which 400 are free."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(64)), raising=False)
    memory = SimpleNamespace(total=512 * GIB, available=400 * GIB)
    monkeypatch.setattr("psutil.virtual_memory", lambda: memory)


def tree(
    root: Path, mounts: str, groups: str, files: Mapping[str, Mapping[str, str]], path: str, top: str = "/"
) -> str:
    """Make the files of a machine on which this process is in the group `path`; mounts begin at `top`."""
    for folder, contents in {"proc/self": {"mountinfo": mounts, "cgroup": groups}, **files}.items():
        (root / folder).mkdir(parents=True, exist_ok=True)
        for name, text in contents.items():
            (root / folder / name).write_text(text.format(path=path, top=top) + "\n")
    return str(root)


def version_2(root: Path, path: str, files: Mapping[str, Mapping[str, str]], top: str = "/") -> str:
    own = {f"sys/fs/cgroup/{folder}": contents for folder, contents in files.items()}
    return tree(root, f"22 1 8:1 / / rw - ext4 /dev/sda rw\n{V2}", "0::{path}", own, path, top)


def version_1(root: Path, path: str, files: Mapping[str, Mapping[str, str]], top: str = "/") -> str:
    own: dict[str, dict[str, str]] = {}
    for folder, contents in {"": UNLIMITED, **files}.items():
        for name, text in contents.items():
            controller = "memory" if name.startswith("memory") else "cpu,cpuacct"
            own.setdefault(f"sys/fs/cgroup/{controller}/{folder}", {})[name] = text
    return tree(root, V1, V1_GROUPS, own, path, top)


def quota(cpus: float) -> dict[str, str]:
    return {"cpu.max": f"{cpus * 100_000:.0f} 100000"}


def old_quota(cpus: float) -> dict[str, str]:
    return {"cpu.cfs_quota_us": f"{cpus * 50_000:.0f}", "cpu.cfs_period_us": "50000"}


FREE = {"cpu.max": "max 100000", "memory.max": "max"}


@pytest.mark.parametrize(
    ("path", "files", "cpus"),
    [
        ("/", {"": {}}, 64),
        ("/", {"": quota(4)}, 4),  # a container, in a namespace of its own
        ("/a/b", {"a": FREE, "a/b": quota(6)}, 6),
        ("/a/b", {"a": quota(3), "a/b": FREE}, 3),  # the limit of the group around it
        ("/a/b", {"a": quota(8), "a/b": quota(2)}, 2),
        ("/a/b", {"a": quota(2), "a/b": quota(8)}, 2),
        ("/a", {"a": FREE, "other": quota(1)}, 64),
        ("/a", {"a": quota(2.5)}, 2),
        ("/a", {"a": quota(0.5)}, 1),
        ("/a", {"a": quota(500)}, 64),
        ("/gone", {"": {}}, 64),
        ("/../../outside", {"": quota(2)}, 2),
        ("/.lxc/a", {".lxc": quota(2)}, 2),
    ],
)
def test_quota_of_version_2(
    path: str, files: Mapping[str, Mapping[str, str]], cpus: int, tmp_path: Path
) -> None:
    assert usable_cpus({}, version_2(tmp_path, path, files)) == cpus


@pytest.mark.parametrize(
    ("path", "top", "files", "cpus"),
    [
        ("/", "/", {}, 64),
        ("/", "/", {"": old_quota(4)}, 4),
        (
            "/docker/abc",
            "/docker/abc",
            {"": old_quota(3)},
            3,
        ),  # the mount shows the container's group as its top
        ("/elsewhere", "/docker/abc", {"": old_quota(3)}, 3),
        ("/docker/abc/job", "/docker/abc", {"job": old_quota(2)}, 2),
        ("/slurm/uid_0/job_7/step_0", "/", {"slurm/uid_0/job_7": old_quota(5)}, 5),
        ("/docker/abc", "/", {"docker": old_quota(1.5), "docker/abc": UNLIMITED}, 1),
        ("/a", "/", {"a": UNLIMITED}, 64),
    ],
)
def test_quota_of_version_1(
    path: str, top: str, files: Mapping[str, Mapping[str, str]], cpus: int, tmp_path: Path
) -> None:
    assert usable_cpus({}, version_1(tmp_path, path, files, top)) == cpus


def test_affinity_counts_and_the_smallest_limit_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {3, 5, 9})
    assert usable_cpus({}, version_2(tmp_path, "/", {"": quota(8)})) == 3
    assert usable_cpus({}, version_2(tmp_path, "/", {"": quota(2)})) == 2
    assert usable_cpus({}, str(tmp_path / "without files")) == 3


MEMORY = {"memory.max": f"{8 * GIB}", "memory.current": f"{5 * GIB}"}
OLD_MEMORY = {"memory.limit_in_bytes": f"{8 * GIB}", "memory.usage_in_bytes": f"{5 * GIB}"}
STAT, OLD_STAT = (
    {"memory.stat": f"anon 7\ninactive_file {GIB}\n{more}"} for more in ("", f"total_inactive_file {2 * GIB}")
)


@pytest.mark.parametrize(
    ("version", "path", "files", "usable", "available"),
    [
        (version_2, "/", {}, 512, 400),
        (version_2, "/", {"": MEMORY}, 8, 3),
        (version_2, "/", {"": {**MEMORY, **STAT}}, 8, 4),
        (version_2, "/a/b", {"a": MEMORY, "a/b": FREE}, 8, 3),
        (version_2, "/a/b", {"a": {**MEMORY, "memory.max": f"{6 * GIB}"}, "a/b": MEMORY}, 6, 1),
        (version_2, "/a", {"a": {**MEMORY, "memory.max": f"{4 * GIB}"}}, 4, 0),
        (version_2, "/a", {"a": {"memory.max": "0"}}, 0, 0),
        (version_1, "/", {}, 512, 400),
        (version_1, "/a/b", {"a": {**OLD_MEMORY, **OLD_STAT}}, 8, 5),
        (version_1, "/a/b", {"a/b": OLD_MEMORY}, 8, 3),
    ],
)
def test_limits_of_memory(version, path, files, usable: int, available: int, tmp_path: Path) -> None:
    root = version(tmp_path, path, files)
    assert (usable_bytes({}, root), available_bytes({}, root)) == (usable * GIB, available * GIB)


@pytest.mark.parametrize(
    ("environment", "cpus", "memory"),
    [
        ({"SLURM_CPUS_ON_NODE": "16"}, 16, 512),
        ({"SLURM_CPUS_ON_NODE": "16", "SLURM_MEM_PER_NODE": "32768"}, 16, 32),
        ({"SLURM_CPUS_ON_NODE": "16", "SLURM_MEM_PER_NODE": "0"}, 16, 512),
        ({"SLURM_CPUS_ON_NODE": "16", "SLURM_MEM_PER_CPU": "2048"}, 16, 32),
        ({"SLURM_CPUS_ON_NODE": "128"}, 64, 512),
        ({"SLURM_JOB_CPUS_PER_NODE": "1", "SLURM_MEM_PER_NODE": "1024"}, 64, 512),  # salloc, before srun
    ],
)
def test_slurm_says_what_the_job_has_on_its_node(
    environment: Mapping[str, str], cpus: int, memory: int, tmp_path: Path
) -> None:
    root = version_2(tmp_path, "/", {"": FREE})
    assert usable_cpus(environment, root) == cpus
    assert usable_bytes(environment, root) == memory * GIB
    assert available_bytes(environment, root) == min(400, memory) * GIB
