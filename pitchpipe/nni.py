"""`python -m pitchpipe.nni train.py`: runs a script that imports nni."""

# Type checkers do not find the sub-packages: they are beside this folder until the package is built.
from __future__ import annotations

from .compat.nni import run_script as main  # pyright: ignore[reportMissingImports]

if __name__ == "__main__":
    main()
