"""The sweeper in the namespace `hydra_plugins`, whose modules Hydra imports to find plug-ins."""

from __future__ import annotations

from hydra.core.config_store import ConfigStore  # pyright: ignore[reportMissingImports]

from pitchpipe.integrations import hydra as adapter

__all__ = ["PitchpipeSweeper"]


class PitchpipeSweeper(adapter.PitchpipeSweeper):
    """The sweeper. Hydra accepts only classes that are defined in this namespace."""


ConfigStore.instance().store(
    group="hydra/sweeper", name="pitchpipe", node=adapter.SweeperOptions, provider="pitchpipe"
)
