"""Experiments on a cluster that loses nodes, its head, or itself: nothing is lost, nothing counts twice."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.config import ExperimentConfig
from pitchpipe.executors.errors import ExecutorError
from pitchpipe.executors.ray.ray_executor import RayTrialExecutor
from pitchpipe.manager.experiment_factory import create_experiment, resume_experiment
from pitchpipe.manager.manager import Manager
from pitchpipe.runner.experiment_state import ExperimentStatus
from pitchpipe.store.folder import ExperimentFolder

from ..cluster_support import HEAD, Cluster
from ..ray_support import eventually

pytestmark = pytest.mark.ray
STEPS = 10
PATIENCE = 60.0


def climb(parameters: dict[str, Any]) -> float:
    """Report steps with a checkpoint after each; halfway wait for a file, unless started from a checkpoint."""
    import os
    import time
    from pathlib import Path

    from pitchpipe import get_checkpoint, get_sequence_id, report_intermediate_result, save_checkpoint

    folder, saved = Path(parameters["folder"]), get_checkpoint()
    first = saved.to_dict()["next"] if saved else 0
    with (folder / f"begun-{get_sequence_id()}").open("a") as file:
        file.write(f"{os.environ.get('NODE', 'head')} {first}\n")
    for step in range(first, 10):
        if step == 5:
            (folder / f"half-{os.environ.get('NODE', 'head')}-{get_sequence_id()}").touch()
        report_intermediate_result(step)
        save_checkpoint({"next": step + 1})
        while step == 5 and not saved and not (folder / "go").exists():
            time.sleep(0.01)
    return 1.0


climb.__module__ = "__main__"  # pickled by value


class Lab:
    """One experiment of three trials, two or three at a time."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self.folder, self.cluster = folder, cluster
        self.directory = folder / "experiments"

    def create(self, concurrency: int, **options: Any) -> Manager:
        data = {
            "search_space": {
                "folder": {"_type": "choice", "_value": [str(self.folder)]},
                "x": {"_type": "uniform", "_value": [0, 1]},
            },
            "trial_concurrency": concurrency,
            "max_trial_number": 3,
            "trial_cpu_number": 1,
            "tuner": {"name": "Random"},
            "training_service": {"platform": "ray", "address": self.cluster.address},
        }
        config = ExperimentConfig.from_dict(data, needs_command=False)
        executor = RayTrialExecutor(self.cluster.address, **options)
        return create_experiment(
            config, directory=self.directory, experiment_id="exp", function=climb, executor=executor
        )

    def resume(self) -> Manager:
        executor = RayTrialExecutor(self.cluster.address)
        return resume_experiment(ExperimentFolder.find(self.directory, "exp"), executor=executor)

    def are_halfway(self, manager: Manager, **trials: int) -> bool:
        """Return whether so many trials wait on each node, with the checkpoint of the step before committed."""
        here = {node: len(list(self.folder.glob(f"half-{node}-*"))) for node in trials}
        runner = manager.runner
        saved = [] if runner is None else [t for t in runner.live.values() if t.checkpoint_sequence == 6]
        return here == trials and len(saved) == sum(trials.values())

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        db = sqlite3.connect(f"file:{self.directory / 'exp' / 'experiment.db'}?mode=ro", uri=True)
        try:
            return db.execute(sql).fetchall()
        finally:
            db.close()

    def retried(self) -> Counter[str]:
        """Return how many attempts were retried, by kind of failure."""
        return Counter(kind for (kind,) in self.query("SELECT kind FROM attempts WHERE outcome = 'retried'"))

    def check_all_is_there_once(self) -> None:
        counted = self.query(
            "SELECT sequence_id, kind, sequence FROM metrics WHERE NOT superseded ORDER BY 1, 2, 3"
        )
        expected = [(trial, "FINAL", 0) for trial in range(3)]
        expected += [(trial, "PERIODICAL", step) for trial in range(3) for step in range(STEPS)]
        assert counted == sorted(expected)
        assert self.query("SELECT DISTINCT status FROM trials") == [("SUCCEEDED",)]

    def starts(self, trial: int) -> list[tuple[str, int]]:
        """Return on which node and at which step the attempts of a trial began."""
        lines = (self.folder / f"begun-{trial}").read_text().splitlines()
        return [(node, int(step)) for node, step in (line.split() for line in lines)]


