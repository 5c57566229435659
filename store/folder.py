"""The experiment's folder: what is where in it, which manager owns it, and how to find it by its id."""

from __future__ import annotations

import errno
import json
import logging
import os
import random
import re
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from ..protocol import Config
from ..runner import ExperimentStatus
from ..trial_agent import sync, sync_tree, write_whole
from .errors import StoreError
from .manager_process import LOCK, ManagerInfo, clock_jump, clock_mark, is_lock_held
from .paths import (
    FolderError,
    FolderExistsError,
    absolute,
    default_directory,
    link_directory,
    linked_folders,
    problem_of_link,
    shell_word,
)
from .store import Store

_log = logging.getLogger(__name__)
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,31}")
_LOOK_EVERY = 0.05
_TURN = 0.002  # between two attempts to get the lock, which others hold for milliseconds
_LOOKS = 0.2  # for how long others who only look may hold it in turn
# What a search holds before its database is made.
_OWN_NAMES = {LOCK, "logs", "checkpoint"}


class ExperimentFolder:
    """`<directory>/<experiment id>/` and what is in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock_jump = 0.0  # by how many seconds the clock was set since the last manager was killed
        self._lock: FileLock | None = None

    @property
    def experiment_id(self) -> str:
        """The id is the folder's name."""
        return self.path.name

    @property
    def database(self) -> Path:
        """The SQLite database."""
        return self.path / "experiment.db"

    @property
    def has_experiment(self) -> bool:
        """Whether this user sees a database in it; another user's folder may be closed."""
        return os.path.isfile(self.database)  # unlike `Path.is_file` it raises no error there

    @property
    def logs(self) -> Path:
        """Where the manager, the dispatcher and the agents log."""
        return self.path / "logs"

    @property
    def function_file(self) -> Path:
        """The pickled function of a function trial."""
        return self.path / "trial.pkl"

    @property
    def function_files(self) -> Path:
        """The digests of the files that the function came from, by path (JSON); it may not exist."""
        return self.path / "trial.json"

    @property
    def code_snapshot(self) -> Path:
        """The copy of the code that all trials run, if the experiment has one."""
        return self.path / "code"

    @property
    def stopper_file(self) -> Path:
        """The pickled stopper, if the experiment has one."""
        return self.path / "stopper.pkl"

    def is_search(self, config: Config) -> bool:
        """Return whether its caller runs the trials of this experiment (`pitchpipe.Search`), given its config."""
        return "trialCommand" not in config and not self.function_file.exists()

    def refuse_search(self, config: Config) -> None:
        """Raise `FolderError` if its caller runs the trials of this experiment, given its config."""
        if self.is_search(config):
            raise FolderError(
                f"the trials of {self.path} are run by a program that asks and tells: continue it with"
                f" pitchpipe.Search(folder='{self.path}') in Python"
            )

    def _alternatives(self) -> str:
        """Return how to continue or delete what is in this folder; empty while an experiment in it runs."""
        if not self.has_experiment:
            return ", or delete the folder"
        deleting = f", or delete that one: pitchpipe delete {shell_word(self.path)}"
        if self.manager() is not None:
            return ""
        try:
            with closing(Store.view(self.database)) as store:
                row = store.experiment()
                status, is_search = ExperimentStatus(row.status), self.is_search(row.config)
        except StoreError:
            return deleting  # `delete` takes what cannot be read
        is_done = status in (ExperimentStatus.DONE, ExperimentStatus.VIEWED)
        can_continue = not is_done and not is_search
        resuming = f", or continue that one: pitchpipe resume {shell_word(self.path)}" if can_continue else ""
        return f"{resuming}{deleting if status.is_final else ''}"

    def trial(self, sequence_id: int) -> Path:
        """Return the folder of one trial; it exists only if the trial has something to keep."""
        return self.path / "trials" / str(sequence_id)

    @classmethod
    def create(
        cls, directory: Path, experiment_id: str | None = None, *, is_kept: bool = True
    ) -> ExperimentFolder:
        """Make the folder of a new experiment and own it; raise `FolderError` if it exists or cannot be made.

        Verbs find it by its id alone if it `is_kept`.
        """
        experiment_id = _checked(experiment_id or new_experiment_id())
        folder = cls(absolute(directory) / experiment_id)
        # Others find the folder once its lock is held, so that none of them takes it for what a killed process left.
        draft = cls(folder.path.with_name(f".{experiment_id}-{new_experiment_id()}"))
        try:
            # In it are secrets: the config, the token of the agents.
            draft.path.mkdir(mode=0o700, parents=True)
            draft.logs.mkdir()
            (draft.path / "checkpoint").mkdir()
        except OSError as error:
            if problem := problem_of_link(folder.path.parent):
                raise FolderError(problem) from None
            elsewhere = "name another directory, there or in $PITCHPIPE_DIR"
            raise FolderError(f"{folder.path} cannot be made: {error.strerror}; {elsewhere}") from error
        try:
            draft.own()
            folder._take(draft)
        except BaseException as error:
            draft.remove()
            if isinstance(error, FolderError):  # it may name the draft
                raise type(error)(str(error).replace(str(draft.path), str(folder.path))) from error
            raise
        if is_kept:
            folder.link()
        return folder

    def _take(self, draft: ExperimentFolder) -> None:
        """Give a draft its name; raise `FolderError` if there is something of that name."""
        try:
            if os.path.lexists(self.path):  # an empty folder would be replaced
                raise FileExistsError(errno.EEXIST, "")
            draft.path.rename(self.path)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                raise FolderError(f"{self.path} cannot be made: {error.strerror}") from error
            self.refuse_if_run()
            raise FolderExistsError(
                f"{self.path} exists already: choose another --experiment-id{self._alternatives()}"
            ) from None
        self._lock, draft._lock = draft._lock, None

    def refuse_if_run(self) -> None:
        """Raise `FolderError` if a manager runs the experiment, or makes it."""
        if (who := self.manager()) is not None:
            raise FolderError(f"experiment {self.experiment_id} is run by process {who.pid}: stop it first")

    @classmethod
    def shared(cls, path: Path, *, make: bool) -> ExperimentFolder:
        """Return a folder that several processes use by turns, and make it if need be; raise `FolderError`."""
        folder = cls(absolute(path))
        _checked(folder.experiment_id)
        folder.refuse_if_closed()
        if not make and not folder.has_experiment:
            raise FolderError(f"there is no experiment in {folder.path}")
        try:
            for path in (folder.path, folder.logs, folder.path / "checkpoint"):
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
            names = {entry.name for entry in folder.path.iterdir()}
        except OSError as error:
            raise FolderError(f"{folder.path} cannot be made: {error.strerror}") from error
        others = sorted(name for name in names - _OWN_NAMES if not name.startswith("experiment.db"))
        if others and not folder.has_experiment:
            raise FolderError(f"{folder.path} has other files in it ({others[0]}): name a folder of its own")
        folder.link()
        return folder

    def link(self) -> None:
        """Let verbs find the experiment by its id alone, if it is not in the default directory."""
        with suppress(FolderError):  # there is no home, and so no default
            link_directory(self.path.parent, default_directory())

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep all other processes out; wait for those that take their turn.

        Raise `FolderError` if a manager runs the experiment.
        """
        lock = self._usable_lock()
        while not lock.is_locked:
            try:
                lock.acquire(timeout=_LOOK_EVERY, poll_interval=_TURN)
            except Timeout:
                self.refuse_if_run()
            except OSError as error:
                raise FolderError(f"{self.path} cannot be written: {error.strerror}") from error
        try:
            yield
        finally:
            lock.release()

    @classmethod
    def find(cls, directory: Path, experiment_id: str) -> ExperimentFolder:
        """Return the folder of an experiment, by its id or a prefix that only one id has."""
        folders = list(cls.all(directory))
        matching = [folder for folder in folders if folder.experiment_id == experiment_id] or [
            folder for folder in folders if folder.experiment_id.startswith(experiment_id)
        ]
        here = [folder for folder in matching if folder.path.parent == directory]
        if len(matching) == 1 or (here and here[0].experiment_id == experiment_id):
            return (here or matching)[0]
        if matching:
            named = sorted(
                folder.experiment_id if folder in here else str(folder.path) for folder in matching
            )
            raise FolderError(f"'{experiment_id}' may be any of {', '.join(named)} in {directory}")
        cls(directory / experiment_id).refuse_if_closed()
        raise FolderError(
            f"there is no experiment '{experiment_id}' in {directory}: see pitchpipe list --dir DIR"
        )

    @classmethod
    def all(cls, directory: Path) -> Iterator[ExperimentFolder]:
        """Yield all experiments in a directory, and where it has links to, but those that are closed to this user.

        Raise `FolderError` if the directory itself is.
        """
        try:
            folders = [cls(path) for path in sorted(directory.iterdir())]
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise FolderError(f"{directory} cannot be read: {error.strerror}") from error
        folders += map(cls, linked_folders(directory))
        yield from (folder for folder in folders if folder.has_experiment)

    def refuse_if_closed(self) -> None:
        """Raise `FolderError` if this user cannot look into the folder, which may be another user's."""
        try:
            self.database.stat()
        except (FileNotFoundError, NotADirectoryError, ValueError):  # nothing has a name with NUL in it
            return
        except OSError as error:
            raise FolderError(f"{self.path} cannot be entered: {error.strerror}") from error

    def own(self) -> None:
        """Become the one manager of this experiment; raise `FolderError` if another process is."""
        lock = self._usable_lock()
        try:
            lock.acquire(timeout=_LOOKS, poll_interval=_TURN)
        except Timeout:
            who = self.manager()
            by = f"process {who.pid} on {who.host}" if who else "another process"
            raise FolderError(f"experiment {self.experiment_id} is run by {by}: stop it first") from None
        except OSError as error:
            raise FolderError(f"{self.path} cannot be written: {error.strerror}") from error
        self._lock = lock
        me = psutil.Process()
        mark = clock_mark()
        if (last := self._last_manager()) is not None:
            self.clock_jump = clock_jump(last.clock, mark)
        info = {"pid": me.pid, "host": socket.gethostname(), "create_time": me.create_time(), "clock": mark}
        try:
            self.logs.mkdir(exist_ok=True)  # deleted to save space, perhaps
            write_whole(self.path / "manager.json", json.dumps(info).encode())
        except OSError as error:
            self.disown()
            raise FolderError(f"{self.path} cannot be written: {error.strerror}") from error

    def disown(self) -> None:
        """Let another process own the folder."""
        if self._lock is not None:
            discard(self.path / "manager.json")  # a process that has ended counts as none
            self._lock.release()
            self._lock = None

    def manager(self) -> ManagerInfo | None:
        """Return which process runs the experiment now; None if none does.

        It holds the lock, wherever it is: in a container with the same disk its number and host say nothing here.
        """
        if (info := self._last_manager()) is None:
            return None
        is_held = is_lock_held(self.path)
        if is_held is None:
            is_held = info.host != socket.gethostname() or info.process is not None
        return info if is_held else None

    def wait_until_unmanaged(self, timeout: float) -> bool:
        """Wait until no process runs the experiment; return False if one still does after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while self.manager() is not None:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOOK_EVERY)  # a lock that is released sends no signal
        return True

    def _usable_lock(self) -> FileLock:
        """Return the lock by which a process owns the folder; raise `FolderError` where files cannot be locked.

        Without locks two managers would write into one database, which SQLite locks in the same way.
        """
        path = self.path / LOCK
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:  # it is another user's, perhaps
            raise FolderError(f"{self.path} cannot be written: {error.strerror}") from error
        if is_lock_held(self.path) is None:
            raise FolderError(
                f"files in {self.path} cannot be locked, on a file system without locks perhaps: "
                "name a directory on another disk, there or in $PITCHPIPE_DIR"
            )
        return FileLock(path, mode=0o600)

    def _last_manager(self) -> ManagerInfo | None:
        """Return which process runs the experiment, or ran it until it was killed."""
        try:
            return ManagerInfo(**json.loads((self.path / "manager.json").read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def sync(self) -> None:
        """Force the folder and all that is in it to the disk, and the folders in which it is."""
        sync_tree(self.path)
        for parent in self.path.parents:
            with suppress(PermissionError):  # another user's: it was there before
                sync(parent)

    def remove(self) -> None:
        """Delete the folder (of an experiment that could not be started)."""
        self.disown()
        shutil.rmtree(self.path)


def new_experiment_id() -> str:
    """Return eight lower-case letters and digits, as NNI does."""
    return "".join(random.SystemRandom().choices("abcdefghijklmnopqrstuvwxyz0123456789", k=8))


def _checked(experiment_id: str) -> str:
    if not _ID.fullmatch(experiment_id):
        raise FolderError(
            f"'{experiment_id}' is not an experiment id: use up to 32 letters, digits, '_' and, not as the first, '-'"
        )
    return experiment_id


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


def discard(path: Path) -> None:
    """Remove a file or an empty folder that is no longer needed; where that is impossible, log it: it does no harm."""
    try:
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        _log.warning("%s cannot be removed: %s", path, error.strerror)
