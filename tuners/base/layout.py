"""The columns of the unit cube of a search space: numbers, choices, and the branches they depend on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...numerics import Floats, Ints
from ...search_space import SearchSpace


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Columns of the unit cube of a space with d parameters, p of them numeric and c choices.

    `cells` is the width of a value of each numeric column, 0 where continuous; `options` the number of
    options of each choice; `children` lists (column, column of its parent, option of the parent), parents
    first.
    """

    dimension: int
    numeric: Ints
    cells: Floats
    choices: Ints
    options: Ints
    children: tuple[tuple[int, int, int], ...]

    @classmethod
    def of(cls, space: SearchSpace) -> Layout:
        """Return the layout of a space."""
        parameters = space.parameters
        numeric = [i for i, p in enumerate(parameters) if not p.categorical]
        choices = [i for i, p in enumerate(parameters) if p.categorical]
        sizes = [parameters[i].size for i in numeric]
        return cls(
            dimension=len(parameters),
            numeric=np.array(numeric, dtype=np.int64),
            cells=np.array([1 / size if size else 0.0 for size in sizes]),
            choices=np.array(choices, dtype=np.int64),
            options=np.array([len(parameters[i].options) for i in choices], dtype=np.int64),
            children=tuple((i, *p.parent) for i, p in enumerate(parameters) if p.parent is not None),
        )

    def deactivate(self, units: Floats) -> Floats:
        """Set inactive parameters in `units`, shape (m, d), to NaN, in place; return `units`."""
        for column, parent, option in self.children:
            count = self.options[np.searchsorted(self.choices, parent)]
            with np.errstate(invalid="ignore"):
                chosen = np.floor(units[:, parent] * count)
            units[chosen != option, column] = np.nan
        return units

    def codes(self, units: Floats) -> Ints:
        """Return the option index of each choice, -1 where inactive; shape (m, c)."""
        scaled = units[:, self.choices] * self.options
        scaled[np.isnan(scaled)] = -1.0
        return np.floor(scaled).astype(np.int64)
