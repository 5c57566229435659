"""One thread of BLAS inside the block, and the caller's number of threads again after it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from threadpoolctl import OpenBLASController, threadpool_info, threadpool_limits

from pitchpipe.dispatcher import InlineDispatcher
from pitchpipe.dispatcher.inline import OneThread
from pitchpipe.protocol import CommandType


def threads() -> set[int]:
    """Return the numbers of threads that BLAS libraries would use."""
    assert np.linalg.norm(np.eye(2)) > 0
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    limits = threadpool_limits(2, "blas")
    OpenBLASController.clear_controlling_thread()  # or no other thread could change the number
    assert threads() == {2}
    yield
    limits.restore_original_limits()


def test_block_has_one_thread_and_an_error_restores_the_others() -> None:
    one_thread = OneThread()

    def fail() -> None:
        with one_thread():
            assert threads() == {1}
            with one_thread():
                assert threads() == {1}
            raise ValueError("in the block")

    with pytest.raises(ValueError, match="in the block"):
        fail()
    assert threads() == {2}


def test_setting_of_the_user_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "4")
    with OneThread()():
        assert threads() == {2}


def test_blocks_that_overlap_restore_the_number_of_before() -> None:
    """The second, which is left last, must not restore the one thread that it found."""
    is_inside, may_leave = threading.Event(), threading.Event()

    def second() -> None:
        with OneThread()():
            is_inside.set()
            assert may_leave.wait(30)

    running = threading.Thread(target=second)
    with OneThread()():
        running.start()
        assert is_inside.wait(30)
        assert threads() == {1}
    may_leave.set()
    running.join(30)
    assert threads() == {2}


def test_tuner_in_the_callers_process_has_one_thread(plugin_file) -> None:
    source = (
        "from threadpoolctl import threadpool_info\n"
        "from pitchpipe.tuners import Tuner\n"
        "class Counting(Tuner):\n"
        "    def update_search_space(self, space): pass\n"
        "    def generate_parameters(self, number, **kwargs):\n"
        "        return {'x': max(one['num_threads'] for one in threadpool_info() if one['user_api'] == 'blas')}\n"
    )
    hosted = InlineDispatcher({"tuner": plugin_file("counting.Counting", source)})
    hosted.handle(CommandType.Initialize, "{}")
    (job,) = hosted.handle(CommandType.RequestTrialJobs, "1")
    assert json.loads(job.payload)["parameters"] == {"x": 1}
    assert threads() == {2}
