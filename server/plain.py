"""Values of the store as values that every JSON reader takes."""

from __future__ import annotations

import json
import math
from typing import Any

__all__ = ["parsed", "plain"]


def plain(value: Any) -> Any:
    """A value in which everything can be written as JSON: NaN and infinities become None.

    >>> plain({"default": float("nan"), "curve": [1.0, float("inf")]})
    {'default': None, 'curve': [1.0, None]}
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def parsed(text: str | None) -> Any:
    """JSON text of the store as a plain value; None stays None."""
    return None if text is None else plain(json.loads(text))
