"""Tells once when a plug-in's tuner proposes what is no point of the search space: allowed, but hardly meant."""

from __future__ import annotations

import logging
from typing import Any

__all__ = ["OutsideWatch", "is_own"]

_logger = logging.getLogger("pitchpipe.dispatcher")


class OutsideWatch:
    """Looks at proposals until one of them is outside `search_space` (its JSON form)."""

    def __init__(self, search_space: Any) -> None:
        self._json = search_space
        self._space: Any = None
        self._looks = True

    def look(self, parameters: Any) -> None:
        """Warn if parameters are no point of the space, and look no more."""
        if not self._looks:
            return
        from ..search_space import SearchSpace, SearchSpaceError  # needs numpy, which a tuner may not need

        try:
            self._space = self._space or SearchSpace.parse(self._json)
        except SearchSpaceError:
            self._looks = False  # the tuner has a language of its own
            return
        if problems := self._space.validate(parameters):
            self._looks = False
            where = ".".join(map(str, problems[0].path))
            _logger.warning(
                "The tuner proposes what is not in the search space (told once): %s%s",
                f"{where}: " if where else "",
                problems[0].message,
            )


def is_own(tuner: Any) -> bool:
    """Is this one of ours? They stay inside the space.

    >>> is_own(object())
    False
    """
    package = __name__.rpartition(".dispatcher")[0]
    return type(tuner).__module__.startswith(f"{package}.tuners.")
