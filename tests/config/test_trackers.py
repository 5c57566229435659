"""The trackers of a config: what is wrong with them is said before anything starts."""

import sys
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

import pytest

from pitchpipe.config import ConfigError, ExperimentConfig, tracker_classes, with_plugins_checked

ADAPTER = "pitchpipe.integrations.mlflow"


def config_with(trackers: Any) -> ExperimentConfig:
    data = {"search_space": {}, "trial_command": "true", "tuner": "Random", "trackers": trackers}
    return ExperimentConfig.from_dict(data)


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> type:
    class MLflowCallback:
        def __init__(self, tracking_uri: str | None = None) -> None:
            self.tracking_uri = tracking_uri

    module = ModuleType(ADAPTER)
    monkeypatch.setattr(module, "MLflowCallback", MLflowCallback, raising=False)
    monkeypatch.setitem(sys.modules, ADAPTER, module)
    return MLflowCallback


def test_tracker_is_found_by_its_name(adapter: type) -> None:
    config = ExperimentConfig.from_canonical(config_with({"mlflow": {"tracking_uri": "x"}}).canonical())
    assert tracker_classes(config) == {"mlflow": adapter}
    assert config.trackers == {"mlflow": {"tracking_uri": "x"}}


def test_every_tracker_of_a_config_is_registered() -> None:
    names = {entry.name for entry in entry_points(group="pitchpipe.trackers")}
    assert names == {"mlflow", "tensorboard", "wandb"}
    config_with({name: {} for name in names})


def test_library_that_is_missing_is_a_problem_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    monkeypatch.delitem(sys.modules, ADAPTER, raising=False)
    config = config_with({"mlflow": {}})
    for check in (with_plugins_checked, tracker_classes):
        with pytest.raises(ConfigError) as raised:
            check(config)
        (problem,) = raised.value.problems
        assert problem.path == ("trackers", "mlflow")
        assert 'mlflow, which is not installed: pip install --upgrade "pitchpipe[mlflow]"' in problem.message


def test_unknown_option_is_a_problem(adapter: type) -> None:
    with pytest.raises(ConfigError, match=r"trackers\.mlflow: .*unexpected keyword argument 'uri'"):
        with_plugins_checked(config_with({"mlflow": {"uri": "x"}}))


def test_unknown_tracker_is_a_problem() -> None:
    with pytest.raises(ConfigError, match="trackers"):
        config_with({"comet": {}})
