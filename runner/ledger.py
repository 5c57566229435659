"""The ledger of resources, the same for every executor: it only counts.

Totals come from Ray or from the machine; what one trial takes is its `Request`. GPUs are devices with an index and a
capacity: a fraction takes part of one device, a whole number takes that many devices. `max_trial_number_per_gpu`
raises the capacity of a device, so that several trials may each hold "one GPU" on it, as in NNI.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ..protocol import size_text

# Ten shares of 0.1 must fit into one device in spite of rounding errors.
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class Request:
    """What one trial takes."""

    cpus: float = 0.0
    memory: int = 0  # bytes
    gpus: float | None = None  # None leaves the GPUs alone, 0 hides them
    custom: Mapping[str, float] = field(default_factory=dict)
    nodes: int = 1  # it takes an equal part of everything on each

    @property
    def per_node(self) -> Request:
        """The part of the trial on one of its nodes.

        >>> Request(cpus=4, gpus=2, nodes=2).per_node
        Request(cpus=2.0, memory=0, gpus=1.0, custom={}, nodes=1)
        """
        if self.nodes == 1:
            return self
        gpus = None if self.gpus is None else self.gpus / self.nodes
        custom = {name: amount / self.nodes for name, amount in self.custom.items()}
        return Request(
            cpus=self.cpus / self.nodes, memory=self.memory // self.nodes, gpus=gpus, custom=custom
        )

    @cached_property
    def amounts(self) -> Mapping[str, float]:
        """The countable part, by name (GPUs are counted by device)."""
        amounts = {"CPU": self.cpus, "memory": float(self.memory), **self.custom}
        return {name: amount for name, amount in amounts.items() if amount > 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The resources of an executor."""

    amounts: Mapping[str, float] = field(default_factory=dict)  # a name that is missing does not exist there
    devices: tuple[int, ...] = ()  # GPU indices
    trials_per_device: int = 1
    anonymous_gpus: float = 0.0  # GPUs whose indices Ray chooses
    orders_per_agent: int = 1  # how many an agent takes, to carry them out one after the other


@dataclass(frozen=True, slots=True)
class Assignment:
    """What one attempt holds; `gpus` are device indices (None: left alone or chosen by Ray)."""

    gpus: tuple[int, ...] | None = None


