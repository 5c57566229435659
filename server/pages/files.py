"""The files that a trial wrote: images are shown, all can be saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from fastapi.responses import FileResponse
from nicegui import html

from ...store.reading import visible
from .elements import panel
from .frame import Where

__all__ = ["FilesPanel", "file_response"]

_MOST = 100
_MOST_IMAGES = 12
# Only these are shown: anything else, a page or a drawing with a script, is saved.
_IMAGES: Mapping[str, str] = MappingProxyType(
    {
        ".png": "image/png",
        ".jpg": "image/jpeg",
        ".jpeg": "image/jpeg",
        ".gif": "image/gif",
        ".webp": "image/webp",
    }
)


def file_response(path: Path) -> FileResponse:
    """Return a file for the browser: an image to be shown, anything else to be saved."""
    kind = _IMAGES.get(path.suffix.lower())
    shown = "inline" if kind else "attachment"
    return FileResponse(
        path,
        media_type=kind or "application/octet-stream",
        filename=path.name,
        content_disposition_type=shown,
    )


class FilesPanel:
    """The panel of the trial's page; it appears once there is a file."""

    def __init__(self, where: Where, number: int) -> None:
        self._root = where.path(f"trials/{number}/files")
        self._shown: Any = None
        with panel("Files") as self._panel:
            self._body = html.div().classes("pp-stack")
        self._panel.set_visibility(False)

    def show(self, files: Sequence[tuple[str, int]]) -> None:
        """Show these files, each with its size in bytes."""
        if files == self._shown:
            return
        self._shown = files
        self._panel.set_visibility(bool(files))
        self._body.clear()
        images = [name for name, _ in files if Path(name).suffix.lower() in _IMAGES][:_MOST_IMAGES]
        with self._body:
            with html.div().classes("pp-images"):
                for name in images:
                    with html.a(href=self._address(name)):
                        html.img(src=self._address(name), alt=visible(name), loading="lazy")
            with html.ul().classes("pp-files"):
                for name, size in files[:_MOST]:
                    with html.li():
                        html.a(visible(name), href=self._address(name))
                        html.span(f" {_size_text(size)}").classes("pp-dim")
            if len(files) > _MOST:
                html.p(f"and {len(files) - _MOST} more").classes("pp-dim")

    def _address(self, name: str) -> str:
        return f"{self._root}/{quote(name)}"


def _size_text(size: int) -> str:
    """Return a size in words.

    >>> _size_text(900), _size_text(12_345), _size_text(7_000_000)
    ('900 B', '12 kB', '7 MB')
    """
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}" if size < 10 * factor else f"{size / factor:.0f} {unit}"
    return f"{size} B"
