"""A function that cannot be sent to a trial: its error names the variable, however deep it is."""

import functools
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any

import pytest

from pitchpipe.trial_agent import pickled


class Net:
    """An object with something in it that cannot be pickled."""

    def __init__(self) -> None:
        self.fine = 1
        self.layers = {"first": [2, threading.Lock()]}

    def train(self, parameters: dict[str, Any]) -> float:
        return parameters["x"]


# As in a program: what is in `__main__` is pickled by value.
PROGRAM = """
def by_name(parameters): return fine and lock
def in_object(parameters): return net and parameters
def by_attribute(parameters): return net.fine
def inside(parameters): return [lock for each in parameters]
def as_default(parameters, other=1, handle=lock): return parameters
def as_keyword(parameters, *, handle=lock): return parameters
def enclosing():
    tools = [1, lock]
    def train(parameters): return tools
    return train
in_closure = enclosing()
class Trial:
    helper = lock
    def step(self): return 1
def first(parameters): return first and second
def second(parameters): return lock
"""


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(Net, "__module__", "__main__")
    found: dict[str, Any] = {"__name__": "__main__", "lock": threading.Lock(), "net": Net(), "fine": 1}
    exec(PROGRAM, found)
    return found


DEEP = "net.layers['first'][1]"


@pytest.mark.parametrize(
    ("name", "culprit"),
    [
        ("by_name", "lock"),
        ("in_object", DEEP),
        ("by_attribute", DEEP),
        ("inside", "lock"),
        ("as_default", "handle"),
        ("as_keyword", "handle"),
        ("in_closure", "tools[1]"),
        ("Trial", "helper"),
        ("first", "second.lock"),
    ],
)
def test_variable_is_named(name: str, culprit: str, program: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="uses") as caught:
        pickled(program[name])
    assert str(caught.value).partition(" uses ")[2].partition(", which")[0] == culprit


@pytest.mark.parametrize(
    "wrapped", [functools.partial, lambda train: functools.partial(print, train), lambda train: [train]]
)
def test_variable_is_named_of_a_function_in_something(
    wrapped: Callable[[FunctionType], Any], program: dict[str, Any]
) -> None:
    with pytest.raises(TypeError, match=r"lock, which"):
        pickled(wrapped(program["by_name"]))


def test_object_of_no_parts_is_named_itself() -> None:
    with pytest.raises(TypeError, match=r"^lock cannot be sent"):
        pickled(threading.Lock())
