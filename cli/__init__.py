"""The command line: `pitchpipe VERB`; a verb is imported when it is used."""

from __future__ import annotations

from ..protocol import lazy_names
from .import_interrupts import ended_by_interrupts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .app import pitchpipe, run
    from .failures import FAILED, USAGE, Failure
    from .lookup import chosen_experiment
    from .printing import print_table
    from .verb import FILE, WholeNumber
else:
    __getattr__ = lazy_names(__name__, __file__)


def main(execute: Callable[[list[str]], int] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 bad config or usage, 130 interrupted.

    `execute` returns the exit code of another command's arguments.
    """
    with ended_by_interrupts():
        from .app import main as run_and_exit
    run_and_exit(execute)
