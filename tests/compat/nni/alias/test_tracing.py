"""`nni.trace`: objects work as before, know how they were made, and are dumped and loaded by that."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from typing import Any

import pytest

from pitchpipe.compat.nni.alias.tracing import trace
from pitchpipe.compat.nni.alias.utils import dump, load


@trace
class Point:
    """A point."""

    def __init__(self, x: int, y: int = 0, *more: int, **named: Any) -> None:
        self.at = (x, y, *more)
        self.named = named

    def moved(self) -> int:
        return self.at[0] + 1


@trace(kw_only=False)
class ByPosition(list[int]):
    pass


class Child(Point):
    """Not traced itself."""


@trace
class TracedChild(Point):
    def __init__(self, z: int) -> None:
        super().__init__(z, z)


@trace(inheritable=True)
class Inheritable:
    def __init__(self, x: int = 1) -> None:
        self.x = x


class Heir(Inheritable):
    pass


@trace
def add(a: int, /, b: int, *, times: int = 1) -> int:
    """Add."""
    return (a + b) * times


@trace
def make_child(x: int) -> Child:
    return Child(x)


@trace()
def nothing(x: int) -> None:
    del x


def facts(found: Any) -> tuple[list[Any], dict[str, Any]]:
    return list(found.trace_args), dict(found.trace_kwargs)


def test_traced_class_works_as_before() -> None:
    point = Point(1, y=2, z=3)
    assert (point.at, point.named, point.moved()) == ((1, 2), {"z": 3}, 2)
    assert (Point.__name__, Point.__qualname__, Point.__module__) == ("Point", "Point", __name__)
    assert Point.__doc__ == "A point."
    assert isinstance(point, Point)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Point()  # type: ignore[call-arg]


def test_arguments_are_kept_by_name_where_they_have_one() -> None:
    assert facts(Point(1, z=3)) == ([], {"x": 1, "z": 3})
    assert facts(Point(1, 2, 3)) == ([1, 2, 3], {})
    assert facts(ByPosition([1, 2])) == ([[1, 2]], {})
    assert facts(add(1, 2, times=3)) == ([1], {"b": 2, "times": 3})
    assert Point(1).trace_symbol is Point.__base__


def test_subclass_is_traced_only_if_asked_for() -> None:
    assert not hasattr(Child(1), "trace_symbol")
    assert facts(TracedChild(4)) == ([], {"z": 4})
    assert TracedChild(4).at == (4, 4)
    assert facts(Heir(2)) == ([], {"x": 2})
    assert trace(Point) is Point
    parameters = [list(inspect.signature(one).parameters) for one in (Point, TracedChild, Heir)]
    assert parameters == [["x", "y", "more", "named"], ["z"], ["x"]]


def test_kept_arguments_do_not_change_with_those_of_the_call() -> None:
    @trace
    class Eater:
        def __init__(self, items: list[int], more: Any) -> None:
            items.clear()
            self.more = list(more)

    def numbers() -> Iterator[int]:
        yield from (1, 2)

    eater = Eater([1, 2], numbers())
    assert (eater.more, facts(eater)) == ([1, 2], ([], {"items": [1, 2], "more": [1, 2]}))


def test_results_of_a_traced_function_are_traced() -> None:
    total = add(1, 2)
    assert (total, total + 1, add.__doc__) == (3, 4, "Add.")
    child = make_child(5)
    assert isinstance(child, Child)
    assert (child.at, facts(child)) == ((5, 0), ([], {"x": 5}))
    assert facts(nothing(1)) == ([], {"x": 1})
    with pytest.raises(TypeError, match="a result of type bool cannot be traced"):
        trace(lambda: True)()


def test_copy_is_changed_and_made_into_an_object() -> None:
    point = Point(1, 2)
    assert point.get() is point
    copy = point.trace_copy()
    copy.trace_kwargs["y"] = 7
    assert (copy.get().at, point.trace_kwargs["y"]) == ((1, 7), 2)
    assert not hasattr(copy, "at")


@pytest.mark.parametrize(
    "value", [Point(1, 2), Point(1, 2, 3), TracedChild(4), make_child(5), Point(1, z=Point(2)).trace_copy()]
)
def test_dumped_object_is_loaded(value: Any) -> None:
    (found,) = load(dump({"value": [value]}))["value"]
    assert facts(found) if not isinstance(value, Point) else vars(found).get("at") == value.at
    assert found.trace_symbol is value.trace_symbol
    assert dump(found) == dump(value)
    assert type(found) is type(value) or type(value).__name__ == "Traced"


def test_text_of_a_dumped_object_names_symbol_and_arguments() -> None:
    assert json.loads(dump(Point(1))) == {"__symbol__": f"path:{__name__}.Point", "__kwargs__": {"x": 1}}
    assert json.loads(dump(add(1, 2)))["__args__"] == [1]
    assert load(dump(add(1, 2))) == 3


def test_what_cannot_be_found_again_is_not_dumped() -> None:
    with pytest.raises(TypeError, match="cannot be dumped: it is not at the top level of a module"):
        dump(trace(lambda: 1)())
    with pytest.raises(ValueError, match=r"must be path:MODULE\.NAME, not 'bytes:abc'"):
        load('{"__symbol__": "bytes:abc"}')


def test_class_of_a_library_can_be_traced_in_place() -> None:
    assert trace(complex)(1, 2) == 1 + 2j
    with pytest.raises(TypeError, match="only classes and functions can be traced, not 3"):
        trace(3)


def test_tracing_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_TRACE_FLAG", "DISABLE")
    assert trace(dict) is dict
