"""What counts as a metric, and the sentence for what does not."""

from __future__ import annotations

import math

import numpy
import pytest

from pitchpipe.protocol import MetricError, metric_value


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (1, 1.0),
        (0.5, 0.5),
        (True, 1.0),
        (math.inf, math.inf),
        (math.nan, math.nan),
        (numpy.float32(0.5), 0.5),
        (numpy.int64(3), 3.0),
        (numpy.bool_(False), 0.0),
        (numpy.array(2.0), 2.0),
        (numpy.longdouble(0.5), 0.5),
        (numpy.array(numpy.longdouble(0.5)), 0.5),
        (numpy.ma.array([1.0], mask=True).mean(), math.nan),
        (numpy.ma.array([1.0, 3.0], mask=[False, True]).mean(), 1.0),
        ({"default": 0.25, "other": "x"}, 0.25),
        ({"default": numpy.float64(0.25)}, 0.25),
    ],
)
def test_number_is_a_metric(value, number):
    assert repr(metric_value(value)) == repr(number)  # the type, too


def test_key_names_the_objective():
    assert metric_value({"default": 1, "latency": 2}, key="latency") == 2.0


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("abc", "reported 'abc', which is not a number"),
        (None, "reported None, which is not a number"),
        ([1, 2], r"reported \[1, 2\], which is not a number"),
        (1j, "reported 1j, which is not a number"),
        (numpy.clongdouble(0.5), "which is not a number"),
        (numpy.array(["x"]), "which is not a number"),
        (numpy.array("x"), "which is not a number"),
        ({}, "reported a dict without 'default'"),
        ({"loss": 1}, "reported a dict without 'default': it has 'loss'; report 'default', or name"),
        ({"loss": 1}, "or name the objective: metric='loss' in Python, objectives in experiment.yml"),
        ({"default": "high"}, "reported 'high' under 'default', which is not a number"),
        ({"default": {"default": 1}}, "under 'default', which is not a number"),
        (10**400, "too large for a float"),
    ],
)
def test_anything_else_is_refused_in_a_sentence(value, sentence):
    with pytest.raises(MetricError, match=sentence):
        metric_value(value)


def test_sentence_is_short_for_a_long_value():
    with pytest.raises(MetricError) as caught:
        metric_value("x" * 10_000)
    assert len(str(caught.value)) < 120
