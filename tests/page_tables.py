"""Draws the state diagrams of architecture.md and the tables of store.md and config.md from the code.

    .venv/bin/python -P tests/page_tables.py docs/develop/architecture.md docs/reference/{store,config}.md

rewrites, in each page, what stands between `<!-- table: NAME -->` and `<!-- end of table -->`.
"""

from __future__ import annotations

import re
import sqlite3
import sys
import types
import typing
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from pitchpipe.config.root_fields import ConfigFields
from pitchpipe.config.sections import (
    PLATFORMS,
    AlgorithmConfig,
    CheckpointConfig,
    Confidence,
    Directory,
    Duration,
    EarlierSearches,
    Environment,
    ExistingFile,
    GainLimit,
    GpuIndices,
    MaxFailures,
    Memory,
    ObjectiveConfig,
    Points,
    PositiveDuration,
    PriorConfig,
    RepeatsConfig,
    ResourcesConfig,
    Section,
    StopConfig,
    Storage,
    WorkingDirectory,
)
from pitchpipe.runner.experiment_state import EXPERIMENT_MOVES
from pitchpipe.runner.trial import TRIAL_MOVES
from pitchpipe.store.schema import MIGRATIONS

_BLOCK = re.compile(r"(<!-- table: (?P<name>[\w -]+) -->\n).*?(?=<!-- end of table -->)", re.DOTALL)
_COMMENT = re.compile(r"^ +(?P<column>\w+) .*-- (?P<comment>.+)$", re.MULTILINE)
_CREATED = re.compile(r"CREATE TABLE (?P<table>\w+) \(.*?\n\)", re.DOTALL)

# What the schema does not say beside a column, because its name does.
_MEANINGS = {
    "experiment.id": "the name of the folder",
    "experiment.name": "`experiment_name`",
    "experiment.status": "see the moves of an experiment in architecture.md",
    "experiment.reason": "why it ended early",
    "experiment.error": "a traceback, if one ended it",
    "experiment.end_time": "null while it runs",
    "experiment.snapshot": "JSON: what a resumed manager needs besides the trials",
    "trials.sequence_id": "0, 1, 2 ... in the order in which they were made",
    "trials.trial_id": "five letters and digits",
    "trials.status": "see the moves of a trial in architecture.md",
    "trials.created": "when its parameters arrived",
    "trials.start_time": "when its process or function began",
    "trials.end_time": "null until it has ended",
    "trials.reason": "why it ended as it did",
    "trials.attempt": "how often an executor was asked to start it",
    "trials.pid": "its process",
    "trials.next_sequence": "how many intermediate results there are",
    "trials.finals": "how often it reported a final result; the first counts",
    "trials.next_unsent": "number of the next intermediate result that the dispatcher is sent",
    "trials.first_sequence": "the first intermediate result of this attempt",
    "trials.checkpoint": "what the next attempt starts from, a path in the experiment's folder",
    "trials.checkpoint_sequence": "the first intermediate result of an attempt that starts from it",
    "trials.copy_of": "the checkpoint of another trial that is copied there first",
    "trials.budget": "as the tuner gave it",
    "trials.failed": "JSON: how many attempts failed, by kind of failure",
    "trials.resume": "JSON: a resume that waits for the pause",
    "trials.user_retries": "how often the user had it tried again after it had failed",
    "trials.code": "the digest of what its last attempt ran: a row of code_versions",
    "metrics.superseded": "1: a later attempt reported, or will report, this result again; it does not count",
    "metrics.sequence_id": "of the trial",
    "metrics.sequence": "0, 1, 2 ... within its kind",
    "metrics.attempt": "which attempt reported it",
    "metrics.time": "when it was reported",
    "objective_values.sequence_id": "of the trial",
    "objective_values.name": "of the objective; `default` is the usual one",
    "objective_values.value": "in the final result",
    "commands.n": "1, 2, 3 ...; this is the number of the command",
    "commands.code": "two letters, see the pipe in architecture.md",
    "commands.payload": "JSON",
    "replies.n": "1, 2, 3 ...",
    "replies.code": "two letters",
    "replies.payload": "JSON",
}

SECTIONS: dict[str, type[Section]] = {
    "fields of the root": ConfigFields,
    "fields of tuner and assessor": AlgorithmConfig,
    "fields of objectives": ObjectiveConfig,
    "fields of priors": PriorConfig,
    "fields of repeats": RepeatsConfig,
    "fields of resources": ResourcesConfig,
    "fields of stop_when": StopConfig,
    "fields of checkpoint": CheckpointConfig,
    **{f"fields of platform {name}": model for name, model in PLATFORMS.items()},
}
# Types of which the page says what users write, not what it becomes.
_TYPES: list[tuple[Any, str]] = [
    (Duration, "duration"),
    (PositiveDuration, "duration"),
    (Memory, "memory"),
    (GpuIndices, "GPU indices"),
    (Directory, "directory"),
    (WorkingDirectory, "directory"),
    (ExistingFile, "file"),
    (Environment, "mapping of text"),
    (Points, "list of mappings"),
    (EarlierSearches, "list of text"),
    (Confidence, "word or number"),
    (GainLimit, "number or `noise`"),
    (MaxFailures, "integer or mapping of integers"),
    (Storage, "directory or URL"),
    (Any, "any value"),
    (str, "text"),
    (int, "integer"),
    (float, "number"),
    (bool, "true or false"),
    (tuple, "list"),
    (dict, "mapping"),
]
# Defaults that depend on other fields.
_DEFAULTS_IN_WORDS = {"objectives": "direction of the tuner", "assessor": "see there"}


