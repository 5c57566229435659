"""The entry of the dispatcher process; see process.py."""

from __future__ import annotations

import sys

from .process import main

if __name__ == "__main__":
    sys.exit(main())
