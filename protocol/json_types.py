"""What JSON values are called whose fields users choose, or another program: annotations, nothing that runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""A value as JSON holds it, NaN and infinities included."""

JsonObject: TypeAlias = dict[str, Any]
"""An object that leaves the process as it is: a reply, a row of `--json`, a saved state."""

Parameters: TypeAlias = dict[str, Any]
"""The parameters of one trial: a value for each name, or for a nested choice an object with its option in `_name`."""

Config: TypeAlias = Mapping[str, Any]
"""The configuration of an experiment or a section of it, checked, with the names that `experiment.json` has."""
