"""The private Ray: a supervisor process holds it, managers lease it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol import lazy_names

if TYPE_CHECKING:
    from .head import limits_of_this_machine, most_of_this_machine, named_actors, take_back_signals
    from .lease import RayLease, acquire, ray_status, stop_ray
    from .supervisor_files import (
        TEMP_PREFIX,
        RayStatus,
        StartingRay,
        remove_session,
        session_processes,
        versions_here,
    )
else:
    __getattr__ = lazy_names(__name__, __file__)
