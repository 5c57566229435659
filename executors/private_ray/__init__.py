"""The private Ray: a supervisor process holds it, managers lease it."""

from __future__ import annotations

from .lease import RayLease, acquire, ray_status, stop_ray
from .places import TEMP_PREFIX
from .ray_process import named_actors, take_back_signals

__all__ = [
    "TEMP_PREFIX",
    "RayLease",
    "acquire",
    "named_actors",
    "ray_status",
    "stop_ray",
    "take_back_signals",
]
