"""NNI's functions where they differ from Pitchpipe's, and `python -m pitchpipe.nni train.py`, which runs a script.

Inside an experiment, scripts that import nni need no such help. A real nni, where one is installed, is used.
"""

# Type checkers do not find the sub-packages: they are beside this folder until the package is built.
from __future__ import annotations

import os
import runpy
import sys

from .nni_compat import PATH, activate  # pyright: ignore[reportMissingImports]
from .trial_agent import get_budget  # pyright: ignore[reportMissingImports]
from .trial_agent import get_next_parameter as own_parameters  # pyright: ignore[reportMissingImports]

TYPE_CHECKING = False  # `typing` costs 2 ms at import, and every script that imports nni imports this
if TYPE_CHECKING:
    from typing import Any

__all__ = ["get_next_parameter", "main"]


def get_next_parameter() -> dict[str, Any]:
    """Return the parameters of this trial, with the budget of Hyperband or BOHB as `TRIAL_BUDGET`.

    >>> get_next_parameter()
    {}
    """
    parameters, budget = own_parameters(), get_budget()
    if budget is not None:
        parameters["TRIAL_BUDGET"] = int(budget) if budget == int(budget) else budget
    return parameters


def main(arguments: list[str] | None = None) -> None:
    """Run the script that the first argument names, with the other arguments; `--path` prints the alias's folder."""
    given = sys.argv[1:] if arguments is None else arguments
    if not given:
        raise SystemExit(
            "usage: python -m pitchpipe.nni SCRIPT [ARGUMENT]...  or  python -m pitchpipe.nni --path"
        )
    if given == ["--path"]:
        print(PATH)
        return
    if not os.path.isfile(given[0]):
        raise SystemExit(f"python -m pitchpipe.nni: there is no script {given[0]}")
    activate()
    sys.argv = given
    sys.path[0] = os.path.dirname(os.path.abspath(given[0]))
    runpy.run_path(given[0], run_name="__main__")


if __name__ == "__main__":
    main()
