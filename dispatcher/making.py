"""A dispatcher from the settings of an experiment."""

from __future__ import annotations

import logging

from .channel import Channel
from .dispatcher_settings import Settings
from .msg_dispatcher import MsgDispatcher
from .msg_dispatcher_base import MsgDispatcherBase
from .plugin_loading import load_plugin
from .stop_rule import StopRule

_log = logging.getLogger(__name__)


def made_from(settings: Settings, channel: Channel) -> MsgDispatcherBase:
    """Return the dispatcher with the plug-ins of an experiment; raise `PluginNotLoaded`."""
    tuner = load_plugin("tuner", settings.tuner, settings.injected, settings.objectives, settings.priors)
    if isinstance(tuner, MsgDispatcherBase):  # an advisor: tuner, assessor and dispatcher in one
        if settings.assessor is not None:
            _log.error("The assessor is ignored: %s judges trials itself", type(tuner).__name__)
        tuner.connect(channel, settings.protocol)
        return tuner
    assessor = None
    if settings.assessor is not None:
        assessor = load_plugin("assessor", settings.assessor, settings.injected, settings.objectives)
    rule = None
    if settings.stop_when is not None:
        rule = StopRule(settings.stop_when, settings.objectives, has_repeats=settings.has_repeats)
    return MsgDispatcher(
        tuner,
        assessor,
        channel,
        constraints=settings.constraints,
        objective=settings.objective,
        stop_rule=rule,
        protocol=settings.protocol,
        threads=settings.threads,
    )
