"""Hides passwords and keys in what is passed on: reports, and the configs that readers see."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_HIDDEN = "(hidden)"
_WORD = r"(?:password|passwd|secret|token|credential|api[-_]?key|access[-_]?key|private[-_]?key)"
# Names have a maximal length and begin at a word boundary, so that long lines are scanned once.
_NAME = rf"(?<![\w.-])[\w.-]{{0,80}}{_WORD}[\w.-]{{0,80}}"
_SECRET_NAME = re.compile(rf"[\w.-]*{_WORD}[\w.-]*", re.IGNORECASE)
# NAME: value, NAME=value, "NAME": "value", --name value
_ASSIGNED = re.compile(
    rf"""({_NAME}["']?\s*[:=]\s*|(?<![\w.-])--[\w.-]{{0,80}}{_WORD}[\w.-]{{0,80}}\s+)("[^"]*"|'[^']*'|[^\s,}}]+)""",
    re.IGNORECASE,
)
_IN_ADDRESS = re.compile(r"((?<!\w)\w{1,20}://[^\s/:@]{0,200}:)[^\s/@]{1,500}@")


def hidden(text: str) -> str:
    """Return a text without values that are named like secrets, and without passwords in addresses.

    >>> print(hidden('API_KEY: "abc" lr: 0.1 s3://me:pw@host/x --token=t1'))
    API_KEY: (hidden) lr: 0.1 s3://me:(hidden)@host/x --token=(hidden)
    """
    return _IN_ADDRESS.sub(rf"\1{_HIDDEN}@", _ASSIGNED.sub(rf"\1{_HIDDEN}", text))


def hidden_values(value: Any) -> Any:
    """Return JSON without values that are named like secrets.

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
