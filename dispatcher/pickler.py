"""Pickles a plug-in's state, and notes whose classes and functions that needs."""

from __future__ import annotations

from io import BytesIO
from types import FunctionType
from typing import Any

import cloudpickle


def pickle_of(value: object) -> tuple[bytes, set[str]]:
    """Return an object as a pickle, and the modules of the classes, their bases and the functions that it needs.

    >>> from pitchpipe.tuners import RandomTuner
    >>> needed = pickle_of(RandomTuner(seed=1))[1]
    >>> sorted({"pitchpipe.tuners.random", "pitchpipe.tuners.tuner", "pitchpipe.tuners.tpe"} & needed)
    ['pitchpipe.tuners.random', 'pitchpipe.tuners.tuner']
    """
    file = BytesIO()
    pickler = _Pickler(file)
    pickler.dump(value)
    bases = {base for one in pickler.classes for base in one.__mro__}
    return file.getvalue(), pickler.modules | {base.__module__ for base in bases}


class _Pickler(cloudpickle.Pickler):
    """Notes what it names."""

    def __init__(self, file: BytesIO) -> None:
        super().__init__(file)
        self.classes: set[type] = set()
        self.modules: set[str] = set()

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, FunctionType):
            self.modules.add(obj.__module__)
        else:
            self.classes.add(obj if isinstance(obj, type) else type(obj))
        return super().reducer_override(obj)
