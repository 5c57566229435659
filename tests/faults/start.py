"""Starts an experiment of the campaign: `python -P start.py PLAN.json`, which `pitchpipe resume` can continue.

Errors become sentences, as those of `pitchpipe run`.
"""

import asyncio
import importlib.util
import json
import sys
from pathlib import Path


def load_train(path: str):  # type: ignore[no-untyped-def]
    """Return the function of trial.py, to be pickled by value."""
    import cloudpickle

    spec = importlib.util.spec_from_file_location("campaign_trial", path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules["campaign_trial"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    cloudpickle.register_pickle_by_value(module)
    return module.train


def main() -> int:
    """Make the experiment of a plan and run it to its end."""
    from pitchpipe.config import ExperimentConfig
    from pitchpipe.manager.experiment_factory import create_experiment

    plan = json.loads(Path(sys.argv[1]).read_text())
    config = ExperimentConfig.from_dict(plan["config"], needs_command=False)
    manager = create_experiment(
        config,
        directory=Path(plan["directory"]),
        experiment_id="exp",
        function=load_train(plan["trial"]) if plan["kind"] == "function" else None,
    )
    status = asyncio.run(manager.run())
    manager.store.close()
    manager.folder.disown()
    return 0 if status.value == "DONE" else 1


if __name__ == "__main__":
    import click

    from pitchpipe.cli.app import run

    sys.exit(run([], click.Command("start.py", callback=main)))
