"""Reads parts of files in the experiment's folder, and of no others: how another machine reads logs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

__all__ = ["MAX_PART", "read_part"]

MAX_PART = 65536


def read_part(folder: str, path: str, offset: int, limit: int) -> dict[str, Any]:
    """Return up to `limit` bytes (at most `MAX_PART`) of a file from `offset`, and the size of the file.

    Raises ValueError when `path` leads out of the folder, and OSError when the file cannot be read.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = Path(folder, "stdout").write_text("epoch 1")
    >>> read_part(folder, "stdout", 6, 100)
    {'data': b'1', 'size': 7}
    """
    root = Path(folder).resolve()
    file_path = (root / path).resolve()
    if not file_path.is_relative_to(root):
        raise ValueError(f"{path!r} leads out of the experiment's folder")
    with open(file_path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(offset)
        return {"data": file.read(max(0, min(limit, MAX_PART))), "size": size}
