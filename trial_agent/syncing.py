"""Forces files to the disk, so that they survive a power cut: their content, then the folders that name them."""

from __future__ import annotations

import os

__all__ = ["sync", "sync_tree", "write_whole"]


def sync(path: str | os.PathLike[str], root: str | os.PathLike[str] | None = None) -> None:
    """Force one file or folder to the disk; with `root` also the folders that lead to it, up to `root` itself."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if root is not None and os.fspath(path) not in (os.fspath(root), os.sep):
        sync(os.path.dirname(path), root)


def sync_tree(folder: str | os.PathLike[str], root: str | os.PathLike[str] | None = None) -> None:
    """Force a folder with all that is in it to the disk, and the folders that lead to it as `sync` does."""
    for parent, _, names in os.walk(folder, topdown=False):
        for path in (os.path.join(parent, name) for name in names):
            if os.path.isfile(path) and not os.path.islink(path):
                sync(path)
        sync(parent, root if parent == os.fspath(folder) else None)


def write_whole(path: str | os.PathLike[str], data: bytes, *, synced: bool = False) -> None:
    """Write a file so that it is there as a whole or not at all; with `synced`, also after a power cut.

    No hard link to an earlier file of this name changes.
    """
    folder, name = os.path.split(path)
    draft = os.path.join(folder, f".{name}")
    with open(draft, "wb") as file:
        file.write(data)
    if synced:
        sync(draft)
    os.replace(draft, path)
    if synced:
        sync(folder)
