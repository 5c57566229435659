"""The private Ray: a supervisor process holds it, managers lease it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol import lazy_names

if TYPE_CHECKING:
    from .lease import RayLease, acquire, ray_status, stop_ray
    from .ray_process import named_actors, take_back_signals
    from .supervisor_files import TEMP_PREFIX, remove_session, session_processes, versions_here
    from .totals import limits_of_this_machine, most_of_this_machine

_HOMES = {
    ".lease": "RayLease acquire ray_status stop_ray",
    ".supervisor_files": "TEMP_PREFIX remove_session session_processes versions_here",
    ".ray_process": "named_actors take_back_signals",
    ".totals": "limits_of_this_machine most_of_this_machine",
}

__all__ = [
    "TEMP_PREFIX",
    "RayLease",
    "acquire",
    "limits_of_this_machine",
    "most_of_this_machine",
    "named_actors",
    "ray_status",
    "remove_session",
    "session_processes",
    "stop_ray",
    "take_back_signals",
    "versions_here",
]

if not TYPE_CHECKING:  # a type checker must see which names there are
    __getattr__ = lazy_names(__name__, _HOMES)