class Ledger:
    """Counts which resources are taken and which are free.

    >>> ledger = Ledger(Totals(devices=(0, 1)))
    >>> ledger.take("a", Request(gpus=0.5)), ledger.take("b", Request(gpus=0.5)), ledger.take("c", Request(gpus=1))
    (Assignment(gpus=(0,)), Assignment(gpus=(0,)), Assignment(gpus=(1,)))
    >>> ledger.take("d", Request(gpus=1)) is None
    True
    >>> print(ledger.why_not(Request(gpus=1)))
    needs 1 GPU, and GPU 0 is taken by a, b; GPU 1 is taken by c
    """

    def __init__(self, totals: Totals) -> None:
        self.totals = totals
        self._free = dict(totals.amounts)
        self._anonymous = totals.anonymous_gpus
        self._capacity = {device: float(totals.trials_per_device) for device in totals.devices}
        self._held: dict[str, tuple[Request, Assignment]] = {}
        self._busy_elsewhere: frozenset[int] = frozenset()

    def take(self, holder: str, request: Request) -> Assignment | None:
        """Take `request` for `holder` (a trial id); return None if it does not fit now."""
        if not self.fits(request):
            return None
        assignment = Assignment(self._choose_devices(request.gpus))
        self.claim(holder, request, assignment)
        return assignment

    def fits(self, request: Request) -> bool:
        """Return whether `request` can be taken now."""
        gpus, free = request.gpus, self._free
        if any(amount > free.get(name, 0.0) + _ROUNDING for name, amount in request.amounts.items()):
            return False
        if not gpus or self._choose_devices(gpus) is not None:
            return True
        return not self.totals.devices and gpus <= self._anonymous + _ROUNDING

    def claim(self, holder: str, request: Request, assignment: Assignment) -> None:
        """Take exactly `assignment` for `holder`, a trial that ran before the manager was restarted."""
        self._held[holder] = (request, assignment)
        self._book(request, assignment, -1.0)

    def release(self, holder: str) -> None:
        """Return what `holder` holds, if anything, to the free resources."""
        held = self._held.pop(holder, None)
        if held is not None:
            self._book(*held, 1.0)

    def set_totals(self, totals: Totals) -> None:
        """Change the totals; what is held stays held. Devices cannot change."""
        before, self.totals = self.totals, totals
        for name in before.amounts.keys() | totals.amounts.keys():
            change = totals.amounts.get(name, 0.0) - before.amounts.get(name, 0.0)
            self._free[name] = self._free.get(name, 0.0) + change
        self._anonymous += totals.anonymous_gpus - before.anonymous_gpus

    def set_busy_elsewhere(self, devices: frozenset[int]) -> None:
        """Set the GPUs that other experiments or users hold: trials get none of them."""
        self._busy_elsewhere = devices

    def infeasible(self, request: Request) -> str | None:
        """Return why `request` can never be met here, as a sentence; None if it can."""
        return next(iter(self.shortages(request).values()), None)

    def shortages(self, request: Request) -> dict[str, str]:
        """Return a sentence for each resource that `request` takes more of than there is, by resource."""
        asked = {**request.amounts, "GPU": request.gpus or 0.0}
        gpus = len(self.totals.devices) or self.totals.anonymous_gpus
        there = {**self.totals.amounts, "GPU": float(gpus)}
        return {
            name: f"a trial needs {_show(name, amount)}, and there {_only(name, there.get(name, 0.0))}"
            for name, amount in asked.items()
            if amount > there.get(name, 0.0) + _ROUNDING
        }

    def fitting(self, request: Request, most: int) -> int:
        """Return how many of `most` such requests fit beside each other, when nothing is taken.

        >>> Ledger(Totals(amounts={"CPU": 5.0})).fitting(Request(cpus=2), 8)
        2
        """
        empty = Ledger(self.totals)
        return next((count for count in range(most) if empty.take(str(count), request) is None), most)

    def why_not(self, request: Request) -> str:
        """Return why `request` does not fit now, and who holds what it waits for."""
        for name, amount in request.amounts.items():
            free = self._free.get(name, 0.0)
            if amount > free + _ROUNDING:
                return f"needs {_show(name, amount)}, and {_show(name, max(free, 0.0))} is free"
        gpus = request.gpus or 0
        held = "; ".join(self._who_holds(device) for device in self.totals.devices)
        return f"needs {gpus:g} GPU{'s' * (gpus > 1)}, and {held or 'there are too few free'}"

    def _choose_devices(self, gpus: float | None) -> tuple[int, ...] | None:
        """Return device indices for a request; () hides all GPUs; None: too few are free, or Ray chooses."""
        if gpus is None:
            return None
        if gpus == 0:
            return ()
        share = min(gpus, 1.0)
        fitting = [
            device
            for device, capacity in self._capacity.items()
            if capacity + _ROUNDING >= share and device not in self._busy_elsewhere
        ]
        # The fullest device first, so that whole devices stay free for requests that need them.
        fitting.sort(key=lambda device: (self._capacity[device], device))
        count = max(1, round(gpus))
        return tuple(sorted(fitting[:count])) if len(fitting) >= count else None

    def _book(self, request: Request, assignment: Assignment, sign: float) -> None:
        for name, amount in request.amounts.items():
            self._free[name] = self._free.get(name, 0.0) + sign * amount
        if assignment.gpus is None:
            self._anonymous += sign * (request.gpus or 0.0)
            return
        for device in assignment.gpus:
            self._capacity[device] = self._capacity.get(device, 0.0) + sign * min(request.gpus or 0.0, 1.0)

    def _who_holds(self, device: int) -> str:
        holders = [who for who, (_, assignment) in self._held.items() if device in (assignment.gpus or ())]
        if device in self._busy_elsewhere:
            holders.append("another experiment")
        return f"GPU {device} is {'taken by ' + ', '.join(holders) if holders else 'free'}"


def _show(name: str, amount: float) -> str:
    if name == "memory":
        return f"{_quantity(name, amount)} of memory"
    return f"{amount:g} {name}{'s' * (name in ('CPU', 'GPU') and amount > 1)}"


def _only(name: str, amount: float) -> str:
    if not amount:
        return "is none"
    return f"{'is' if amount == 1 or name == 'memory' else 'are'} only {_quantity(name, amount)}"


def _quantity(name: str, amount: float) -> str:
    """Return a number without its noun.

    >>> _quantity("memory", 400 * 2**20), _quantity("memory", 3 * 2**29), _quantity("CPU", 0.5)
    ('400 MiB', '1.5 GiB', '0.5')
    """
    return size_text(amount, is_memory=True) if name == "memory" else f"{amount:g}"
