"""Status words for the pages, and their tones."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ...telling import STATUS_WORDS

__all__ = ["EXPERIMENT_TONES", "STATUSES", "TRIAL_TONES", "trial_word"]

# In the order of the pages.
STATUSES = (
    *("RUNNING", "WAITING", "PAUSED"),
    *("SUCCEEDED", "EARLY_STOPPED", "FAILED", "USER_CANCELED", "SYS_CANCELED"),
)
# Tones are classes of style.css; other statuses have none.
TRIAL_TONES: Mapping[str, str] = MappingProxyType(
    {"RUNNING": "move", "SUCCEEDED": "good", "EARLY_STOPPED": "warn", "FAILED": "bad"}
)
EXPERIMENT_TONES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("RUNNING", "NO_MORE_TRIAL", "TUNER_NO_MORE_TRIAL"), "move"),
        "DONE": "good",
        "ERROR": "bad",
        "STOPPING": "warn",
        "STOPPED": "warn",
    }
)


def trial_word(status: str) -> str:
    """Return a trial's status in words.

    >>> trial_word("EARLY_STOPPED"), trial_word("SOMETHING_NEW")
    ('stopped early', 'something new')
    """
    return STATUS_WORDS.get(status, status.lower().replace("_", " "))
