"""From an experiment's configuration and the environment to its dispatcher."""

from __future__ import annotations

import base64
import binascii
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from ..protocol import PROTOCOL_ENVIRONMENT, Config, main_objective, objectives_of
from .channel import Channel
from .msg_dispatcher import MsgDispatcher
from .msg_dispatcher_base import MsgDispatcherBase
from .plugin import PluginChoice, SharedArguments, load_plugin
from .stop_rule import StopRule

_POOL_THREADS = 4
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatcherSettings:
    """The parts of an experiment's configuration (camelCase JSON) and of the environment that matter here."""

    tuner: PluginChoice
    assessor: PluginChoice | None
    constraints: tuple[str, ...]
    objectives: tuple[Config, ...]  # as in the configuration, for plug-ins that take them
    objective: str  # the name of the main objective, which other plug-ins optimise
    priors: Config  # as in the configuration
    stop_when: Config | None  # the same
    has_repeats: bool
    shared: SharedArguments
    threads: int
    protocol: int | None
    resume: bool
    synced: bool

    @classmethod
    def read(cls, config: Config, environment: Mapping[str, str]) -> DispatcherSettings:
        """Return the settings; raise ValueError for a configuration without a tuner.

        >>> settings = DispatcherSettings.read({"tuner": {"name": "TPE"}, "seed": 1}, {"PITCHPIPE_PROTOCOL": "1"})
        >>> settings.protocol, settings.tuner.name, settings.shared.seed
        (1, 'TPE', 1)
        """
        section = config.get("advisor") or config.get("tuner")
        if not section:
            raise ValueError("the configuration has no tuner")
        tuner, assessor = PluginChoice.of("tuner", section), config.get("assessor")
        objectives = tuple(config.get("objectives") or ())
        main = main_objective(objectives_of(objectives))
        announced = environment.get(PROTOCOL_ENVIRONMENT, "")
        return cls(
            tuner=tuner,
            assessor=PluginChoice.of("assessor", assessor) if assessor else None,
            constraints=tuple(config.get("constraints") or ()),
            objectives=objectives,
            objective=main.name,
            priors=config.get("priors") or {},
            stop_when=config.get("stopWhen"),
            has_repeats=(config.get("repeats") or {}).get("count", 1) > 1,
            shared=SharedArguments(
                optimize_mode=main.direction if objectives else None,
                seed=config.get("seed"),
                all_checkpoint_dir=_nnis_pbt_folder(tuner, environment),
            ),
            threads=_POOL_THREADS if (config.get("deprecated") or {}).get("multiThread") else 0,
            protocol=int(announced) if announced.isdecimal() else None,
            resume=environment.get("NNI_MODE") == "resume",
            synced=config.get("durability") == "power",
        )


def _nnis_pbt_folder(tuner: PluginChoice, environment: Mapping[str, str]) -> str | None:
    """Return the folder in which NNI's scripts expect the checkpoints of PBT; None under Pitchpipe's name of it."""
    is_nnis = tuner.name.lower() == "pbttuner" and "interval" not in tuner.class_args
    return environment.get("NNI_CHECKPOINT_DIRECTORY") if is_nnis else None


def dispatcher_from(settings: DispatcherSettings, channel: Channel) -> MsgDispatcherBase:
    """Return the dispatcher with the plug-ins of an experiment; raise `PluginNotLoaded`."""
    tuner = load_plugin(settings.tuner, settings.shared, settings.objectives, settings.priors)
    if isinstance(tuner, MsgDispatcherBase):  # an advisor: tuner, assessor and dispatcher in one
        if settings.assessor is not None:
            _log.error("The assessor is ignored: %s judges trials itself", type(tuner).__name__)
        tuner.connect(channel, settings.protocol)
        return tuner
    assessor = None
    if settings.assessor is not None:
        assessor = load_plugin(settings.assessor, settings.shared, settings.objectives)
    stop_rule = None
    if settings.stop_when is not None:
        stop_rule = StopRule(settings.stop_when, settings.objectives, has_repeats=settings.has_repeats)
    return MsgDispatcher(
        tuner,
        assessor,
        channel,
        constraints=settings.constraints,
        objective=settings.objective,
        stop_rule=stop_rule,
        protocol=settings.protocol,
        threads=settings.threads,
    )


def decode_exp_params(text: str) -> Config:
    """Return the configuration in an argument of `--exp_params`; raise ValueError for anything else.

    >>> decode_exp_params("eyJzZWVkIjogMX0=")
    {'seed': 1}
    """
    try:
        config = json.loads(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"--exp_params is not JSON in base64: {error}") from error
    if not isinstance(config, dict):
        raise ValueError("--exp_params is not a JSON object")
    return config
