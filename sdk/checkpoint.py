"""One checkpoint: a folder from which a trial can continue; how it is written and read. Light, for the SDK.

A folder is filled under a hidden name and renamed when it is complete. It counts from the moment its
name is in the spool: a process killed before that leaves rubbish, but never half a checkpoint.
"""

from __future__ import annotations

import errno
import json
import os
from stat import S_ISDIR, S_ISREG

from .errors import MachineError, is_of_machine, own_calls

TYPE_CHECKING = False  # `typing` costs 2 ms at import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Fill = Callable[[str], object]  # puts the data into a folder
    SavedState = dict[str, Any]  # of a trial: whatever pickle or cloudpickle can write

ABOUT = "checkpoint.json"  # written by the agent: the next sequence number, the last value, the time
_JSON, _PICKLE = "data.json", "data.pkl"
_PLAIN = frozenset((str, int, float, bool, type(None)))


class Checkpoint:
    """A saved state of a trial: the folder `path`, which must not be changed.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> write_data(folder, {"epoch": 3})
    >>> Checkpoint(folder).to_dict()
    {'epoch': 3}
    """

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    @property
    def is_dict(self) -> bool:
        """Whether a dict was saved, and not files."""
        return any(os.path.exists(os.path.join(self.path, name)) for name in (_JSON, _PICKLE))

    def to_dict(self) -> SavedState:
        """Return the dict that was saved; raise ValueError if files were saved instead."""
        plain = os.path.join(self.path, _JSON)
        if os.path.exists(plain):
            with open(plain, encoding="utf-8") as file:
                return json.load(file)
        if not self.is_dict:
            raise ValueError(f"this checkpoint holds files, not a dict: read them in {self.path}")
        import pickle

        with open(os.path.join(self.path, _PICKLE), "rb") as file:
            return pickle.load(file)

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"Checkpoint({self.path!r})"


def write_data(folder: str, data: SavedState | str | os.PathLike[str]) -> None:
    """Write a dict (as JSON where that keeps it exactly, else pickled), or copy a file or folder, into `folder`.

    Raises TypeError for anything else, ValueError for an empty folder or one with a file of the name we need.
    """
    if isinstance(data, dict):
        _write_dict(folder, data)
    elif isinstance(data, (str, os.PathLike)):
        _copy(folder, os.fspath(data))
    else:
        raise TypeError(f"a checkpoint is a dict or a path, not {type(data).__name__}: {data!r:.200}")


def _write_dict(folder: str, data: SavedState) -> None:
    try:
        text = json.dumps(data) if _is_plain(data) else ""
        exact = bool(text) and json.loads(text) == data  # NaN and halves of a character come back changed
    except (ValueError, RecursionError):
        text, exact = "", False
    name, content = (_JSON, text.encode()) if exact else (_PICKLE, _pickled(data))
    with own_calls(), open(os.path.join(folder, name), "wb") as file:
        file.write(content)


def _is_plain(value: object) -> bool:
    """Return whether a value has, at every level, a type that JSON gives back: a subclass comes back as its base.

    >>> _is_plain({"epoch": [3, None]}), _is_plain({"epoch": (3,)}), _is_plain({3: "epoch"})
    (True, False, False)
    """
    kind = type(value)
    if kind is dict:
        return all(type(key) is str and _is_plain(inner) for key, inner in value.items())  # type: ignore[attr-defined]
    if kind is list:
        return all(map(_is_plain, value))  # type: ignore[call-overload]
    return kind in _PLAIN


def _pickled(data: SavedState) -> bytes:
    import pickle

    try:
        return pickle.dumps(data, protocol=5)
    except (pickle.PicklingError, AttributeError, TypeError):  # only cloudpickle can write it, like a lambda
        import cloudpickle

        return cloudpickle.dumps(data)


def _copy(folder: str, source: str) -> None:
    import shutil

    try:
        if not os.path.isdir(source):
            shutil.copy2(source, folder)
        elif os.path.exists(os.path.join(source, ABOUT)) and not _is_ours(source):
            raise ValueError(f"a checkpoint must not hold a file {ABOUT}: {source}")
        elif not os.listdir(source):
            raise ValueError(f"there is nothing to save in {source}")
        else:
            shutil.copytree(source, folder, dirs_exist_ok=True, ignore=_left_out(folder, source))
    except OSError as error:
        if is_of_machine(error):
            raise MachineError.of(error) from error
        raise  # there is no such source, for example


