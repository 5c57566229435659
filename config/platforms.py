"""The platforms on which trials run, as the config describes them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import Field

from .sections import Section
from .values import Duration, GpuIndices, Text

__all__ = ["PLATFORMS", "LocalConfig", "RayConfig"]


class LocalConfig(Section):
    """Trials run on this machine, without Ray."""

    platform: Literal["local"] = Field(description="`local`")
    use_active_gpu: bool = Field(default=False, description="Also use GPUs on which other programs run.")
    max_trial_number_per_gpu: int = Field(
        default=1,
        ge=1,
        description="Trials that share a GPU; no effect if trials take none.",
    )
    gpu_indices: GpuIndices | None = Field(
        default=None,
        description="The GPUs to use, as nvidia-smi numbers them;"
        " all that are [visible](../use/howto/gpus.md) when not set.",
    )
    resources: dict[str, Annotated[float, Field(ge=0)]] = Field(
        default_factory=dict, description="Custom resources of this machine: name and amount."
    )
    reuse_mode: bool = Field(default=False, description="Accepted and ignored.")


class RayConfig(Section):
    """Trials run on Ray workers."""

    platform: Literal["ray"] = Field(description="`ray`")
    address: Text | None = Field(
        default=None, description="The cluster to join; a private Ray is started when not set."
    )
    idle_timeout: Duration = Field(
        default=300.0, description="How long a private Ray keeps running after its last experiment."
    )
    runtime_env: dict[str, Any] | None = Field(
        default=None, description="Ray's runtime environment, passed on unchanged."
    )
    reconnect_timeout: Duration = Field(
        default=600.0,
        description="How long to wait for a lost cluster; then the experiment stops, and can be resumed.",
    )


PLATFORMS: Mapping[str, type[Section]] = MappingProxyType({"local": LocalConfig, "ray": RayConfig})
