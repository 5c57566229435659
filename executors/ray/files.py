"""The files of trials on nodes that do not see the experiment's folder: where they are, and how they travel.

A node sees the folder if it finds the manager's mark there, a file. Otherwise its agents work in folders of their own,
laid out like the experiment's, and what trials leave there is fetched.
"""

from __future__ import annotations

import hashlib
import io
import os
import secrets
import shutil
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ...store import private_directory

__all__ = [
    "NODE_FOLDER",
    "SharedMark",
    "forget_checkpoints",
    "make_working_folder",
    "pack",
    "trial_files",
    "unpack",
    "working_folder",
]

# Python before 3.11.4 has no such filter.
_SAFELY: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
NODE_FOLDER = "PITCHPIPE_NODE_FOLDER"
"""Set on a node, names the folder of its agents' files, whether the node sees the experiment's folder or not."""


class SharedMark:
    """A file with an unguessable name: a node that finds it sees the experiment's folder."""

    def __init__(self, folder: Path) -> None:
        for old in folder.glob("agents/.seen-*"):  # of managers that were killed
            old.unlink(missing_ok=True)
        self.name = f"agents/.seen-{secrets.token_hex(8)}"
        self._path = folder / self.name
        self._path.parent.mkdir(exist_ok=True)
        self._path.touch()

    def remove(self) -> None:
        """Remove the file."""
        self._path.unlink(missing_ok=True)


def working_folder(folder: str, mark: str, agent: str, environment: Mapping[str, str]) -> str:
    """Return the folder in which `agent` works on this node: the experiment's, or one of its own.

    >>> folder = tempfile.mkdtemp()
    >>> mark = SharedMark(Path(folder))
    >>> working_folder(folder, mark.name, "0-0", {}) == folder
    True
    >>> working_folder("/exp/k3x9a2bq", "agents/.seen-1f", "0-0", {"PITCHPIPE_NODE_FOLDER": "/scratch"})
    '/scratch/k3x9a2bq-1c6a0c48/0-0'
    """
    base = environment.get(NODE_FOLDER)
    if not base and os.path.exists(os.path.join(folder, mark)):
        return folder
    base = base or os.path.join(tempfile.gettempdir(), f"pitchpipe-{os.getuid()}")
    name = f"{os.path.basename(folder)}-{hashlib.blake2b(os.fsencode(folder), digest_size=4).hexdigest()}"
    return os.path.join(base, name, agent)


def make_working_folder(folder: str, environment: Mapping[str, str]) -> None:
    """Make the own `working_folder` of an agent; raise `OSError` if other users could change its files."""
    experiment = Path(folder).parent
    hint = f"set {NODE_FOLDER} on this node to a private folder"
    if not environment.get(NODE_FOLDER):
        private_directory(experiment.parent, "folder for trials", hint)
    private_directory(experiment, "folder for trials", hint)
    os.makedirs(folder, exist_ok=True)


def trial_files(sequence_id: int) -> str:
    """Return the path of a trial's folder within either folder."""
    return f"trials/{sequence_id}"


def pack(folder: str, names: Iterable[str]) -> bytes:
    """Return those of the files and folders `names` that exist, without checkpoints that are being written."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name in names:
            path = os.path.join(folder, name)
            if os.path.exists(path):
                archive.add(path, name, filter=_finished)
    return data.getvalue()


def _finished(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leave out checkpoints that are being written (`trials/0/checkpoints/.1-2f`)."""
    parts = info.name.split("/")
    return None if len(parts) > 3 and parts[2] == "checkpoints" and parts[3].startswith(".") else info


def unpack(data: bytes, folder: Path) -> None:
    """Unpack the result of `pack` into a folder; replace each file atomically."""
    with tempfile.TemporaryDirectory(prefix=".arriving-", dir=folder) as draft:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            archive.extractall(draft, **_SAFELY)
        for path in _files(Path(draft)):
            target = folder / path.relative_to(draft)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if not path.is_dir())


def forget_checkpoints(folder: Path, attempt: int, kept: Iterable[str]) -> None:
    """Remove the checkpoints of an attempt that its node has not kept; `folder` is the trial's."""
    names = set(kept)
    for path in folder.glob(f"checkpoints/{attempt}-*"):
        if path.name not in names:
            shutil.rmtree(path, ignore_errors=True)
