"""Reports are handed on: what looks like a password or a key is not printed in them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["hidden", "hidden_values"]

_HIDDEN = "(hidden)"
_WORD = r"(?:password|passwd|secret|token|credential|api[-_]?key|access[-_]?key|private[-_]?key)"
# Names are bounded and begin at the border of a word, so that long lines are gone through once.
_NAME = rf"(?<![\w.-])[\w.-]{{0,80}}{_WORD}[\w.-]{{0,80}}"
_SECRET_NAME = re.compile(rf"[\w.-]*{_WORD}[\w.-]*", re.IGNORECASE)
# NAME: value, NAME=value, "NAME": "value", --name value
_ASSIGNED = re.compile(
    rf"""({_NAME}["']?\s*[:=]\s*|(?<![\w.-])--[\w.-]{{0,80}}{_WORD}[\w.-]{{0,80}}\s+)("[^"]*"|'[^']*'|[^\s,}}]+)""",
    re.IGNORECASE,
)
_IN_ADDRESS = re.compile(r"((?<!\w)\w{1,20}://[^\s/:@]{0,200}:)[^\s/@]{1,500}@")


def hidden(text: str) -> str:
    """A text without the values of what is named like a secret, and without passwords in addresses.

    >>> print(hidden('API_KEY: "abc" lr: 0.1 s3://me:pw@host/x --token=t1'))
    API_KEY: (hidden) lr: 0.1 s3://me:(hidden)@host/x --token=(hidden)
    """
    return _IN_ADDRESS.sub(rf"\1{_HIDDEN}@", _ASSIGNED.sub(rf"\1{_HIDDEN}", text))


def hidden_values(value: Any) -> Any:
    """JSON without the values of what is named like a secret.

    >>> hidden_values({"trialEnvironment": {"WANDB_API_KEY": "abc", "N": "2"}, "urls": ["http://a:b@c"]})
    {'trialEnvironment': {'WANDB_API_KEY': '(hidden)', 'N': '2'}, 'urls': ['http://a:(hidden)@c']}
    """
    if isinstance(value, Mapping):
        return {
            key: _HIDDEN
            if _SECRET_NAME.fullmatch(str(key)) and isinstance(inner, str)
            else hidden_values(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [hidden_values(inner) for inner in value]
    return hidden(value) if isinstance(value, str) else value
