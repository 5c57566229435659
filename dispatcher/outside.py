"""Warns once when a third-party tuner suggests a point outside the search space: allowed, but rarely intended."""

from __future__ import annotations

import logging
from typing import Any

_log = logging.getLogger(__name__)


class OutsideWatch:
    """Looks at proposals until one of them is outside `search_space` (its JSON form)."""

    def __init__(self, search_space: Any) -> None:
        self._json = search_space
        self._space: Any = None
        self._looks = True

    def look(self, parameters: Any) -> None:
        """Warn once if parameters are not a point of the space."""
        if not self._looks:
            return
        from ..search_space import SearchSpace, SearchSpaceError  # needs numpy, which a tuner may not need

        try:
            self._space = self._space or SearchSpace.parse(self._json)
        except SearchSpaceError:
            self._looks = False  # the tuner has its own format of search spaces
            return
        if problems := self._space.validate(parameters):
            self._looks = False
            where = ".".join(map(str, problems[0].path))
            _log.warning(
                "The tuner proposes a point outside the search space (logged once): %s%s",
                f"{where}: " if where else "",
                problems[0].message,
            )


def is_own(tuner: Any) -> bool:
    """Return whether a tuner is one of Pitchpipe's, which stay inside the space.

    >>> is_own(object())
    False
    """
    package = __name__.rpartition(".dispatcher")[0]
    return type(tuner).__module__.startswith(f"{package}.tuners.")
