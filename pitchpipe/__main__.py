"""`python -m pitchpipe`: the command line."""

# Type checkers do not find the sub-packages: they are beside this folder until the package is built.
from __future__ import annotations

from .cli import main  # pyright: ignore[reportMissingImports]

if __name__ == "__main__":
    main()
