"""Following a spool: bounded reads, a file that is overwritten, and the system's wake-ups."""

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pitchpipe.trial_agent.agent_events import Outbox
from pitchpipe.trial_agent.poll_sources import ExitWatch, FileWatch, Follower, PollTimers, Wake, best_watch
from pitchpipe.trial_agent.spool import SpoolReader

from .client import messages


class Followed:
    """A spool, and what a follower of it has sent."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()
        self.descriptor = os.open(path, os.O_RDONLY)
        self.outbox = Outbox()
        self.follower = Follower(self.descriptor, SpoolReader(trial="AbCdE", attempt=1), self.outbox.put_all)

    def append(self, text: str) -> None:
        with open(self.path, "a") as file:
            file.write(text)

    def sent(self) -> list[str]:
        """Return what the events hold so far: values, and messages of problems."""
        events, cursor = self.outbox.take(0)
        while len(self.outbox) > cursor:
            more, cursor = self.outbox.take(cursor)
            events += more
        return [event.get("value") or event["message"] for event in messages(events)]


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Followed]:
    followed = Followed(tmp_path / "reports-1.jsonl")
    yield followed
    os.close(followed.descriptor)


def test_growth_is_read_once(spool: Followed) -> None:
    for value in (1, 2):
        spool.append(f'{{"intermediate": {value}}}\n')
        spool.follower.read()
        spool.follower.read()
    assert spool.sent() == ["1", "2"]


def test_flood_is_read_in_bounded_steps(spool: Followed) -> None:
    spool.append('{"pad": "' + "x" * 900_000 + '", "intermediate": 1}\n')
    spool.append('{"pad": "' + "x" * 900_000 + '", "intermediate": 2}\n')
    spool.follower.read()
    assert spool.follower.behind
    assert len(spool.outbox) == 1
    spool.follower.read()
    assert not spool.follower.behind
    assert len(spool.outbox) == 2


def test_spool_overwritten_instead_of_appended_to_is_a_problem_and_is_read_on(spool: Followed) -> None:
    spool.append('{"intermediate": 0.12345}\n')
    spool.follower.read()
    spool.path.write_text('{"final": 1}\n')
    spool.follower.read_all()
    assert spool.sent() == ["0.12345", "the reports were overwritten: append with >>", "1"]


def test_line_that_is_taken_back_was_never_there(spool: Followed) -> None:
    spool.append('{"intermediate": 1}\n')
    whole = spool.path.stat().st_size
    spool.append('{"intermediate": 2')  # the disk is full
    spool.follower.read()
    os.truncate(spool.path, whole)
    spool.follower.read()
    spool.append('{"intermediate": 3}\n')
    spool.follower.read_all()
    assert spool.sent() == ["1", "3"]


def test_watch_wakes_for_the_file_it_watches_and_not_for_the_one_before(tmp_path: Path) -> None:
    watch = best_watch()
    files = [tmp_path / "one", tmp_path / "two"]
    for file in files:
        file.touch()
        watch.watch(str(file))
    watch.clear()
    assert watch.descriptor is not None
    files[0].write_text("x")
    assert select.select([watch.descriptor], [], [], 0)[0] == []
    files[1].write_text("x")
    assert select.select([watch.descriptor], [], [], 30)[0] == [watch.descriptor]
    watch.clear()
    assert select.select([watch.descriptor], [], [], 0)[0] == []
    watch.close()


def test_watch_of_a_file_deleted_meanwhile_moves_to_the_next(tmp_path: Path) -> None:
    watch = best_watch()
    for name in ("one", "two"):
        (tmp_path / name).touch()
        watch.watch(str(tmp_path / name))
        (tmp_path / name).unlink()
    watch.close()


def test_system_without_wake_ups_is_looked_at_now_and_then() -> None:
    watch = FileWatch()
    watch.watch("/")
    assert watch.descriptor is None
    assert PollTimers(watch.interval, None).timeout(None, None) == 201


def test_end_of_a_process_is_seen_with_and_without_pidfds(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        with process, ExitWatch(process) as ended:
            assert ended.descriptor is not None
            assert select.select([ended.descriptor], [], [], 0)[0] == []
            process.communicate(b"\n")
            assert select.select([ended.descriptor], [], [], 30)[0] != []
        monkeypatch.delattr(os, "pidfd_open", raising=False)


def test_wake_whose_numbers_belong_to_other_files_leaves_them_alone(tmp_path: Path) -> None:
    wake = Wake()
    with (tmp_path / "mine").open("w+b") as mine:
        mine.write(b"mine")
        mine.seek(0)
        for number in (wake.fileno(), wake.writer):
            os.dup2(mine.fileno(), number)
        wake.set()
        assert (wake.is_whole, wake.clear(), mine.read()) == (False, b"", b"mine")
    wake.close()
