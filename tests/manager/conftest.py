"""The dispatchers of this room run on threads; a test that needs a process asks for one."""

import pytest

from ..dispatcher_threads import dispatchers_on_threads


@pytest.fixture(autouse=True)
def _dispatcher(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("dispatcher_process") is None:
        dispatchers_on_threads(monkeypatch)
