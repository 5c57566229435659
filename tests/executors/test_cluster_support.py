"""The cluster that tests share."""

from __future__ import annotations

import os
import signal

import pytest

from .cluster_support import Cluster


@pytest.mark.ray
def test_cluster_ends_while_a_forked_child_holds_its_input_open() -> None:
    cluster = Cluster()
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(1)
    try:
        cluster.close()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert not os.path.exists(cluster.directory)
