"""The trial command: placeholders that are probably mistyped."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .models import ConfigFields
from .problems import did_you_mean

__all__ = ["warnings_about_command"]

_PLACEHOLDER = re.compile(r"(?<!\$)\{([\w-]+)\}")


def warnings_about_command(config: ConfigFields) -> Iterator[str]:
    """Yield a warning for each `{NAME}` in the command that is no parameter, but is written like one."""
    known = ["args", *(config.search_space or ())]
    for name in _PLACEHOLDER.findall(config.trial_command or ""):
        if name not in known and (hint := did_you_mean(name, known)):
            yield f"{{{name}}} in trial_command is no parameter and stays as it is: {hint}"
