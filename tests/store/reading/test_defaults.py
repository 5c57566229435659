"""The comparison of the best trials with the defaults, for one objective and several."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.store.reading.defaults import gain_text, gains_over_defaults

ONE = [{"name": "default", "direction": "maximize"}]
TWO = [{"name": "loss", "direction": "minimize"}, {"name": "f1", "direction": "maximize"}]


def row(number: int, status: str = "SUCCEEDED", **values: float) -> dict[str, Any]:
    return {"sequence_id": number, "status": status, "values": values}


def summary(defaults: Any, best: list[Any], objectives: Any = ONE) -> dict[str, Any]:
    return {"defaults": defaults, "best": best, "objectives": objectives}


def test_best_of_what_is_maximized() -> None:
    found = summary(row(0, default=0.8), [row(4, default=0.9)])
    assert gains_over_defaults(found) == {"default": pytest.approx(0.1)}
    assert gain_text(found) == "0.1 (12.5 %) better than the defaults (0.8, trial 0)"


def test_defaults_of_zero_have_no_percentage() -> None:
    assert gain_text(summary(row(0, default=0.0), [row(4, default=2.0)])).startswith("2 better than")


def test_change_of_sign_has_no_percentage() -> None:
    found = summary(row(0, default=-1.0), [row(4, default=0.35)])
    assert gain_text(found) == "1.35 better than the defaults (-1, trial 0)"


def test_defaults_may_be_the_best() -> None:
    found = summary(row(0, default=0.8), [row(0, default=0.8)])
    assert gains_over_defaults(found) == {"default": 0.0}
    assert gain_text(found) == "no trial is better than the defaults (0.8, trial 0)"


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ("RUNNING", "the defaults (trial 0) have no result yet"),
        ("FAILED", "the defaults (trial 0) have no result to compare with: failed"),
    ],
)
def test_defaults_without_a_result(status: str, text: str) -> None:
    found = summary(row(0, status), [row(4, default=0.9)])
    assert gains_over_defaults(found) is None
    assert gain_text(found) == text


def test_defaults_of_which_the_end_cut_off_some_repeats_are_compared() -> None:
    cut = row(0, "SYS_CANCELED", default=0.8) | {"repeats": {"count": 2, "of": 3}}
    found = summary(cut, [row(4, default=1.0)])
    assert gains_over_defaults(found) == {"default": pytest.approx(0.2)}
    assert gain_text(found) == "0.2 (25 %) better than the defaults (0.8, mean of 2 of 3 repeats, family 0)"
    assert "no result to compare with" in gain_text(summary({**cut, "values": {}}, [row(4, default=1.0)]))


def test_experiment_without_defaults_says_nothing() -> None:
    assert gain_text(summary(None, [row(4, default=0.9)])) == ""


def test_front_is_compared_in_every_objective() -> None:
    front = [row(1, loss=0.1, f1=0.6), row(2, loss=0.4, f1=0.9), row(3, loss=0.7, f1=0.95)]
    found = summary(row(0, loss=0.5, f1=0.5), front, TWO)
    gains = gains_over_defaults(found)
    assert gains == {"loss": pytest.approx(0.4), "f1": pytest.approx(0.45)}
    those = "the defaults (loss 0.5, f1 0.5, trial 0)"
    assert gain_text(found) == f"2 of the 3 best trials beat {those} in every objective"
    assert gain_text({**found, "best": front[:1]}) == f"the best trial beats {those} in every objective"
    found = summary(row(0, loss=0.0, f1=0.5), front, TWO)
    assert gain_text(found).startswith("no trial beats the defaults")


LIMITED = {"ms": "<= 20"}


def test_best_trials_are_not_compared_with_defaults_that_violate_a_limit() -> None:
    """The defaults are better, and of no use: nothing that is allowed was ever as good."""
    defaults = row(0, default=0.8, ms=30.0)
    found = {**summary(defaults, [row(4, default=0.7, ms=9.0)]), "outcome_limits": LIMITED}
    assert gains_over_defaults(found) is None
    assert gain_text(found) == (
        "the defaults (0.8, trial 0) violate a limit: ms is 30, not <= 20; the best trial keeps all limits"
    )
    found["best"] = []
    assert gain_text(found).endswith("ms is 30, not <= 20; no trial keeps all limits")


def test_defaults_that_keep_the_limits_are_compared_with_what_keeps_them() -> None:
    found = {
        **summary(row(0, default=0.8, ms=20.0), [row(4, default=0.9, ms=9.0)]),
        "outcome_limits": LIMITED,
    }
    assert gains_over_defaults(found) == {"default": pytest.approx(0.1)}
    assert gain_text(found) == "0.1 (12.5 %) better than the defaults (0.8, trial 0)"


def test_several_objectives_and_defaults_that_violate_a_limit() -> None:
    defaults = row(0, loss=1.0, f1=0.5, ms=21.5)
    found = {**summary(defaults, [row(4, loss=2.0, f1=0.4, ms=1.0)], TWO), "outcome_limits": LIMITED}
    assert gain_text(found).startswith("the defaults (loss 1, f1 0.5, trial 0) violate a limit: ms is 21.5")
