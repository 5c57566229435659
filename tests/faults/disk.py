"""A disk that is rebuilt from a record of changes, as a power cut at any moment could leave it.

What was synced is there. Of what was not, each file and each folder has any part: nothing, all, the first changes,
some sectors of what was written, zeros in place of data, or a size without data. A folder's changes are kept in their
order, as file systems do that keep a journal; other than theirs, the sync of a file does not sync its folder's entry.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from system_calls import Change

__all__ = ["Disk"]

SECTOR = 512
# SQLite makes this file anew after a power cut; its content is memory that processes share, and never synced.
_SHARED_MEMORY = "-shm"


def _written(content: bytearray, offset: int, data: bytes) -> None:
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


def _cut(content: bytearray, size: int) -> None:
    if size < len(content):
        del content[size:]
    else:
        content.extend(bytes(size - len(content)))


@dataclass(eq=False)
class _File:
    synced: bytes = b""
    later: list[Change] = field(default_factory=list)

    def sync(self) -> None:
        self.synced, self.later = bytes(self.now()), []

    def now(self) -> bytearray:
        content = bytearray(self.synced)
        for change in self.later:
            self._apply(content, change)
        return content

    def after_power_cut(self, draw: random.Random) -> bytes:
        content = bytearray(self.synced)
        kept = draw.choice(("none", "all", "first", "sectors", "zeros", "size"))
        if kept == "all":
            return bytes(self.now())
        if kept == "first":
            for change in self.later[: draw.randint(0, len(self.later))]:
                self._apply(content, change)
        elif kept in ("sectors", "zeros"):
            for change in self.later:
                self._apply_some(content, change, draw, len(self.synced), zeros=kept == "zeros")
        elif kept == "size":
            _cut(content, max(len(self.synced), len(self.now())))
        return bytes(content)

    @staticmethod
    def _apply(content: bytearray, change: Change) -> None:
        if change.what == "t":
            _cut(content, change.offset)
        else:
            _written(content, change.offset, change.data)

    @staticmethod
    def _apply_some(
        content: bytearray, change: Change, draw: random.Random, synced: int, *, zeros: bool
    ) -> None:
        if change.what == "t":
            if draw.random() < 0.5:
                _cut(content, change.offset)
            return
        for place in range(0, len(change.data), SECTOR):
            data = change.data[place : place + SECTOR]
            if draw.random() < 0.5:
                _written(content, change.offset + place, data)
            elif zeros and change.offset + place >= synced:  # what is overwritten keeps its old data
                _written(content, change.offset + place, bytes(len(data)))


@dataclass(eq=False)
class _Link:
    to: str


@dataclass(eq=False)
class _Folder:
    synced: dict[str, _Node] = field(default_factory=dict)
    now: dict[str, _Node] = field(default_factory=dict)
    later: list[tuple[tuple[str, _Node | None], ...]] = field(default_factory=list)

    def change(self, *entries: tuple[str, _Node | None]) -> None:
        """Set or remove entries, all at once: a power cut leaves all of them or none."""
        self.later.append(entries)
        _set(self.now, entries)

    def sync(self) -> None:
        self.synced, self.later = dict(self.now), []

    def after_power_cut(self, draw: random.Random) -> dict[str, _Node]:
        found = dict(self.synced)
        count = draw.choice((0, len(self.later), draw.randint(0, len(self.later))))
        for entries in self.later[:count]:
            _set(found, entries)
        return found


_Node = _File | _Folder | _Link


def _set(entries: dict[str, _Node], changes: tuple[tuple[str, _Node | None], ...]) -> None:
    for name, node in changes:
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


class Disk:
    """The folder `root` of a disk, to which recorded changes are made one after another."""

    def __init__(self, root: Path) -> None:
        self._root = _Folder()
        self._at = str(root)
        self._files: dict[int, _File] = {}  # by inode: those that were made latest

    def apply(self, change: Change) -> None:
        """Make a change; one outside of the root is left out."""
        path = os.path.normpath(change.path)
        if not path.startswith(self._at) or _SHARED_MEMORY in path:
            return
        match change.what:
            case "c":
                self._create(path, change.inode)
            case "w" | "t":
                if file := self._files.get(change.inode):
                    file.later.append(change)
            case "s":
                node = self._files.get(change.inode) or self._node(path)
                if isinstance(node, (_File, _Folder)):
                    node.sync()
            case "m":
                self._make(path)
            case "y":
                self._bind(path, _Link(change.other))
            case "u":
                self._bind(path, None)
            case "l":
                self._bind(os.path.normpath(change.other), self._node(path))
            case "r":
                self._rename(path, os.path.normpath(change.other))
            case _:
                raise ValueError(f"unknown change: {change}")

    def _make(self, path: str) -> _Folder:
        """Make a folder, unless it is there: what another process did in it may be recorded first."""
        node = self._node(path)
        if isinstance(node, _Folder):
            return node
        folder = _Folder()
        self._bind(path, folder)
        return folder

    def _create(self, path: str, inode: int) -> None:
        node = self._node(path)
        if node is None or self._files.get(inode) is not node:
            self._files[inode] = file = _File()
            self._bind(path, file)

    def _rename(self, source: str, target: str) -> None:
        (folder, name), (other, new) = self._entry(source), self._entry(target)
        if folder is other:
            folder.change((name, None), (new, folder.now[name]))
        else:
            other.change((new, folder.now[name]))
            folder.change((name, None))

    def _bind(self, path: str, node: _Node | None) -> None:
        folder, name = self._entry(path)
        folder.change((name, node))

    def _entry(self, path: str) -> tuple[_Folder, str]:
        parent, name = os.path.split(path)
        return self._make(parent), name

    def _node(self, path: str) -> _Node | None:
        node: _Node | None = self._root
        for name in Path(path).relative_to(self._at).parts:
            node = node.now.get(name) if isinstance(node, _Folder) else None
        return node

    def write(self, target: Path, draw: random.Random | None = None) -> None:
        """Write the disk as it is now into an empty folder; with `draw`, as a power cut leaves it."""
        for path, node in self._walk(target, self._root, draw):
            if isinstance(node, _Folder):
                path.mkdir(mode=0o700, exist_ok=True)
            elif isinstance(node, _Link):
                path.symlink_to(node.to)
            else:
                path.write_bytes(node.now() if draw is None else node.after_power_cut(draw))

    def write_least(self, target: Path) -> None:
        """Write what no power cut can take."""
        for path, node in self._walk(target, self._root, _Least()):
            if isinstance(node, _Folder):
                path.mkdir(mode=0o700, exist_ok=True)
            elif isinstance(node, _File):
                path.write_bytes(node.synced)

    def _walk(self, path: Path, node: _Node, draw: random.Random | None) -> Iterator[tuple[Path, _Node]]:
        yield path, node
        if isinstance(node, _Folder):
            entries = node.now if draw is None else node.after_power_cut(draw)
            for name, each in entries.items():
                yield from self._walk(path / name, each, draw)


class _Least(random.Random):
    """Draws nothing."""

    def choice(self, seq):  # type: ignore[no-untyped-def]
        return seq[0]
