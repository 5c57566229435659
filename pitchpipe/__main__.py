"""`python -m pitchpipe` is the command line."""

# The sub-packages lie beside this folder until the package is built, where type checkers do not see them.
from .cli import main  # pyright: ignore[reportMissingImports]

if __name__ == "__main__":
    main()
