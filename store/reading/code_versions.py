"""What code made the results: which trials ran the same, what differs between them, and where the experiment ran.

A trial loads a part of the code, and another option may load another part. So trials ran the same code if no file and
no package that both have loaded differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...sdk import file_digest
from ..errors import understood
from .database import Database
from .json_values import parsed


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeVersion:
    """One state of the code: version 1, 2 ... in the order in which trials ran it."""

    number: int
    first_trial: int
    trials: int
    changed: tuple[str, ...]  # the files and packages that differ from those of an earlier trial
    files: Mapping[str, str] = field(repr=False)  # digests by path in the code directory
    packages: Mapping[str, str] = field(repr=False)
    digests: frozenset[str] = field(repr=False)  # of the rows of `code_versions` that it unites


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentStart:
    """A start of a manager: the machine, and what git said of the code directory; without git there is no commit."""

    time: float
    host: str = ""
    system: str = ""
    python: str = ""
    pitchpipe: str = ""
    gpus: tuple[str, ...] = ()
    commit: str | None = None
    branch: str | None = None
    changed: int | None = None  # files that differ from the commit; the table `starts` has the difference


def read_code_versions(db: Database) -> list[CodeVersion]:
    """Return the versions of the code that trials ran; none for an experiment of an earlier Pitchpipe."""
    rows = db.rows(
        "SELECT code, min(sequence_id), count(*), loaded FROM trials JOIN code_versions ON digest = code"
        " GROUP BY code ORDER BY min(start_time)"
    )
    versions: list[_Version] = []
    with understood(db.path, "code_versions"):
        for digest, first, count, text in rows:
            loaded = {
                (kind, name): str(value)
                for kind, names in parsed(text).items()
                for name, value in names.items()
            }
            same = next((one for one in reversed(versions) if not one.differences(loaded)), None)
            if same is None:
                changed = versions[-1].differences(loaded) if versions else ()
                versions.append(same := _Version(changed))
            same.add(digest, first, count, loaded)
    return [version.stored(number) for number, version in enumerate(versions, start=1)]


def read_starts(db: Database) -> list[ExperimentStart]:
    """Return the starts of the experiment's managers, in order."""
    starts = list[ExperimentStart]()
    with understood(db.path, "starts"):
        for time, text in db.rows("SELECT time, facts FROM starts ORDER BY time"):
            facts = parsed(text)
            starts.append(ExperimentStart(**{**facts, "time": time, "gpus": tuple(facts.get("gpus", ()))}))
    return starts


def changed_files(versions: Sequence[CodeVersion], code_directory: Path) -> list[str]:
    """Return the files in the code directory that differ from those that the last trials ran."""
    files = versions[-1].files if versions else {}
    inside = {path: digest for path, digest in files.items() if not path.endswith("()")}
    return [path for path, digest in inside.items() if file_digest(str(code_directory / path)) != digest]


class _Version:
    """A version of the code while it is read."""

    def __init__(self, changed: Iterable[str]) -> None:
        self._changed = tuple(changed)
        self._loaded: dict[tuple[str, str], str] = {}
        self._first: list[int] = []
        self._count = 0
        self._digests: set[str] = set()

    def differences(self, loaded: Mapping[tuple[str, str], str]) -> list[str]:
        """Return the names of what both have loaded and differs."""
        return [name[1] for name, value in loaded.items() if self._loaded.get(name, value) != value]

    def add(self, digest: str, first: int, count: int, loaded: Mapping[tuple[str, str], str]) -> None:
        """Take in the trials that ran what is `loaded`."""
        self._loaded.update(loaded)
        self._first.append(first)
        self._count += count
        self._digests.add(digest)

    def stored(self, number: int) -> CodeVersion:
        """Return the version."""
        return CodeVersion(
            number=number,
            first_trial=min(self._first),
            trials=self._count,
            changed=self._changed,
            files={name: value for (kind, name), value in self._loaded.items() if kind == "files"},
            packages={name: value for (kind, name), value in self._loaded.items() if kind == "packages"},
            digests=frozenset(self._digests),
        )
