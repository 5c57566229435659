"""The resource ledger: nothing is given out twice, and what is given back is there again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitchpipe.runner.ledger import Assignment, Ledger, Request, Totals


def test_fractions_share_a_device_and_whole_gpus_do_not() -> None:
    ledger = Ledger(Totals(devices=(0, 1)))
    assert ledger.take("a", Request(gpus=0.5)) == Assignment((0,))
    assert ledger.take("b", Request(gpus=0.5)) == Assignment((0,))
    assert ledger.take("c", Request(gpus=1)) == Assignment((1,))
    assert ledger.take("d", Request(gpus=0.1)) is None
    ledger.release("a")
    assert ledger.take("d", Request(gpus=0.1)) == Assignment((0,))


@pytest.mark.parametrize(
    ("totals", "gpus", "given"),
    [
        (Totals(devices=(0,)), [0.1] * 11, [(0,)] * 10 + ["nothing"]),  # ten tenths fit
        (Totals(devices=(0, 1, 2)), [2, 2, 1], [(0, 1), "nothing", (2,)]),  # several are different
        (
            Totals(devices=(0,), trials_per_device=2),
            [1, 1, 1],
            [(0,), (0,), "nothing"],
        ),  # whole requests share
        (Totals(devices=(0,)), [0, None], [(), None]),  # 0 hides all, and None leaves them alone
    ],
)
def test_requests_get_devices_while_there_are_some(totals: Totals, gpus: list[Any], given: list[Any]) -> None:
    ledger = Ledger(totals)
    found = [ledger.take(str(number), Request(gpus=one)) for number, one in enumerate(gpus)]
    assert [one.gpus if one else "nothing" for one in found] == given


def test_devices_busy_elsewhere_are_not_given_out() -> None:
    ledger = Ledger(Totals(devices=(0, 1)))
    ledger.set_busy_elsewhere(frozenset({0}))
    assert ledger.take("a", Request(gpus=1)) == Assignment((1,))
    assert ledger.take("b", Request(gpus=1)) is None
    assert "GPU 0 is taken by another experiment" in ledger.why_not(Request(gpus=1))
    ledger.set_busy_elsewhere(frozenset())
    assert ledger.take("b", Request(gpus=1)) == Assignment((0,))


def test_gpus_that_ray_numbers_are_counted() -> None:
    ledger = Ledger(Totals(anonymous_gpus=1.0))
    assert ledger.take("a", Request(gpus=0.5)) == Assignment(None)
    assert ledger.take("b", Request(gpus=0.5)) == Assignment(None)
    assert ledger.take("c", Request(gpus=0.5)) is None
    ledger.release("b")
    assert ledger.take("c", Request(gpus=0.5)) == Assignment(None)


def test_cpus_memory_and_custom_resources_are_counted() -> None:
    ledger = Ledger(Totals(amounts={"CPU": 4.0, "memory": 2.0**33, "licence": 1.0}))
    request = Request(cpus=1.0, memory=2**32, custom={"licence": 1.0})
    assert ledger.take("a", request) is not None
    assert ledger.take("b", request) is None
    assert ledger.why_not(request) == "needs 1 licence, and 0 licence is free"
    ledger.release("a")
    assert ledger.fits(request)
    assert ledger.take("b", request) is not None


@pytest.mark.parametrize(
    ("totals", "request_", "why"),
    [
        (Totals(amounts={"CPU": 2.0}), Request(cpus=3), "a trial needs 3 CPUs, and there are only 2"),
        (Totals(), Request(custom={"tpu": 1}), "a trial needs 1 tpu, and there is none"),
        (Totals(), Request(gpus=0.5), "a trial needs 0.5 GPU, and there is none"),
        (Totals(devices=(0,)), Request(gpus=2), "a trial needs 2 GPUs, and there is only 1"),
        (
            Totals(amounts={"memory": 2.0**30}),
            Request(memory=2**31),
            "2 GiB of memory, and there is only 1 GiB",
        ),
    ],
)
def test_infeasible_request_is_explained(totals: Totals, request_: Request, why: str) -> None:
    assert why in (Ledger(totals).infeasible(request_) or "")


_REQUESTS = st.builds(
    Request,
    cpus=st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    gpus=st.sampled_from([None, 0, 0.25, 0.5, 1, 2]),
    custom=st.sampled_from([{}, {"x": 1.0}]),
)


@given(st.lists(st.tuples(st.integers(0, 5), _REQUESTS), max_size=60))
def test_never_more_is_out_than_there_is(moves: list[tuple[int, Request]]) -> None:
    totals = Totals(amounts={"CPU": 3.0, "x": 2.0}, devices=(0, 1, 2))
    ledger = Ledger(totals)
    held: dict[int, tuple[Request, Assignment]] = {}
    for holder, request in moves:
        if holder in held:
            del held[holder]
            ledger.release(str(holder))
        elif (assignment := ledger.take(str(holder), request)) is not None:
            held[holder] = (request, assignment)
        for name, total in totals.amounts.items():
            assert sum(r.amounts.get(name, 0.0) for r, _ in held.values()) <= total + 1e-6
        for device in totals.devices:
            shares = [min(r.gpus or 0.0, 1.0) for r, a in held.values() if device in (a.gpus or ())]
            assert sum(shares) <= 1.0 + 1e-6
        for request_, assignment_ in held.values():
            if request_.gpus:
                assert len(assignment_.gpus or ()) == max(1, round(request_.gpus))
    for holder in list(held):
        ledger.release(str(holder))
    assert ledger.take("all", Request(cpus=3.0, gpus=2, custom={"x": 2.0})) is not None


def test_resources_are_there_until_a_trial_takes_them() -> None:
    totals = Totals(amounts={"CPU": 4.0}, devices=(0, 1))
    assert Ledger(totals).take("a", Request(cpus=4.0, gpus=2)) is not None
    assert Ledger(totals).take("a", Request(cpus=5.0)) is None
    assert Ledger(totals).take("a", Request(gpus=3)) is None
    ledger = Ledger(totals)
    ledger.take("a", Request(cpus=3.0, gpus=1))
    assert ledger.take("b", Request(cpus=2.0)) is None
    assert ledger.take("b", Request(gpus=2)) is None
    assert ledger.take("b", Request(gpus=0)) == Assignment(())
    assert ledger.take("c", Request(cpus=1.0, gpus=1)) == Assignment((1,))
