"""What must be equal in all processes that use one Ray: its version, Python's, and where both lie."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import version

__all__ = ["versions_here"]


def versions_here() -> dict[str, str]:
    """Return what this process runs, by name; cheap: Ray is not imported for it."""
    return {"Ray": version("ray"), "Python": platform.python_version(), "environment": sys.prefix}
