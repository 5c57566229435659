"""What other users of the machine may see of an experiment: neither its config nor its token."""

from __future__ import annotations

import asyncio
import base64
import json
import stat
from pathlib import Path

import psutil

from pitchpipe.config import ExperimentConfig
from pitchpipe.manager.dispatcher_link.dispatcher_process import DispatcherProcess, dispatcher_environment
from pitchpipe.manager.experiment_factory import create_experiment
from pitchpipe.manager.standby import DISPATCHER_COMMAND
from pitchpipe.protocol import CommandType, encode_frame

SECRET = "hunter2"
CONFIG = ExperimentConfig.from_canonical(
    {
        "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "trialCommand": "true",
        "trialEnvironment": {"API_KEY": SECRET},
        "tuner": {"name": "Random"},
        "trainingService": {"platform": "local"},
    }
)


def test_config_is_not_on_the_dispatchers_command_line(tmp_path: Path) -> None:
    async def check() -> None:
        started = asyncio.Event()
        process = DispatcherProcess(lambda frames: started.set(), lambda code, why: None, lambda: None)
        environment = dispatcher_environment(CONFIG.canonical(), tmp_path, mode="start", log_level="info")
        given = json.loads(base64.b64decode(environment["PITCHPIPE_EXP_PARAMS"]))
        assert (given["tuner"]["name"], given.get("trialEnvironment")) == ("Random", None)
        (tmp_path / "logs").mkdir()
        await process.start(DISPATCHER_COMMAND, environment, tmp_path / "logs" / "dispatcher.out")
        process.listen()
        process.write(encode_frame(CommandType.Initialize, json.dumps(CONFIG.canonical()["searchSpace"])))
        await asyncio.wait_for(started.wait(), 30.0)  # it has read its configuration
        assert psutil.Process(process.pid).cmdline() == list(DISPATCHER_COMMAND)
        await process.terminate(10.0)

    asyncio.run(check())


def test_only_its_owner_may_look_into_an_experiment(tmp_path: Path) -> None:
    manager = create_experiment(CONFIG, directory=tmp_path / "all", experiment_id="e")
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode)
        for path in (tmp_path / "all" / "e", *(tmp_path / "all" / "e").glob("experiment.db*"))
    }
    assert modes.pop("e") == 0o700
    assert modes.keys() >= {"experiment.db", "experiment.db-wal"}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE((tmp_path / "all" / "e" / "manager.lock").stat().st_mode) == 0o600
    assert SECRET.encode() in b"".join(
        path.read_bytes() for path in (tmp_path / "all" / "e").glob("experiment.db*")
    )
    manager.store.close()
    manager.folder.disown()