def _left_out(folder: str, source: str) -> Callable[[str, list[str]], list[str]]:
    """Return what `copytree` leaves out of a source; it raises ValueError for what no copy can hold."""
    checkpoints, top = os.path.dirname(os.path.realpath(folder)), os.path.realpath(source)
    if _holds(top, checkpoints) and top != os.path.dirname(checkpoints):
        raise ValueError(
            f"{source} holds the checkpoints of this trial: save a folder with only its state in it"
        )

    def left_out(directory: str, names: list[str]) -> list[str]:
        outer = [os.path.realpath(directory)]
        while len(directory) > len(source):
            directory = os.path.dirname(directory)
            outer.append(os.path.realpath(directory))
        paths = {name: os.path.join(outer[0], name) for name in names}
        kept = {
            name: path
            for name, path in paths.items()
            if os.path.realpath(path) != checkpoints and name != ABOUT
        }
        for path in kept.values():
            if what := _not_copied(path, outer):
                raise ValueError(f"a checkpoint cannot hold {path}, {what}")
        return [name for name in names if name not in kept]

    return left_out


def _not_copied(path: str, outer: list[str]) -> str:
    """Return what a path is if it cannot be copied; `outer` are the folders that hold it."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        if is_of_machine(error) or not os.path.islink(path):
            raise
        return "a link to nothing"
    if S_ISDIR(mode):
        target = os.path.realpath(path)
        return "a link to a folder that holds it" if any(_holds(target, one) for one in outer) else ""
    return "" if S_ISREG(mode) else "which is neither a file nor a folder"


def _holds(folder: str, path: str) -> bool:
    """Return whether a folder is a path, or holds it; both are real paths."""
    return os.path.commonpath([folder, path]) == folder


def _is_ours(source: str) -> bool:
    """Return whether a folder is a trial's checkpoint that is saved again."""
    return os.path.basename(os.path.dirname(os.path.abspath(source))) == "checkpoints"


def save_folder(checkpoints: str, attempt: int, fill: Fill) -> str | None:
    """Make a complete checkpoint in the folder `checkpoints` and return its name; None when `fill` wrote nothing.

    >>> import tempfile
    >>> checkpoints = tempfile.mkdtemp()
    >>> [save_folder(checkpoints, 2, lambda folder: write_data(folder, {"epoch": epoch})) for epoch in range(2)]
    ['2-1', '2-2']
    """
    draft = os.path.join(checkpoints, f".{attempt}-{os.urandom(6).hex()}")
    with own_calls():
        os.makedirs(draft)
    try:
        fill(draft)
        with own_calls():
            if os.listdir(draft):
                return _publish(draft, checkpoints, attempt)
    except BaseException:
        remove(draft)
        raise
    remove(draft)
    return None


def _publish(draft: str, checkpoints: str, attempt: int) -> str:
    """Give a draft the next free name; several processes may do so at once."""
    prefix = f"{attempt}-"
    ends = [name[len(prefix) :] for name in os.listdir(checkpoints) if name.startswith(prefix)]
    number = 1 + max((int(end) for end in ends if end.isdecimal()), default=0)
    while True:
        try:
            os.rename(draft, os.path.join(checkpoints, f"{prefix}{number}"))
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            number += 1
        else:
            return f"{prefix}{number}"


def remove(folder: str) -> None:
    """Remove a folder; leave what cannot be removed.

    Its name goes first: a reader that finds the folder still there has read all of it.
    """
    parent, name = os.path.split(folder)
    if not name.startswith("."):
        gone = os.path.join(parent, f".{name}-{os.urandom(6).hex()}")
        try:
            os.rename(folder, gone)
        except OSError:  # it is gone, or nothing can be renamed here
            gone = folder
        folder = gone
    try:
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)
    except OSError:  # it has folders in it, or is gone
        import shutil

        shutil.rmtree(folder, ignore_errors=True)
