"""Which code a checkpoint fits: that of the classes in it and of their bases, with the libraries that it needs."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pitchpipe.dispatcher.checkpointing import CheckpointUnusable, Saver, read_checkpoint
from pitchpipe.dispatcher.origin import Origin, misfit, pickle_of
from pitchpipe.tuners import create

PARENT = "class Parent:\n    pass\n"
CHILD = "from origin_parent import Parent\ndef helper(): pass\nclass Child(Parent):\n    pass\n"


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return the module of a user's class, whose base is in a second file."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "origin_parent.py").write_text(PARENT)
    (tmp_path / "origin_child.py").write_text(CHILD)
    yield importlib.import_module("origin_child")
    for name in ("origin_child", "origin_parent"):
        sys.modules.pop(name, None)


def saved(folder: Path, value: Any) -> Path:
    saver = Saver(folder)
    saver.begin(7, 0.0, 1)
    name = saver.add("default", lambda: {"tuner": value})
    assert name is not None
    return folder / name


@pytest.mark.parametrize("changed", ["origin_child", "origin_parent"])
def test_checkpoint_fits_until_the_code_of_a_class_or_of_its_base_changes(
    changed: str, child: Any, tmp_path: Path
) -> None:
    path = saved(tmp_path, [child.Child()])
    assert read_checkpoint(path)[0] == 7
    file = tmp_path / f"{changed}.py"
    text = file.read_text()
    file.write_text(text + "# another line\n")
    with pytest.raises(CheckpointUnusable, match=f"was written by other code of {changed}$"):
        read_checkpoint(path)
    file.write_text(text)
    assert read_checkpoint(path)[0] == 7


@pytest.mark.parametrize("value", [lambda module: module.helper, lambda module: module.Child])
def test_functions_and_classes_count_as_objects_do(value: Callable[[Any], Any], child: Any) -> None:
    assert "origin_child" in Origin(time.time()).of(pickle_of({"value": value(child)})[1])


def test_checkpoint_does_not_fit_code_that_changed_while_the_writer_ran(child: Any, tmp_path: Path) -> None:
    saver = Saver(tmp_path)
    (tmp_path / "origin_child.py").write_text(CHILD + "# this is not what runs\n")
    saver.begin(7, 0.0, 1)
    name = saver.add("default", lambda: {"tuner": child.Child()})
    assert name is not None
    with pytest.raises(CheckpointUnusable, match="origin_child"):
        read_checkpoint(tmp_path / name)


def test_checkpoint_whose_module_is_gone_is_unusable(child: Any, tmp_path: Path) -> None:
    path = saved(tmp_path, child.Child())
    (tmp_path / "origin_child.py").unlink()
    del sys.modules["origin_child"]
    with pytest.raises(CheckpointUnusable, match="needs origin_child, which cannot be imported"):
        read_checkpoint(path)


def test_checkpoint_fits_the_version_of_a_library_that_wrote_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, version = saved(tmp_path, np.zeros(3)), np.__version__
    assert read_checkpoint(path)[0] == 7
    monkeypatch.setattr(np, "__version__", "99.1")
    with pytest.raises(CheckpointUnusable, match=f"was written with numpy {version}$"):
        read_checkpoint(path)


def test_checkpoint_of_another_python_does_not_fit() -> None:
    needed = Origin(time.time()).of([])
    assert misfit(needed) == ""
    assert misfit({**needed, "python": "cpython-27"}) == "was written with python cpython-27"


@pytest.mark.parametrize("name", ["Auto", "GP", "SMAC", "Metis", "DNGO", "TPE", "Evolution"])
def test_built_in_tuners_name_their_own_code(name: str) -> None:
    tuner = create(name, seed=1)
    tuner.update_search_space({"x": {"_type": "uniform", "_value": [0, 1]}})
    needed = Origin(time.time()).of(pickle_of(tuner)[1])
    assert {type(tuner).__module__, "pitchpipe.tuners.tuner", "numpy", "python"} <= set(needed)
    assert misfit(needed) == ""
