"""The entry of the dispatcher process; see process.py."""

import sys

from .process import main

if __name__ == "__main__":
    sys.exit(main())
