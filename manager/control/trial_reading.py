"""What a running trial has printed so far: its manager asks the agent, which may be on another machine."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from .connection import ControlError, ask_manager

if TYPE_CHECKING:
    from pathlib import Path

    from ..manager import Manager

__all__ = ["read_part", "read_running"]

_MOST = 48 * 1024


async def read_part(manager: Manager, request: dict[str, Any]) -> dict[str, Any]:
    """Return a part of a file of a running trial: `{"data": base64}`, empty after its end.

    The request names the `trial`, the `name` of a file in its folder and an `offset` in bytes. Raise `ControlError` if
    it cannot be read.
    """
    runner, name = manager.runner, str(request.get("name", ""))
    trial_id, offset = str(request.get("trial")), request.get("offset", 0)
    if not name or "/" in name or not isinstance(offset, int) or offset < 0:
        raise ControlError("name a file of the trial's folder, and an offset in bytes", "invalid")
    orders = [] if runner is None else [each for each in runner.orders() if each.trial_id == trial_id]
    if not orders:
        raise ControlError(f"trial {trial_id} does not run")
    try:
        data = await manager.executor.read_file(orders[0], name, offset, _MOST)
    except OSError as error:
        raise ControlError(f"{name} of trial {trial_id} cannot be read: {error}") from error
    return {"data": base64.b64encode(data).decode()}


def read_running(folder: Path, trial_id: str, name: str, offset: int) -> bytes:
    """Return a part of a file of a running trial, from `offset` on; nothing if its manager cannot read it."""
    request = {"op": "read_file", "trial": trial_id, "name": name, "offset": offset}
    try:
        return base64.b64decode(ask_manager(folder, request)["data"])
    except ControlError:
        return b""
