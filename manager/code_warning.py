"""The warning that trials have begun to run other code than those before them."""

from __future__ import annotations

import logging
from pathlib import Path

from ..executors import in_thread_or_here
from ..store import StoreError

_log = logging.getLogger(__name__)


class CodeWarning:
    """Logs each change once; the notes of the experiment keep it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._logged = ""

    async def log(self) -> None:
        """Read the experiment, and log a change that was not logged before."""
        try:
            note = await in_thread_or_here(self._read)
        except StoreError as error:  # only the warning depends on it
            _log.info("whether the code changed cannot be read: %s", error)
            return
        if note and note != self._logged:
            _log.warning("%s", note)
        self._logged = note

    def _read(self) -> str:
        from ..store.reading import ExperimentView  # few experiments need this
        from ..telling import code_note

        with ExperimentView(self._folder) as view:
            return code_note(view.code_versions())
