"""Amounts of bytes in words."""

from __future__ import annotations

_DECIMAL = ("B", "kB", "MB", "GB", "TB")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB")


def size_text(size: float, *, is_memory: bool = False) -> str:
    """Return the size of a file in powers of 1000, that of memory in powers of 1024, as configs have it.

    >>> size_text(512), size_text(12_345), size_text(2_500_000)
    ('512 B', '12.3 kB', '2.5 MB')
    >>> size_text(1000 * 2**20, is_memory=True), size_text(3 * 2**29, is_memory=True)
    ('1000 MiB', '1.5 GiB')
    """
    step, units = (1024, _BINARY) if is_memory else (1000, _DECIMAL)
    for unit in units[:-1]:
        if size < step:
            return f"{float(f'{size:.3g}'):g} {unit}"
        size /= step
    return f"{float(f'{size:.3g}'):g} {units[-1]}"