@pytest.fixture
def lab(tmp_path: Path, cluster: Cluster) -> Iterator[Lab]:
    yield Lab(tmp_path, cluster)
    cluster.clear()


def run(manager: Manager, when: Callable[[], bool], then: Callable[[], Any]) -> ExperimentStatus:
    """Run an experiment; at the first turn after which `when` holds, do something, in a thread."""
    done = asyncio.Event()

    def look() -> None:
        if not done.is_set() and when():
            done.set()

    async def act() -> None:
        await done.wait()
        await asyncio.to_thread(then)

    async def both() -> ExperimentStatus:
        manager.watch(look)
        async with asyncio.timeout(PATIENCE):
            acting = asyncio.ensure_future(act())
            try:
                return await manager.run()
            finally:
                if done.is_set():
                    await acting
                acting.cancel()

    try:
        return asyncio.run(both())
    finally:
        manager.store.close()
        manager.folder.disown()


def test_trial_of_a_node_that_dies_continues_elsewhere_from_its_checkpoint(
    lab: Lab, cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Before that, the cluster does not answer for a while; nothing is lost when it answers again."""
    cluster.add("doomed", CPU=1, environment={"NODE": "doomed"})

    def be_away_for_a_while_and_lose_the_node() -> None:
        cluster.ask("freeze", frozen=True)
        eventually(lambda: "does not answer" in caplog.text)
        cluster.ask("freeze", frozen=False)
        eventually(lambda: "answers again" in caplog.text)
        assert lab.retried() == {}
        cluster.kill("doomed")
        (lab.folder / "go").touch()

    manager = lab.create(concurrency=3)
    status = run(
        manager, lambda: lab.are_halfway(manager, doomed=1, head=2), be_away_for_a_while_and_lose_the_node
    )
    assert status is ExperimentStatus.DONE
    lab.check_all_is_there_once()
    (retried,) = lab.query("SELECT sequence_id, kind, reason FROM attempts WHERE outcome = 'retried'")
    assert retried[1:] == ("INFRA", "its agent's node is gone")
    assert lab.starts(retried[0]) == [("doomed", 0), ("head", 6)]


def test_experiment_waits_for_a_cluster_that_is_gone_and_continues_in_the_next(
    lab: Lab, cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.add("left", CPU=1, environment={"NODE": "left"})

    def restart_the_head() -> None:
        cluster.kill("head")
        eventually(lambda: "does not answer" in caplog.text)
        assert ["does not answer" in warning for warning in manager.warnings()] == [True]
        cluster.ask("head", resources=HEAD)
        # Not before all are lost: the trial on the other node still runs, and its result would count.
        eventually(lambda: lab.retried() == {"INFRA": 3})
        cluster.kill("left")  # its raylet would keep asking the new head, at the cost of more than a CPU
        (lab.folder / "go").touch()

    manager = lab.create(concurrency=3)
    status = run(manager, lambda: lab.are_halfway(manager, left=1, head=2), restart_the_head)
    assert status is ExperimentStatus.DONE
    lab.check_all_is_there_once()
    assert "what ran in it is run again" in caplog.text
    assert manager.warnings() == []
    assert lab.retried() == {"INFRA": 3}
    assert all(lab.starts(trial)[1:] == [("head", 6)] for trial in range(3))


def test_experiment_on_a_cluster_that_stays_away_ends_in_words_and_is_resumed(
    lab: Lab, cluster: Cluster
) -> None:
    manager = lab.create(concurrency=2, reconnect_timeout=1.0)
    with pytest.raises(
        ExecutorError, match=f"{cluster.address} has been gone for 1 s: start it again and resume"
    ):
        run(manager, lambda: lab.are_halfway(manager, head=2), lambda: cluster.kill("head"))
    cluster.ask("head", resources=HEAD)
    (lab.folder / "go").touch()
    assert run(lab.resume(), lambda: False, lambda: None) is ExperimentStatus.DONE
    lab.check_all_is_there_once()
    assert [lab.starts(trial)[-1] for trial in range(3)] == [("head", 6), ("head", 6), ("head", 0)]
