"""Why trials failed: grouped by failure, with the last lines of their output."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from nicegui import html

from ...store.reading import FailureGroup, ending_beside, escaped, excerpt, hint_text
from .elements import attributed, badge, panel
from .frame import Where

__all__ = ["FailuresPanel"]

_MOST_GROUPS = 20
_MOST_LINKS = 8
_LINES = 6


class FailuresPanel:
    """The panel of the overview; it appears once a trial has failed."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._shown: Any = None
        with panel("Why trials failed") as self._panel:
            self._body = html.div().classes("pp-stack")
        self._panel.props("id=failures")
        self._panel.set_visibility(False)

    def show(self, groups: list[FailureGroup], failed: int) -> None:
        """Show these groups; `failed` is the number of trials in them."""
        shown = [(group.count, group.reason) for group in groups]
        if shown == self._shown:
            return
        self._shown = shown
        self._panel.set_visibility(bool(groups))
        self._body.clear()
        with self._body:
            for group in groups[:_MOST_GROUPS]:
                _group(group, self._where)
            _rest(groups[_MOST_GROUPS:], failed, self._where)


def _group(group: FailureGroup, where: Where) -> None:
    with html.article().classes("pp-box"):
        with html.div().classes("pp-row"):
            html.strong("1 trial" if group.count == 1 else f"{group.count} trials")
            badge(group.kind or "FAILED", "bad")
            if ending := ending_beside(group.reason, group.exit_code):
                html.span(ending).classes("pp-dim")
        html.p(escaped(_sentence(group))).classes("pp-reason")
        if hint := hint_text(group.error or group.reason):
            html.p(escaped(hint))
        if before := _lines_before(group):
            html.pre(escaped(before, keep="\n\t")).classes("pp-dim")
        _links(group, where)


def _links(group: FailureGroup, where: Where) -> None:
    with html.div().classes("pp-row"):
        html.span("Trials").classes("pp-dim")
        for number in group.sequence_ids[:_MOST_LINKS]:
            link = html.a(str(number), href=where.path(f"trials/{number}"))
            attributed(link, aria_label=f"Trial {number}")
        if group.count > _MOST_LINKS:
            address = f"{where.path('trials')}?{urlencode({'status': 'FAILED'})}"
            html.a(f"and {group.count - _MOST_LINKS} more", href=address)


def _rest(groups: list[FailureGroup], failed: int, where: Where) -> None:
    if groups:
        others = sum(group.count for group in groups)
        address = f"{where.path('trials')}?{urlencode({'status': 'FAILED'})}"
        html.a(f"{others} of {failed} failed trials failed in {len(groups)} other ways", href=address)


def _sentence(group: FailureGroup) -> str:
    """Return the reason, with the last line unless that is the reason already."""
    return group.reason if group.last_line in group.reason else f"{group.reason}: {group.last_line}"


def _lines_before(group: FailureGroup) -> str:
    """Return the lines before the last one of the traceback."""
    return "\n".join(excerpt(group.error, _LINES))
