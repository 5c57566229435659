"""What `pitchpipe.manager` offers by name."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pitchpipe.manager


@pytest.mark.parametrize("name", pitchpipe.manager.__all__)
def test_exported_name_is_what_it_says(name: str) -> None:
    assert getattr(pitchpipe.manager, name).__name__ == name


def test_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = pitchpipe.manager.Nothing


def test_package_alone_loads_nothing_heavy() -> None:
    code = "import sys, pitchpipe.manager; print(sorted({'pydantic', 'numpy', 'asyncio', 'ray'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
