"""Clones checkpoints: hard links, so that it costs no space and the original may go."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path

from ..trial_agent import sync, sync_tree

_log = logging.getLogger(__name__)


def clone_checkpoint(source: Path, target: Path, synced_root: Path | None = None) -> None:
    """Make `target` a clone of the folder `source`, whole or not at all; do nothing if it is there already.

    With `synced_root` it is forced to the disk, with the folders from there on. A source that is gone is logged: the
    attempt that starts from the clone fails and says so, too.
    """
    if target.exists():
        return
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(partial, ignore_errors=True)
        # Raises for a source that is removed meanwhile: its name goes before its files.
        shutil.copytree(source, partial, symlinks=True, copy_function=_link_or_copy)
        if synced_root is not None:
            sync_tree(partial)
        partial.rename(target)
        if synced_root is not None:
            sync(target, synced_root)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        _log.error("checkpoint %s cannot be copied to %s: %s", source, target, error)


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # a file system without hard links
        shutil.copy2(source, target, follow_symlinks=False)
