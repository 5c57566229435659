"""The command line: `pitchpipe VERB`; a verb is imported when it is used."""

from __future__ import annotations

from .imports import ended_by_interrupts

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 bad config or usage, 130 interrupted."""
    with ended_by_interrupts():
        from .app import main as run
    run()


def nnictl() -> None:
    """Run a command line of NNI's `nnictl`, and exit as `main` does."""
    with ended_by_interrupts():
        from .nnictl_script import main as run
    run()
