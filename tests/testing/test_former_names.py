"""Plug-ins whose tests import the suites by their former names still find them."""

import pytest

import pitchpipe.assessors.conformance
import pitchpipe.testing
import pitchpipe.tuners.conformance


@pytest.mark.parametrize("former", [pitchpipe.tuners.conformance, pitchpipe.assessors.conformance])
def test_former_module_offers_the_same_objects(former: object) -> None:
    names = vars(former)["__all__"]
    assert names
    assert [name for name in names if getattr(former, name) is not getattr(pitchpipe.testing, name)] == []
