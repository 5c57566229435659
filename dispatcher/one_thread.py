"""One thread of BLAS while plug-ins compute in the user's own process.

Suggestions are small sums: threads that wait for each other, on a busy machine above all, cost more than they save. A
dispatcher process is started with this setting; here the libraries are loaded already, and others use them, too.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

_USERS_SETTING = "OPENBLAS_NUM_THREADS"
# The libraries have one number of threads: of two that overlap, the second would restore that of the first.
_LIMITING = threading.Lock()


class OneThread:
    """Limits BLAS to one thread inside a block, unless the user has set `OPENBLAS_NUM_THREADS`.

    While another thread is inside such a block, the number is left to that one.

    >>> one_thread = OneThread()
    >>> with one_thread():
    ...     total = sum(range(4))
    """

    def __init__(self) -> None:
        self._libraries: ThreadpoolController | None = None  # finding them takes milliseconds
        self._have_scipys = False

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Return the block."""
        if _USERS_SETTING in os.environ or not _LIMITING.acquire(blocking=False):
            yield
            return
        try:
            with self._found().limit(limits=1, user_api="blas"):
                yield
        finally:
            _LIMITING.release()

    def _found(self) -> ThreadpoolController:
        """Return the loaded libraries; SciPy has a BLAS of its own, and is loaded late."""
        has_scipys = "scipy.linalg" in sys.modules
        if self._libraries is None or has_scipys != self._have_scipys:
            from threadpoolctl import ThreadpoolController

            self._libraries, self._have_scipys = ThreadpoolController(), has_scipys
        return self._libraries
