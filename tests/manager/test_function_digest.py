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
def first(): return 1
def second(): return 2
STEPS = {first, second, ("a", "b")}
DEEP = [RATE]
for _ in range(5_000):
    DEEP = [DEEP]
RING = [1]
RING.append(RING)
TABLE, NAMES, TEXT = [0.5] * SIZE, set(map(str, range(SIZE))), "x" * SIZE
def train(p): return STEPS, DEEP, RING, TABLE, NAMES, TEXT
"""


def data(source: str = DATA, rate: float = 0.1, size: int = 3) -> dict[str, Any]:
    space: dict[str, Any] = {"__name__": "__main__", "RATE": rate, "SIZE": size}
    exec(source, space)
    return space


def digest(space: dict[str, Any]) -> dict[str, str]:
    return function_files(space["train"], Path("/"))


def test_data_of_any_shape_and_size_has_a_digest() -> None:
    first, second = data(), data()  # both exist, so that their objects have other addresses
    assert digest(first) == digest(second)
    for other in (
        data(rate=0.2),
        data(size=4),
        data(DATA.replace("return 2", "return 3")),
        data(DATA.replace('"b"', '"c"')),
    ):
        assert digest(other) != digest(first)
    assert digest(data(size=3_000_000)) == digest(data(size=3_000_000)) != digest(data(size=3_000_001))
