"""What `pitchpipe.manager` offers by name."""

from __future__ import annotations

import subprocess
import sys


def test_package_alone_loads_nothing_heavy() -> None:
    code = "import sys, pitchpipe.manager; print(sorted({'pydantic', 'numpy', 'asyncio', 'ray'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
