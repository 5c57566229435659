"""One thread of BLAS while plug-ins compute in the user's own process.

Suggestions are small sums: threads that wait for each other, on a busy machine above all, cost more than they save. A
dispatcher process is started with this setting; here the libraries are loaded already, and others use them, too.
"""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

__all__ = ["OneThread"]

_USERS_SETTING = "OPENBLAS_NUM_THREADS"


class OneThread:
    """Limits BLAS to one thread inside a block, unless the user has set `OPENBLAS_NUM_THREADS`.

    >>> one_thread = OneThread()
    >>> with one_thread():
    ...     total = sum(range(4))
    """

    def __init__(self) -> None:
        self._libraries: ThreadpoolController | None = None  # finding them takes milliseconds
        self._have_scipys = False

    def __call__(self) -> AbstractContextManager[object]:
        """Return the block."""
        if _USERS_SETTING in os.environ:
            return nullcontext()
        # SciPy has a BLAS of its own, and is loaded late.
        is_late = "scipy.linalg" in sys.modules and not self._have_scipys
        if self._libraries is None or is_late:
            from threadpoolctl import ThreadpoolController

            self._libraries, self._have_scipys = ThreadpoolController(), "scipy.linalg" in sys.modules
        return self._libraries.limit(limits=1, user_api="blas")
