"""The digest of a trial that is a Python function: equal as long as nothing changes that it uses."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.manager.function_digest import function_files
from pitchpipe.sdk.loaded_code import file_digest


def objective(parameters: dict[str, float]) -> float:
    return parameters["x"]


class Objective:
    """A callable object."""

    def __call__(self, parameters: dict[str, float]) -> float:
        return parameters["x"]


@pytest.mark.parametrize(
    "function", [objective, partial(objective), Objective, Objective(), Objective().__call__]
)
def test_function_has_the_digest_of_its_file(function: object) -> None:
    here = Path(__file__)
    assert callable(function)
    assert function_files(function, here.parent) == {here.name: file_digest(str(here))}
    assert function_files(function, Path("/no/such/folder")) == {str(here): file_digest(str(here))}


def test_function_without_a_file_has_one_of_its_code() -> None:
    def made(source: str) -> dict[str, str]:
        space: dict[str, object] = {}
        exec(source, space)
        function = space["f"]
        assert callable(function)
        return function_files(function, Path("/"))

    once, twice = (made("def f(p): return p['x'] in {'a', 'b', 'c'}") for _ in range(2))
    assert once == twice
    assert once != made("def f(p): return p['x'] in {'a', 'b', 'd'}")
    assert list(once) == ["f()"]


PROGRAM = """
from functools import lru_cache, partial
EPOCHS = 3
WIDTHS = {"small": [1, 2], "large": {8, 9}}
@lru_cache
def scaled(x): return x * 2
class Net:
    depth = 4
    def forward(self, x): return scaled(x) + self.depth
def made(k):
    def inner(p): return k
    return inner
def train(p, rate=0.1): return [Net().forward(p["x"]) * EPOCHS for _ in WIDTHS]
def never(): return 7
inner, part = made(5), partial(train, rate=0.3)
MOST = 20
def search(): return MOST, train
"""


def of_program(name: str, *change: str) -> dict[str, str]:
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(PROGRAM.replace(*change) if change else PROGRAM, space)
    return function_files(space[name], Path("/"))


@pytest.mark.parametrize(
    "change", [("MOST = 20", "MOST = 24"), ("return 7", "return 8"), ("EPOCHS = 3", "\nEPOCHS = 3")]
)
def test_function_of_the_program_is_the_same_whatever_it_does_not_use(change: tuple[str, str]) -> None:
    assert list(of_program("train")) == ["train()"]
    assert of_program("train") == of_program("train", *change)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("train", ("EPOCHS = 3", "EPOCHS = 4")),
        ("train", ("{8, 9}", "{8, 10}")),
        ("train", ("x * 2", "x * 3")),
        ("train", ("depth = 4", "depth = 5")),
        ("train", ("rate=0.1", "rate=0.2")),
        ("train", ("* EPOCHS", "+ EPOCHS")),
        ("Net", ("+ self.depth", "- self.depth")),
        ("inner", ("made(5)", "made(6)")),
        ("part", ("rate=0.3", "rate=0.4")),
    ],
)
def test_function_of_the_program_has_changed_with_what_it_uses(name: str, change: tuple[str, str]) -> None:
    assert of_program(name) != of_program(name, *change)


DATA = """
def made(number):
    def step(): return number
    return step
STEPS = {*map(made, range(20)), ("a", "b")}
DEEP = [RATE]
for _ in range(5_000):
    DEEP = [DEEP]
RING = [1]
RING.append(RING)
def train(p): return STEPS, DEEP, RING
"""


def data(source: str = DATA, rate: float = 0.1) -> dict[str, Any]:
    space: dict[str, Any] = {"__name__": "__main__", "RATE": rate}
    exec(source, space)
    return space


def digest(space: dict[str, Any]) -> dict[str, str]:
    return function_files(space["train"], Path("/"))


def test_data_of_any_shape_has_a_digest() -> None:
    several = [data() for _ in range(5)]  # they exist at once, so that their objects have other addresses
    (same,) = {str(digest(space)) for space in several}
    for other in (
        data(rate=0.2),
        data(DATA.replace("range(20)", "range(21)")),
        data(DATA.replace('"b"', '"c"')),
        data(DATA.replace("[1]", "[2]")),
    ):
        assert str(digest(other)) != same


@pytest.mark.parametrize(
    "made", ["[0.5] * {}", "set(range({}))", "dict.fromkeys(range({}))", "'x' * {}", "b'x' * {}"]
)
def test_large_data_count_by_their_size_and_their_beginning(made: str) -> None:
    def of(size: int) -> dict[str, str]:
        return digest(data(f"DATA = {made.format(size)}\ndef train(p): return DATA\n"))

    for size in (3, 50_000, 3_000_000):
        assert of(size) == of(size) != of(size + 1)
