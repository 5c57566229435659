"""Notes and tags that people put on an experiment and its trials, in a file of its folder.

The database has one writer, the manager, and ends with it; notes are written at any time, so they have their own file.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from filelock import FileLock

from .errors import StoreError
from .folder import ExperimentFolder
from .paths import whole_file

_LONGEST_NOTE = 20_000
_MOST_TAGS = 30
_LONGEST_TAG = 60
_PATIENCE = 5.0


@dataclass(frozen=True, slots=True)
class Annotation:
    """A note, and tags."""

    note: str = ""
    tags: tuple[str, ...] = ()


class Annotations:
    """The notes and tags of an experiment; those of the experiment itself belong to no trial (None).

    >>> import tempfile
    >>> from pathlib import Path
    >>> annotations = Annotations(ExperimentFolder(Path(tempfile.mkdtemp())))
    >>> annotations.write(7, Annotation("the learning rate was too high", ("odd",)))
    >>> annotations.read(7).tags, annotations.read(None)
    (('odd',), Annotation(note='', tags=()))
    """

    def __init__(self, folder: ExperimentFolder) -> None:
        self._path = folder.path / "annotations.json"

    def read(self, trial: int | None) -> Annotation:
        """Return what is noted; raise `StoreError` if the file cannot be understood."""
        return self.all().get(trial, Annotation())

    def all(self) -> dict[int | None, Annotation]:
        """Return all notes and tags, by the number of the trial; raise `StoreError` as `read` does."""
        try:
            stored = json.loads(self._path.read_bytes())
            return {
                int(key) if key else None: Annotation(str(fields["note"]), tuple(map(str, fields["tags"])))
                for key, fields in stored.items()
            }
        except FileNotFoundError:
            return {}
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise StoreError(f"{self._path} cannot be read: {error}; mend or delete it") from error

    def write(self, trial: int | None, annotation: Annotation) -> None:
        """Replace the note and the tags of a trial or the experiment; raise `ValueError` if they are too long."""
        _check(annotation)
        with FileLock(self._path.with_suffix(".lock"), timeout=_PATIENCE, mode=0o600):
            kept = {
                "" if number is None else str(number): asdict(each)
                for number, each in {**self.all(), trial: annotation}.items()
                if each.note or each.tags
            }
            with whole_file(self._path) as file:
                file.write(json.dumps(kept).encode())


def tags_of(text: str) -> tuple[str, ...]:
    """Return the tags in a text, which commas separate, each once.

    >>> tags_of("baseline, odd,, baseline")
    ('baseline', 'odd')
    """
    return tuple(dict.fromkeys(word for part in text.split(",") if (word := part.strip())))


def _check(annotation: Annotation) -> None:
    if len(annotation.note) > _LONGEST_NOTE:
        raise ValueError(f"a note has at most {_LONGEST_NOTE:,} characters, not {len(annotation.note):,}")
    if len(annotation.tags) > _MOST_TAGS or any(len(tag) > _LONGEST_TAG for tag in annotation.tags):
        raise ValueError(f"there can be {_MOST_TAGS} tags of at most {_LONGEST_TAG} characters")
