"""A slice of the experiments on a cluster whose network fails."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .test_campaign import imported

pytestmark = [pytest.mark.slow, pytest.mark.ray]


def test_experiment_on_a_cluster_that_was_cut_in_two_loses_nothing(tmp_path: Path) -> None:
    partitions = imported("partitions")
    if why := partitions.can_partition():
        pytest.skip(f"no network of its own can be made here: {why}")
    folder = partitions.short_folder()
    try:
        with partitions.Cluster(folder) as cluster:
            outcome = partitions.run_case(cluster, "cut-10", "function", 1, tmp_path)
    finally:
        shutil.rmtree(folder)
    assert outcome.findings.problems == []
    assert outcome.findings.acknowledged >= 6 * 61
