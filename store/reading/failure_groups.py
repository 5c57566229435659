"""How trials failed, in groups, and where: the values of one parameter with which most trials do.

A region is named only if chance hardly explains it: Fisher's exact test, with Bonferroni's correction for all regions
that were tried.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal

from ...protocol import Json
from ...runner import FailureKind, TrialStatus, fingerprint, last_line
from ...search_space import identity
from ..errors import understood
from .database import Database
from .json_values import flat, parsed

# Failures of a machine, and of an import, do not depend on the parameters.
_KINDS = (
    FailureKind.OOM,
    FailureKind.TIMEOUT,
    FailureKind.NAN,
    FailureKind.KILLED,
    FailureKind.USER_ERROR,
)
_AVOIDED_BY = ("auto", "tpe")
_FEWEST = 4  # failures of a kind
_MOST = 500  # trials that are read, the newest
_LEAST_SHARE = 0.6  # of the failures that the region must have
_SURE = 0.05  # how likely such a region may be by chance
_MOST_NUMBERS = 20  # of trials of a group


@dataclass(kw_only=True, slots=True)
class FailureGroup:
    """Trials that failed in the same way: how many, the first ones, and how the very first failed."""

    count: int = 0
    kind: str | None
    reason: str
    error: str | None
    exit_code: int | None
    attempt: int
    sequence_ids: list[int] = field(default_factory=list)
    # Of the error of the first trial; a field, because the API writes the fields.
    last_line: str = field(init=False)

    def __post_init__(self) -> None:
        self.last_line = last_line(self.error)

    @property
    def sequence_id(self) -> int:
        """The number of the first trial."""
        return self.sequence_ids[0]


def read_failures(db: Database) -> list[FailureGroup]:
    """Return the groups of failed trials, the largest first; failures that differ only in numbers are alike."""
    # With one min(), SQLite takes the other columns from the row that has the minimum.
    rows = db.rows(
        "SELECT min(sequence_id) AS first, kind, reason, error, exit_code, attempt, count(*),"
        " group_concat(sequence_id) FROM trials WHERE status = 'FAILED' GROUP BY kind, reason, error ORDER BY first"
    )
    groups: dict[tuple[str | None, str], FailureGroup] = {}
    with understood(db.path, "a failed trial"):
        for _, kind, reason, error, exit_code, attempt, count, listed in rows:
            last = last_line(error)
            key = (kind, fingerprint(reason if last in reason else f"{reason}: {last}"))
            made = FailureGroup(kind=kind, reason=reason, error=error, exit_code=exit_code, attempt=attempt)
            group = groups.setdefault(key, made)
            group.count += count
            group.sequence_ids += sorted(map(int, listed.split(",")))[:_MOST_NUMBERS]
    for group in groups.values():
        group.sequence_ids = sorted(group.sequence_ids)[:_MOST_NUMBERS]
    return sorted(groups.values(), key=lambda group: -group.count)


def read_retries(db: Database) -> dict[str, int]:
    """Return how many failed attempts were run again, by kind of failure, the most frequent first."""
    rows = db.rows("SELECT status, kind, failed FROM trials WHERE failed IS NOT NULL AND attempt > 1")
    counts: Counter[str] = Counter()
    with understood(db.path, "a failed trial"):
        for status, kind, failed in rows:
            counts.update(parsed(failed))
            if status == TrialStatus.FAILED and kind is not None:
                counts[kind] -= 1  # the last failure had no next attempt
    return {kind: count for kind, count in counts.most_common() if count > 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRegion:
    """Values of a `parameter` with which most trials fail in one way: those `side` a number, or one option.

    `failed` trials with these values failed in this way, `well` ones did not fail. `has_others`: trials failed in other
    ways, too, and are not counted here. `is_avoided`: the tuner learns where trials fail. `recent` of the newest
    `of_recent` trials have these values, however they ended.
    """

    kind: FailureKind
    parameter: str
    side: Literal["below", "above", "is"]
    value: Json
    failed: int
    well: int
    has_others: bool = False
    is_avoided: bool = False
    recent: int = 0
    of_recent: int = 0


def read_failure_regions(db: Database) -> list[FailureRegion]:
    """Return the region of each kind of failure that has one."""
    counted = db.row("SELECT count(*) FROM trials WHERE status = 'FAILED'")
    if counted is None or counted[0] < _FEWEST:
        return []
    rows = db.rows(
        "SELECT kind, record FROM trials WHERE status IN ('SUCCEEDED', 'EARLY_STOPPED', 'FAILED')"
        " ORDER BY sequence_id DESC LIMIT ?",
        (_MOST,),
    )
    with understood(db.path, "a failed trial"):
        trials = [(kind, flat(parsed(record)["parameters"])) for kind, record in rows]
    name = str((db.config().get("tuner") or {}).get("name") or "")
    is_avoided = name.replace("_", "").lower() in _AVOIDED_BY
    newest = [parameters for _, parameters in trials[: len(trials) // 2]]
    return [
        replace(
            region,
            is_avoided=is_avoided,
            recent=sum(_is_in(region, parameters) for parameters in newest),
            of_recent=len(newest),
        )
        for region in failure_regions(trials)
    ]


def _is_in(region: FailureRegion, parameters: Mapping[str, Json]) -> bool:
    """Return whether flat parameters have the values of a region."""
    name = region.parameter if region.parameter in parameters else f"{region.parameter}._name"
    if name not in parameters:
        return False
    value: Any = parameters[name]
    if region.side == "is":
        return identity(value) == identity(region.value)
    return value < region.value if region.side == "below" else value > region.value


def failure_regions(trials: Sequence[tuple[str | None, Mapping[str, Json]]]) -> list[FailureRegion]:
    """Return the regions for pairs of a kind of failure, None for a trial that did not fail, and flat parameters.

    >>> trials = [("OOM" if n > 6 else None, {"width": 2**n}) for n in range(12)]
    >>> [(region.parameter, region.side, region.value) for region in failure_regions(trials)]
    [('width', 'above', 64)]
    """
    well = [parameters for kind, parameters in trials if kind is None]
    clear = list[FailureRegion]()
    for kind in _KINDS:
        failed = [parameters for one, parameters in trials if one == kind]
        if len(failed) < _FEWEST or not well:
            continue
        regions = list(_regions(kind, failed, well))
        best = max(
            regions, key=lambda region: region.failed / len(failed) - region.well / len(well), default=None
        )
        if best and _is_clear(best, len(failed), len(well), len(regions)):
            # Trials that fail otherwise may be most of those with these values, and say nothing about this failure.
            clear.append(replace(best, has_others=len(failed) + len(well) < len(trials)))
    return clear


def _regions(
    kind: FailureKind, failed: Sequence[Mapping[str, Json]], well: Sequence[Mapping[str, Json]]
) -> Iterator[FailureRegion]:
    """Yield the regions below and above each value of a number, and that of each option."""
    for name in dict.fromkeys(name for parameters in failed for name in parameters):
        pairs = [(one[name], 1) for one in failed if name in one] + [
            (one[name], 0) for one in well if name in one
        ]
        is_number = all(isinstance(value, int | float) and not isinstance(value, bool) for value, _ in pairs)
        for side, value, bad, count in (_halves if is_number else _options)(pairs):
            parameter = name.removesuffix("._name")
            yield FailureRegion(
                kind=kind, parameter=parameter, side=side, value=value, failed=bad, well=count - bad
            )


_Part = tuple[Literal["below", "above", "is"], Any, int, int]  # side, value, failed trials, all trials


def _halves(pairs: Sequence[tuple[float, int]]) -> Iterator[_Part]:
    total, count, failed = sum(bad for _, bad in pairs), 0, 0
    for (value, bad), (following, _) in pairwise(sorted(pairs)):
        count, failed = count + 1, failed + bad
        if value < following:
            yield "below", following, failed, count
            yield "above", value, total - failed, len(pairs) - count


def _options(pairs: Sequence[tuple[Any, int]]) -> Iterator[_Part]:
    for key, option in {identity(value): value for value, _ in pairs}.items():
        chosen = [bad for value, bad in pairs if identity(value) == key]
        yield "is", option, sum(chosen), len(chosen)


def _is_clear(region: FailureRegion, failed: int, well: int, tried: int) -> bool:
    """Return whether most trials of a region fail, and most failures are there, and hardly by chance."""
    if region.failed < max(_FEWEST, _LEAST_SHARE * failed) or region.failed <= region.well:
        return False
    size, every = region.failed + region.well, failed + well
    ways = sum(
        math.comb(failed, k) * math.comb(well, size - k)
        for k in range(region.failed, min(failed, size) + 1)
        if size - k <= well
    )
    return ways * tried <= _SURE * math.comb(every, size)
