"""The API keeps the promises of its OpenAPI document, whatever requests schemathesis sends."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

from pitchpipe.server.security import ServerLimits

from ..lazy import Lazy
from ..stored import MadeExperiment, a_trial, results
from .asking import served

schemathesis, checks = Lazy("schemathesis"), Lazy("schemathesis.specs.openapi.checks")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a server on the loopback interface, with an experiment that is not running."""
    directory = tmp_path_factory.mktemp("fuzz")
    made = MadeExperiment(Path(directory) / "made1234")
    trial = a_trial(3, "RUNNING")
    trials = [a_trial(0, value=0.5), a_trial(1, value=0.1), a_trial(2, "FAILED", reason="KeyError: 'x'")]
    made.commit(*trials, trial, metrics=results(trial, [1.0, {"default": 2.0}, "text"]))
    (made.folder.logs / "manager.log").write_text("one\n")
    with served(directory, ServerLimits(changes_per_second=1e6, changes_at_once=10**6)) as serving:
        yield serving.url
    made.store.close()


def operations(url: str) -> list[Any]:
    """Return all operations except streams, which have their own tests."""
    from schemathesis.core.result import Ok

    document = schemathesis.openapi.from_url(f"{url}/api/v1/openapi.json")
    found = [result.ok() for result in document.get_all_operations() if isinstance(result, Ok)]
    return [operation for operation in found if not operation.path.endswith(("/follow", "/stream"))]


REAL = {"experiment": "made1234", "trial": "3", "name": "manager.log"}


@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_api_keeps_its_promises(address: str, mode: str) -> None:
    """Half of the requests are about existing things."""
    asked = 0
    for operation in operations(address):

        @given(operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode)), st.booleans())
        @settings(
            max_examples=2,
            deadline=None,
            suppress_health_check=[
                HealthCheck.filter_too_much,
                HealthCheck.too_slow,
                HealthCheck.data_too_large,
            ],
        )
        def ask(case: Any, is_real: bool) -> None:
            nonlocal asked
            asked += 1
            if is_real and mode == "positive":
                case.path_parameters.update({name: REAL[name] for name in case.path_parameters or ()})
            # What fits the document may still be refused: a search space, a condition, an unknown cursor.
            case.call_and_validate(excluded_checks=[checks.positive_data_acceptance])

        with contextlib.suppress(Unsatisfiable):  # an operation without parameters has no invalid request
            ask()
    assert asked > 40
