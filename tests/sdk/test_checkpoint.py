"""One checkpoint: what can be saved, that it is restored unchanged, and that it is complete or absent."""

import os
import socket
import tempfile
import threading
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pitchpipe.sdk.checkpoint import Checkpoint, remove, save_folder, write_data


class Size(IntEnum):
    SMALL = 1


class Name(str):
    pass


class Score(float):
    pass


class Point(NamedTuple):
    x: Any
    y: Any


class Layers(list[Any]):
    pass


NUMBERS = st.booleans() | st.integers() | st.floats()
TEXTS = st.text(st.characters()) | st.just("\ud83d\ude00")  # two halves, which JSON would put together
KEYS = (
    TEXTS
    | TEXTS.map(Name)
    | st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.just(Size.SMALL)
)
LEAVES = (
    st.none()
    | NUMBERS
    | TEXTS
    | TEXTS.map(Name)
    | st.floats().map(Score)
    | st.floats().map(numpy.float64)
    | st.integers(-9, 9).map(numpy.int64)
    | st.booleans().map(numpy.bool_)
    | st.just(Size.SMALL)
    | st.binary()
)


def dictionaries(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    dicts = st.dictionaries(KEYS, inner, max_size=3)
    counters = st.dictionaries(KEYS, st.integers(0, 9), max_size=3).map(Counter)
    return dicts | dicts.map(OrderedDict) | dicts.map(lambda items: defaultdict(list, items)) | counters


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists, pairs = st.lists(inner, max_size=3), st.tuples(inner, inner)
    points = pairs.map(lambda pair: Point(*pair))
    return lists | lists.map(Layers) | pairs | points | dictionaries(inner)


DATA = dictionaries(st.recursive(LEAVES, containers, max_leaves=8))


def exactly(value: Any) -> Any:
    """Return a form of a value that equals that of another one only if types, signs and orders do, too."""
    if isinstance(value, dict):
        factory = getattr(value, "default_factory", None)
        return type(value), factory, [(exactly(key), exactly(inner)) for key, inner in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [exactly(inner) for inner in value]
    return type(value), repr(value)  # of a NaN and of -0.0, too


def saved(folder: Path, data: Any) -> Checkpoint:
    name = save_folder(str(folder), 1, lambda path: write_data(path, data))
    assert name is not None
    return Checkpoint(str(folder / name))


@settings(max_examples=25)
@given(DATA)
@example({"counts": Counter(a=1)})
@example(defaultdict(list, a=[1]))
@example(OrderedDict(a=1))
@example({"size": Size.SMALL, "rate": numpy.float64(0.1), "name": Name("a")})
@example({"zero": -0.0, "one": True, "best": float("nan"), "order": [{"b": 1, "a": 2}]})
def test_dict_comes_back_as_it_was(data: dict[Any, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = saved(Path(folder), data).to_dict()
    assert exactly(found) == exactly(data)


def test_plain_dict_is_readable_json(tmp_path: Path) -> None:
    assert (Path(saved(tmp_path, {"epoch": 3})) / "data.json").read_text() == '{"epoch": 3}'


def test_arrays_and_what_only_cloudpickle_can_write_come_back(tmp_path: Path) -> None:
    found = saved(tmp_path, {"weights": numpy.arange(3), "schedule": lambda epoch: epoch * 2}).to_dict()
    assert found["weights"].tolist() == [0, 1, 2]
    assert found["schedule"](4) == 8


def test_folder_is_copied_with_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "state" / "deep").mkdir(parents=True)
    (tmp_path / "state" / "deep" / "model.bin").write_bytes(b"12")
    checkpoint = saved(tmp_path / "checkpoints", tmp_path / "state")
    (tmp_path / "state" / "deep" / "model.bin").write_bytes(b"changed")
    assert (Path(checkpoint.path) / "deep" / "model.bin").read_bytes() == b"12"
    with pytest.raises(ValueError, match="holds files, not a dict"):
        checkpoint.to_dict()


def test_single_file_is_copied(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"12")
    assert (
        Path(saved(tmp_path / "checkpoints", str(tmp_path / "model.bin"))) / "model.bin"
    ).read_bytes() == b"12"


@pytest.mark.parametrize("data", [3, None, [1], b"model"])
def test_other_data_is_a_type_error(tmp_path: Path, data: object) -> None:
    with pytest.raises(TypeError, match="a checkpoint is a dict or a path"):
        saved(tmp_path, data)
    assert list(tmp_path.iterdir()) == []


def test_empty_folder_and_one_with_a_name_of_ours_are_refused(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    with pytest.raises(ValueError, match="nothing to save"):
        saved(tmp_path / "checkpoints", state)
    (state / "checkpoint.json").touch()
    with pytest.raises(ValueError, match=r"must not hold a file checkpoint\.json"):
        saved(tmp_path / "checkpoints", state)
    with pytest.raises(FileNotFoundError):
        saved(tmp_path / "checkpoints", tmp_path / "missing")
    assert list((tmp_path / "checkpoints").iterdir()) == []


def test_failed_save_leaves_nothing_and_the_earlier_ones_alone(tmp_path: Path) -> None:
    saved(tmp_path, {"epoch": 1})

    def fill(folder: str) -> None:
        Path(folder, "part").touch()
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        save_folder(str(tmp_path), 1, fill)
    assert [path.name for path in tmp_path.iterdir()] == ["1-1"]


def test_nothing_has_its_final_name_before_it_is_whole(tmp_path: Path) -> None:
    seen: list[str] = []

    def fill(folder: str) -> None:
        Path(folder, "a").touch()
        seen.extend(os.listdir(tmp_path))
        Path(folder, "b").touch()

    assert save_folder(str(tmp_path), 2, fill) == "2-1"
    assert [name[0] for name in seen] == ["."]
    assert sorted(os.listdir(tmp_path / "2-1")) == ["a", "b"]


def test_folder_loses_its_name_before_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "1-1"
    folder.mkdir()
    (folder / "weights").touch()
    unlink, was_there = os.unlink, []

    def noting(path: str) -> None:
        was_there.append(folder.exists())
        unlink(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", noting)
        remove(str(folder))
    assert (was_there, os.listdir(tmp_path)) == ([False], [])


def test_numbers_continue_where_older_ones_were_removed(tmp_path: Path) -> None:
    for name in ("1-9", "2-4", "2-final", "21-7"):
        (tmp_path / name).mkdir()
    assert Path(saved(tmp_path, {})).name == "1-10"
    assert save_folder(str(tmp_path), 2, lambda path: write_data(path, {})) == "2-5"


def test_several_writers_never_get_one_name(tmp_path: Path) -> None:
    names: list[str] = []

    def write() -> None:
        for _ in range(25):
            names.append(Path(saved(tmp_path, {"x": 1})).name)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(names)) == len(names) == 100
    assert sorted(os.listdir(tmp_path)) == sorted(names)


def test_own_folder_of_a_trial_is_saved_without_its_checkpoints(tmp_path: Path) -> None:
    (tmp_path / "weights").write_text("w")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "1").touch()
    saved(tmp_path / "checkpoints", str(tmp_path))
    checkpoint = Path(saved(tmp_path / "checkpoints", str(tmp_path)))
    assert sorted(str(path.relative_to(checkpoint)) for path in checkpoint.rglob("*")) == [
        "logs",
        "logs/1",
        "weights",
    ]


def test_links_are_saved_with_what_they_lead_to(tmp_path: Path) -> None:
    source = tmp_path / "state"
    source.mkdir()
    (source / "epoch-3").mkdir()
    (source / "epoch-3" / "weights").write_text("w")
    (source / "latest").symlink_to("epoch-3")
    checkpoint = Path(saved(tmp_path / "trial" / "checkpoints", str(source)))
    assert (checkpoint / "latest" / "weights").read_text() == "w"
    assert not (checkpoint / "latest").is_symlink()


def _link_to_itself(folder: Path) -> None:
    (folder / "loop").symlink_to("loop")


def _link_to_nothing(folder: Path) -> None:
    (folder / "gone").symlink_to("nothing")


def _link_to_its_folder(folder: Path) -> None:
    (folder / "here").symlink_to(".")


def _link_to_a_folder_above(folder: Path) -> None:
    (folder / "up").symlink_to("../..")


def _links_to_each_other(folder: Path) -> None:
    (folder / "aside").symlink_to("../aside")
    (folder.parent / "aside").mkdir()
    (folder.parent / "aside" / "back").symlink_to(folder)


def _fifo(folder: Path) -> None:
    os.mkfifo(folder / "fifo")


def _socket(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(folder / "socket"))


@pytest.mark.parametrize(
    "make",
    [
        _link_to_itself,
        _link_to_nothing,
        _link_to_its_folder,
        _link_to_a_folder_above,
        _links_to_each_other,
        _fifo,
        _socket,
    ],
)
@pytest.mark.parametrize("within", [".", "inner"])
def test_folder_that_cannot_be_copied_is_refused_and_leaves_nothing(
    make: Callable[[Path], None], within: str
) -> None:
    with tempfile.TemporaryDirectory() as short:  # the path of a socket is short
        source, checkpoints = Path(short, "state"), Path(short, "trial", "checkpoints")
        (source / within).mkdir(parents=True)
        (source / "weights").touch()
        make(source / within)
        with pytest.raises(ValueError, match="a checkpoint cannot hold"):
            saved(checkpoints, str(source))
        assert os.listdir(checkpoints) == []


@pytest.mark.parametrize("above", ["trial/..", "trial/checkpoints"])
def test_folder_that_holds_the_checkpoints_is_refused(above: str, tmp_path: Path) -> None:
    checkpoints = tmp_path / "trial" / "checkpoints"
    checkpoints.mkdir(parents=True)
    with pytest.raises(ValueError, match="holds the checkpoints of this trial"):
        saved(checkpoints, str(tmp_path / above))
    assert os.listdir(checkpoints) == []
