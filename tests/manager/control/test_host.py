"""Parts of what a running trial has printed, asked of its manager."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pitchpipe.manager.control.connection import ControlError
from pitchpipe.manager.control.host import read_part
from pitchpipe.manager.manager import Manager
from pitchpipe.runner.effects import AttemptOrder

ORDER = AttemptOrder(trial_id="Xy3fA", attempt=1, sequence_id=0, record="{}", slot=0, agent="0-0")


class Executor:
    async def read_file(self, order: AttemptOrder, name: str, offset: int, limit: int) -> bytes:
        if name == "core":
            raise PermissionError("not yours")
        return f"{order.trial_id} {name}".encode()[offset : offset + limit]


MANAGER = SimpleNamespace(executor=Executor(), runner=SimpleNamespace(orders=lambda: [ORDER]))


def part(**request: Any) -> dict[str, Any]:
    return asyncio.run(read_part(cast(Manager, MANAGER), request))


def test_part_of_a_file_is_returned() -> None:
    assert part(trial="Xy3fA", name="stdout", offset=6) == {"data": "c3Rkb3V0"}


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"trial": "other", "name": "stdout"}, "trial other does not run"),
        ({"trial": "Xy3fA", "name": "../../experiment.db"}, "name a file of the trial's folder"),
        ({"trial": "Xy3fA"}, "name a file"),
        ({"trial": "Xy3fA", "name": "stdout", "offset": -1}, "an offset in bytes"),
        ({"trial": "Xy3fA", "name": "core"}, "core of trial Xy3fA cannot be read: not yours"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(request_: dict[str, Any], words: str) -> None:
    with pytest.raises(ControlError, match=words):
        part(**request_)