class TableError(LookupError):
    """A page asks for a table that does not exist, or a column has no meaning yet."""


def redraw(page: str) -> str:
    """Return a page with its tables and diagrams redrawn; raise `TableError` for one that does not exist.

    >>> print(redraw("<!-- table: moves of an experiment -->\\n<!-- end of table -->").splitlines()[4])
        INITIALIZED --> RUNNING
    """
    return _BLOCK.sub(lambda found: found[1] + table(found["name"]), page)


def table(name: str) -> str:
    """Return the table or diagram of this name, as Markdown; raise `TableError` if there is none."""
    if name == "moves of a trial":
        return _trial_moves()
    if name == "moves of an experiment":
        return _experiment_moves()
    if name in SECTIONS:
        return _markdown(("field", "type", "default", "meaning"), _fields(SECTIONS[name]))
    columns = _columns().get(name)
    if columns is None:
        raise TableError(f"there is no table {name!r} to draw")
    return _markdown(("column", "type", "meaning"), columns)


def _trial_moves() -> str:
    """Return the diagram of `TRIAL_MOVES`; one arrow may carry several causes."""
    causes: dict[tuple[str, str], list[str]] = {}
    for status, moves in TRIAL_MOVES.items():
        for cause, target in moves.items():
            causes.setdefault((status, target), []).append(cause)
    arrows = [f"{status} --> {target}: {', '.join(names)}" for (status, target), names in causes.items()]
    ends = [f"{status} --> [*]" for status, moves in TRIAL_MOVES.items() if not moves]
    return _mermaid([f"[*] --> {next(iter(TRIAL_MOVES))}", *arrows, *ends])


def _experiment_moves() -> str:
    """Return the diagram of `EXPERIMENT_MOVES`; a status without a way in or out stands alone."""
    order = list(EXPERIMENT_MOVES)
    arrows = [
        f"{status} --> {target}"
        for status, targets in EXPERIMENT_MOVES.items()
        for target in sorted(targets, key=order.index)
    ]
    reached = set().union(*EXPERIMENT_MOVES.values())
    alone = [status for status, targets in EXPERIMENT_MOVES.items() if not targets and status not in reached]
    return _mermaid([f"[*] --> {order[0]}", *arrows, *alone])


def _mermaid(lines: Iterable[str]) -> str:
    return "```mermaid\nstateDiagram-v2\n" + "".join(f"    {line}\n" for line in lines) + "```\n"


def _columns() -> dict[str, list[Sequence[str]]]:
    """Return (column, type, meaning) of each table, as SQLite has it after all migrations."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript("".join(MIGRATIONS))
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        found = {name: db.execute(f"PRAGMA table_info({name})").fetchall() for name in names}
    meanings = _MEANINGS | dict(_comments())
    return {
        name: [_column_row(name, column, kind, meanings) for _, column, kind, *_ in columns]
        for name, columns in found.items()
    }


def _column_row(table_name: str, column: str, kind: str, meanings: dict[str, str]) -> Sequence[str]:
    key = f"{table_name}.{column}"
    if key not in meanings:
        raise TableError(f"{key} needs a comment in schema.py or a line in page_tables.py")
    return f"`{column}`", kind, meanings[key]


def _comments() -> Iterator[tuple[str, str]]:
    """Yield what the schema says beside its columns."""
    for created in _CREATED.finditer("".join(MIGRATIONS)):
        for found in _COMMENT.finditer(created[0]):
            yield f"{created['table']}.{found['column']}", found["comment"]


def _fields(section: type[Section]) -> Iterator[Sequence[str]]:
    """Yield (field, type, default, meaning) of each field of a section of the config."""
    hints = typing.get_type_hints(section, include_extras=True)
    for name, info in section.model_fields.items():
        default = _DEFAULTS_IN_WORDS.get(name) or _default(info)
        yield f"`{name}`", _type(hints[name]), default, info.description or ""


def _type(hint: Any) -> str:
    for known, name in _TYPES:
        if hint == known:
            return name
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return _type(arguments[0])
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if origin in (typing.Union, types.UnionType):
        kinds = dict.fromkeys(_type(part) for part in arguments if part is not type(None))
        return " or ".join(kinds)
    return _type(origin) if origin else "section"


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    value = info.get_default(call_default_factory=True, validated_data={})
    return "" if value is None or value is PydanticUndefined else f"`{_written(value)}`"


def _written(value: Any) -> str:
    if isinstance(value, Section):
        given = [name for name in type(value).model_fields if name in value.model_fields_set]
        return "{" + ", ".join(f"{name}: {getattr(value, name)}" for name in given) + "}"
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_written, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_written(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def main(paths: Sequence[str]) -> None:
    """Rewrite the pages at these paths."""
    for path in map(Path, paths):
        path.write_text(redraw(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
