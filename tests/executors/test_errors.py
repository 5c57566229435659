"""The error of an executor can be caught by a process that needs no executor."""

from __future__ import annotations

import subprocess
import sys


def test_error_is_known_without_loading_an_executor() -> None:
    program = """
import sys
from pitchpipe.executors import ExecutorError
print(issubclass(ExecutorError, Exception), "pitchpipe.runner" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]
