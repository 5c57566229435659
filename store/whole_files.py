"""Files that users ask for, which appear only when they are complete."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that replaces the one at a path when the block ends without an error, and is removed otherwise.

    An `OSError` names the path, not the unfinished file beside it.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        file = unfinished.open("wb")
        try:
            with file:
                yield file
            unfinished.replace(path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
    except OSError as error:
        if error.filename == os.fspath(unfinished):
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise
