"""The command line: `pitchpipe VERB`; a verb is imported when it is used."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 bad config or usage, 130 interrupted."""
    from .app import main as run

    run()
