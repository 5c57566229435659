"""Where trials fail: the values of one parameter with which most trials do, for each kind of failure."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from ...runner import FailureKind
from ...search_space import identity
from ..errors import understood
from .configuration import read_config
from .database import Database
from .json_values import parsed
from .words import flat, number_text

__all__ = ["failure_regions", "read_failure_regions"]

# Failures of a machine, and of an import, do not depend on the parameters.
_WORDS: Mapping[str, str] = MappingProxyType(
    {
        FailureKind.OOM: "out of memory",
        FailureKind.TIMEOUT: "too slow",
        FailureKind.NAN: "NaN",
        FailureKind.KILLED: "killed",
        FailureKind.USER_ERROR: "an error of the script",
    }
)
_AVOIDED_BY = ("auto", "tpe")
_FEWEST = 4  # failures of a kind
_MOST = 500  # trials that are read, the newest
_LEAST_SHARE = 0.6  # of the failures that the region must have
_SURE = 0.05  # how likely such a region may be by chance


@dataclass(frozen=True, slots=True)
class _Region:
    """Values of a parameter, the number of trials that failed there, and of those that did not."""

    text: str
    failed: int
    well: int


def read_failure_regions(db: Database) -> list[str]:
    """Return a sentence for each kind of failure that most trials with some values of a parameter have."""
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
    name = str((read_config(db).get("tuner") or {}).get("name") or "")
    suffix = "; the search avoids them" if name.replace("_", "").lower() in _AVOIDED_BY else ""
    return [text + suffix for text in failure_regions(trials)]


def failure_regions(trials: Sequence[tuple[str | None, Mapping[str, Any]]]) -> list[str]:
    """Return the sentences for pairs of a kind of failure, None for a trial that did not fail, and flat parameters.

    >>> trials = [("OOM" if n > 6 else None, {"width": 2**n}) for n in range(12)]
    >>> failure_regions(trials)
    ['most trials with width above 64 fail (out of memory)']
    """
    well = [parameters for kind, parameters in trials if kind is None]
    found = []
    for kind, words in _WORDS.items():
        failed = [parameters for one, parameters in trials if one == kind]
        if len(failed) < _FEWEST or not well:
            continue
        regions = list(_regions(failed, well))
        best = max(
            regions, key=lambda region: region.failed / len(failed) - region.well / len(well), default=None
        )
        if best and _is_clear(best, len(failed), len(well), len(regions)):
            # Trials that fail otherwise may be most of those with these values, and say nothing about this failure.
            has_others = len(failed) + len(well) < len(trials)
            share = f"{best.failed} of {best.failed + best.well}" if has_others else "most"
            aside = ", other failures aside" if has_others else ""
            found.append(f"{share} trials with {best.text} fail ({words}){aside}")
    return found


def _regions(failed: Sequence[Mapping[str, Any]], well: Sequence[Mapping[str, Any]]) -> Iterator[_Region]:
    for name in dict.fromkeys(name for parameters in failed for name in parameters):
        pairs = [(one[name], 1) for one in failed if name in one] + [
            (one[name], 0) for one in well if name in one
        ]
        is_number = all(isinstance(value, int | float) and not isinstance(value, bool) for value, _ in pairs)
        yield from (_halves if is_number else _options)(name.removesuffix("._name"), pairs)


def _halves(name: str, pairs: Sequence[tuple[float, int]]) -> Iterator[_Region]:
    """Yield the regions above and below each value."""
    ordered = sorted(pairs)
    total, count, failed = sum(bad for _, bad in pairs), 0, 0
    for (value, bad), (following, _) in pairwise(ordered):
        count, failed = count + 1, failed + bad
        if value < following:
            yield _Region(f"{name} below {number_text(following)}", failed, count - failed)
            bad_above = total - failed
            yield _Region(f"{name} above {number_text(value)}", bad_above, len(pairs) - count - bad_above)


def _options(name: str, pairs: Sequence[tuple[Any, int]]) -> Iterator[_Region]:
    """Yield the region of each option; those that look the same are written as JSON."""
    options = {identity(value): value for value, _ in pairs}
    alike = Counter(map(number_text, options.values()))
    for key, option in options.items():
        chosen = [bad for value, bad in pairs if identity(value) == key]
        text = number_text(option)
        yield _Region(
            f"{name} {text if alike[text] == 1 else json.dumps(option)}",
            sum(chosen),
            len(chosen) - sum(chosen),
        )


def _is_clear(region: _Region, failed: int, well: int, tried: int) -> bool:
    """Return whether most trials of a region fail, and most failures are there, and hardly by chance.

    Fisher's exact test, with Bonferroni's correction for the regions that were tried.
    """
    if region.failed < max(_FEWEST, _LEAST_SHARE * failed) or region.failed <= region.well:
        return False
    size, every = region.failed + region.well, failed + well
    ways = sum(
        math.comb(failed, k) * math.comb(well, size - k)
        for k in range(region.failed, min(failed, size) + 1)
        if size - k <= well
    )
    return ways * tried <= _SURE * math.comb(every, size)
