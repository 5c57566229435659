"""The wait for disk space: what does not fit is tried again, and everything else waits."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pitchpipe.manager.disk_space import DiskSpaceGuard, check_space
from pitchpipe.runner import AttemptEnded, BadReport, Event, StopRequested
from pitchpipe.store import NotWritableError

NO_SPACE = AttemptEnded(1.0, "AbCdE", 1, error="OSError: [Errno 28] No space left on device")
UNSAVED = BadReport(1.0, "AbCdE", 1, "the checkpoint does not count: No space left on device", infra=True)


class Disk:
    """A disk that is full at first, and the guard that waits for it."""

    def __init__(self, folder: Path, failures: int) -> None:
        self.log: list[str] = []
        self.free = asyncio.Event()
        self.failures = failures
        self.guard = DiskSpaceGuard(folder, lambda act: act(), self.on_space)

    def on_space(self) -> None:
        self.log.append("space")
        self.free.set()

    def write(self) -> None:
        self.failures -= 1
        self.log.append("full" if self.failures >= 0 else "written")
        if self.failures >= 0:
            raise NotWritableError("the disk is full")

    def then(self) -> None:
        self.log.append("done")


async def test_what_can_be_written_is_not_waited_for(tmp_path: Path) -> None:
    disk = Disk(tmp_path, 0)
    disk.guard.attempt(disk.write, disk.then)
    disk.guard.demand()
    assert not disk.guard.is_awaited
    assert disk.guard.warnings() == []
    assert disk.log == ["written", "done"]


async def test_what_does_not_fit_is_tried_until_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pitchpipe.manager.disk_space._TRY_AGAIN", 0.01)
    disk = Disk(tmp_path, 2)
    disk.guard.attempt(disk.write, disk.then)
    await asyncio.wait_for(disk.free.wait(), 30)
    assert disk.log == ["full", "full", "written", "done", "space"]
    assert disk.guard.warnings() == []


async def test_everything_else_waits_with_the_reason(tmp_path: Path) -> None:
    disk = Disk(tmp_path, 1)
    disk.guard.attempt(disk.write, disk.then)
    assert disk.guard.is_awaited_by([])
    assert disk.guard.warnings() == ["the disk is full: the experiment waits for room"]
    with pytest.raises(NotWritableError, match="the disk is full"):
        disk.guard.demand()
    assert disk.log == ["full"]


async def test_end_of_the_experiment_does_not_wait(tmp_path: Path) -> None:
    disk = Disk(tmp_path, 1)
    assert not disk.guard.is_awaited_by([StopRequested(1.0, "by the user")])
    disk.guard.attempt(disk.write)
    with pytest.raises(NotWritableError):
        disk.guard.is_awaited_by([StopRequested(1.0, "by the user")])


@pytest.mark.parametrize("event", [NO_SPACE, UNSAVED])
@pytest.mark.parametrize("is_full", [False, True])
async def test_trial_that_found_no_space_makes_the_experiment_look(
    is_full: bool, event: Event, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def disk_error(folder: Path) -> OSError | None:
        assert folder == tmp_path
        return OSError(28, "No space left on device") if is_full else None

    monkeypatch.setattr("pitchpipe.manager.disk_space.disk_error", disk_error)
    assert Disk(tmp_path, 0).guard.is_awaited_by([event]) is is_full


def test_folder_with_space_passes_the_check(tmp_path: Path) -> None:
    check_space(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("failures", "aftermath"), [(1, 10.0), (1, -1.0), (0, 10.0)])
async def test_failure_on_a_full_disk_or_soon_after_is_explained(
    failures: int, aftermath: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pitchpipe.manager.disk_space._AFTERMATH", aftermath)
    ends = [AttemptEnded(1.0, "AbCdE", n, exit_code=1, error=error) for n, error in ((1, None), (2, "later"))]
    ends += [AttemptEnded(1.0, "FgHiJ", 1, exit_code=1, error="ValueError"), AttemptEnded(1.0, "KlMnO", 1)]
    disk = Disk(tmp_path, failures)
    disk.guard.attempt(disk.write)
    for end in ends:
        disk.guard.explain(end)
    full = "OSError: No space left on device"
    if failures and aftermath > 0:
        assert [end.error for end in ends] == [full, f"later\n{full}", f"ValueError\n{full}", None]
    else:
        assert [end.error for end in ends] == [None, "later", "ValueError", None]
