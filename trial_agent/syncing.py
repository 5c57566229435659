"""Forces files to the disk, so that they survive a power cut: first their content, then the folders that name them."""

from __future__ import annotations

import os


def sync(path: str | os.PathLike[str], root: str | os.PathLike[str] | None = None) -> None:
    """Force one file or folder to the disk; with `root`, also its parent folders up to `root` itself."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if root is not None and os.fspath(path) not in (os.fspath(root), os.sep):
        sync(os.path.dirname(path), root)


def sync_tree(folder: str | os.PathLike[str], root: str | os.PathLike[str] | None = None) -> None:
    """Force a folder and its contents to the disk; with `root`, also its parents, as `sync` does."""
    for parent, _, names in os.walk(folder, topdown=False):
        for path in (os.path.join(parent, name) for name in names):
            if os.path.isfile(path) and not os.path.islink(path):
                sync(path)
        sync(parent, root if parent == os.fspath(folder) else None)


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file completely or not at all; hard links to an earlier file of this name keep its content."""
    folder, name = os.path.split(path)
    draft = os.path.join(folder, f".{name}")
    with open(draft, "wb") as file:
        file.write(data)
    os.replace(draft, path)
