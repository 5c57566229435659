"""Attempts in time: at one place each, and of very many the stretches that they fill."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from itertools import islice

_MOST = 5_000
_FINEST = 2_000  # stretches of a row: a smaller gap between two of them is invisible


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One attempt of a trial at one place, or `count` that followed each other; `end` is None while it runs."""

    number: int
    worker: str
    start: float
    end: float | None
    status: str
    count: int = 1


def joined(spans: Iterable[Span], apart: Container[int] = ()) -> list[Span]:
    """Return some thousand spans for all: those of a worker and a status that follow each other become one.

    `spans` are in the order of their start. Those of trials in `apart`, and what runs, stay alone.

    >>> work = [Span(number=n, worker="a", start=n, end=n + 1, status="FAILED") for n in range(9)]
    >>> [(one.start, one.end, one.count) for one in joined(work, apart=[5])]
    [(0, 5, 5), (5, 6, 1), (6, 9, 3)]
    """
    found, gap, others = list[Span](), 0.0, iter(spans)
    while more := list(islice(others, _MOST)):
        found = _joined([*found, *more], gap, apart)
        seconds = found[-1].start - found[0].start
        while len(found) > _MOST and gap < seconds:
            gap = max(2 * gap, seconds / _FINEST)
            found = _joined(found, gap, apart)
    return found


def _joined(spans: Iterable[Span], gap: float, apart: Container[int]) -> list[Span]:
    found, last = list[Span](), dict[tuple[str, str], int]()
    for span in spans:
        place = last.get((span.worker, span.status))
        end = -math.inf if place is None else found[place].end
        if span.end is None or span.number in apart:
            found.append(span)
        elif place is not None and end is not None and span.start <= end + gap:
            before = found[place]
            found[place] = replace(before, end=max(end, span.end), count=before.count + span.count)
        else:
            last[span.worker, span.status] = len(found)
            found.append(span)
    return found
