"""Losses of any size are warped, also where all are equal."""

from __future__ import annotations

import numpy as np
import pytest

from pitchpipe.tuners.models.fitting import warped


@pytest.mark.parametrize("quantile", [0.25, 0.5])
@pytest.mark.parametrize("value", [0.0, -3.0, 2.0**53, -1e17, 1e300, 5e-324])
def test_equal_losses_of_any_size_are_targets_of_0(value: float, quantile: float) -> None:
    targets, log_slopes = warped(np.array([value, value, np.inf, value, value]), quantile)
    assert (targets.tolist(), log_slopes) == ([0.0] * 5, 0.0)


@pytest.mark.parametrize("value", [1.0, 2.0**53, 1e20, -1e17])
def test_order_of_losses_is_kept_whatever_their_size(value: float) -> None:
    losses = [value]
    for _ in range(5):
        losses.append(float(np.nextafter(losses[-1], np.inf)))
    targets, _ = warped(np.array(losses), 0.5)
    assert targets.mean() == pytest.approx(0, abs=1e-9)
    assert np.all(np.diff(targets) > 0)
