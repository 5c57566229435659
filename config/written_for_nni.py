"""NNI's platforms on other machines, which are not run, and what replaces them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .problems import fold

OTHER_PLATFORMS = (
    "remote",
    "openpai",
    "pai",
    "paiyarn",
    "dlts",
    "aml",
    "dlc",
    "kubeflow",
    "frameworkcontroller",
    "adl",
    "hybrid",
)
_HOST = re.compile(r"[\w.@:-]+")  # others are placeholders to fill in


def local_index(services: Sequence[Any]) -> int | None:
    """Return which of several training services is this machine; None unless one is, and all others are NNI's.

    >>> local_index([{"platform": "remote"}, {"platform": "local"}])
    1
    """
    names = [str(_field(service, "platform")).lower() for service in services]
    others = [name for name in names if name != "local"]
    known = all(name in OTHER_PLATFORMS for name in others)
    return names.index("local") if known and len(others) == len(names) - 1 else None


def note_on_others(services: Sequence[Any]) -> str:
    """Return a warning that only the local one of several training services is used; empty if there is no other."""
    names = [str(_field(service, "platform")).lower() for service in services]
    others = ", ".join(name for name in names if name != "local")
    return (
        f"trials run on this machine only, not on {others}; for others, {instead_of(services)}"
        if others
        else ""
    )


def instead_of(services: Sequence[Any]) -> str:
    """Return what takes the place of training services, with their machines as far as they are known.

    >>> instead_of([{"platform": "remote", "machine_list": [{"host": "node1", "user": "ada"}, {"host": "node2"}]}])
    'start Ray there, `pitchpipe cluster up --hosts ada@node1,node2`, and write training_service: {platform: ray, ...
    """
    machines = [machine for service in services for machine in _machines(service)]
    hosts = ["@".join(filter(None, (user, host))) for host, user, _ in machines]
    ports = {port for _, _, port in machines}
    ssh = f' --ssh "ssh -p {ports.pop()}"' if len(ports) == 1 and ports != {22} else ""
    head = machines[0][0] if machines else "HOST"
    return (
        f"start Ray there, `pitchpipe cluster up --hosts {','.join(hosts) or 'A,B'}{ssh}`, and write"
        f" training_service: {{platform: ray, address: {head}:6379}}"
    )


def _machines(service: Any) -> Iterator[tuple[str, str, int]]:
    """Yield host, user and port of the machines of a training service, in the form of any version of NNI."""
    machines = _field(service, "machinelist")
    for machine in machines if isinstance(machines, list | tuple) else ():
        host = _field(machine, "host") or _field(machine, "ip")
        user = _field(machine, "user") or _field(machine, "username") or ""
        port = _field(machine, "port")
        if all(isinstance(part, str) and _HOST.fullmatch(part or "-") for part in (host, user)):
            yield host, user, port if isinstance(port, int) else 22


def _field(section: Any, name: str) -> Any:
    if not isinstance(section, Mapping):
        return None
    return next((value for key, value in section.items() if isinstance(key, str) and fold(key) == name), None)
