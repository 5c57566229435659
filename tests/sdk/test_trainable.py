"""`Trainable`, and functions as classes, driven by hand."""

from pathlib import Path
from typing import Any

import cloudpickle
import pytest

import pitchpipe as p
from pitchpipe.sdk import current

Parameters = dict[str, Any]


class Counter(p.Trainable):
    """Counts its steps and records what is called."""

    def setup(self, parameters: Parameters) -> None:
        self.calls = ["setup"]

    def cleanup(self) -> None:
        self.calls.append("cleanup")


def train(parameters: Parameters) -> float:
    saved = p.get_checkpoint()
    first = saved.to_dict()["epoch"] + 1 if saved else 0
    for epoch in range(first, 3):
        p.report_intermediate_result(parameters["lr"] * epoch)
        p.save_checkpoint({"epoch": epoch})
    return 9.0


def test_setup_gets_the_parameters_and_a_copy_of_them(tmp_path: Path) -> None:
    parameters = {"lr": 0.1}
    made = Counter(parameters)
    made.parameters["lr"] = 5
    assert parameters == {"lr": 0.1}
    assert (made.calls, made.iteration, made.save_checkpoint(str(tmp_path))) == (["setup"], 0, None)


def test_failed_setup_is_cleaned_up() -> None:
    calls: list[str] = []

    class Broken(p.Trainable):
        def setup(self, parameters: Parameters) -> None:
            raise ValueError("no such data")

        def cleanup(self) -> None:
            calls.append("cleanup")
            raise RuntimeError("nothing to clean up")  # must not hide the reason

    with pytest.raises(ValueError, match="no such data"):
        Broken({})
    assert calls == ["cleanup"]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda made: made.step(), "step"),
        (lambda made: made.load_checkpoint({}), "load_checkpoint"),
        (lambda made: made.export_model(["onnx"], "."), "export_model"),
    ],
)
def test_missing_method_is_named_with_its_class(call: Any, name: str) -> None:
    with pytest.raises(NotImplementedError, match=rf"Counter has no {name}\(\)"):
        call(Counter())


def test_function_makes_one_step_per_report() -> None:
    made = p.wrap_function(train)({"lr": 2})
    assert [made.step() for _ in range(4)] == [
        {"default": 0, "done": False},
        {"default": 2, "done": False},
        {"default": 4, "done": False},
        {"default": 9.0, "done": True},
    ]
    assert made.step() == {"default": 9.0, "done": True}
    made.cleanup()
    assert current.channel is None


def test_function_ends_in_its_report_when_it_is_cleaned_up() -> None:
    seen: list[str] = []

    def endless(parameters: Parameters) -> None:
        try:
            while True:
                p.report_intermediate_result({"default": 1, "parameters": p.get_next_parameter()})
        except p.TrialStopped:
            seen.append("stopped")
            raise

    made = p.wrap_function(endless)({"lr": 2})
    assert made.step() == {"default": 1, "parameters": {"lr": 2}, "done": False}
    made.cleanup()
    assert seen == ["stopped"]


def test_exception_of_the_function_is_raised_by_the_step() -> None:
    def fail(parameters: Parameters) -> None:
        raise ValueError("bad lr")

    made = p.wrap_function(fail)({})
    with pytest.raises(ValueError, match="bad lr"):
        made.step()
    made.cleanup()


@pytest.mark.parametrize("as_dict", [True, False])
def test_function_continues_from_what_it_saved(tmp_path: Path, as_dict: bool) -> None:
    first = p.wrap_function(train)({"lr": 2})
    first.save_checkpoint(str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    first.step()
    first.step()  # the first result's checkpoint is saved before the second is reported
    first.save_checkpoint(str(tmp_path))
    first.cleanup()
    second = p.wrap_function(train)({"lr": 2})
    second.load_checkpoint({"epoch": 0} if as_dict else str(tmp_path))
    assert second.step() == {"default": 2, "done": False}
    second.cleanup()


def test_wrapped_function_has_a_name_and_survives_pickling() -> None:
    made = p.wrap_function(lambda parameters: 1, name="One")
    assert made.__name__ == "One"
    assert issubclass(made, p.FunctionTrainable)
    assert p.wrap_function(train).__name__ == "train"
    again = cloudpickle.loads(cloudpickle.dumps(made))({})
    assert again.step() == {"default": 1, "done": True}
    again.cleanup()


@pytest.mark.parametrize("function", [lambda: 1, lambda parameters, reporter: 1, 3])
def test_function_that_does_not_take_the_parameters_alone_is_refused(function: Any) -> None:
    with pytest.raises(TypeError):
        p.wrap_function(function)
