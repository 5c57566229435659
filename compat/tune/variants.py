"""The configs of a Tune experiment's spec, made as by Tune's variant generator.

`{"grid_search": [...]}` anywhere in `config` is tried with every value, in all combinations, `num_samples` times each;
a parameter in the form of a search space (`{"_type": "uniform", "_value": [0, 1]}`) is drawn each time. Everything
else stays unchanged.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping

from ...manager.control import ControlError
from ...protocol import Json, JsonObject, Parameters

_MOST = 1000
_DEEPEST = 50
Path = tuple[str, ...]


def variants(spec: Mapping[str, Json], seed: int | None = None) -> list[Parameters]:
    """Return the configs of a spec; raise `ControlError` for an invalid spec or one of too many.

    >>> variants({"config": {"lr": {"grid_search": [0.1, 0.2]}, "units": 8}, "num_samples": 1})
    [{'lr': 0.1, 'units': 8}, {'lr': 0.2, 'units': 8}]
    """
    config, samples = spec.get("config", {}), spec.get("num_samples", 1)
    if not isinstance(config, dict):
        raise ControlError("config of the spec must be an object", "invalid")
    if isinstance(samples, bool) or not isinstance(samples, int) or not 1 <= samples <= _MOST:
        raise ControlError(f"num_samples of the spec must be a number from 1 to {_MOST}", "invalid")
    grids = list(_grids(config, (), 0))
    count = samples
    for _, values in grids:
        count *= len(values)
        if count > _MOST:
            raise ControlError(f"the spec describes more than {_MOST} trials: split it", "invalid")
    rng = random.Random(seed)
    configs = []
    for _ in range(samples):
        for chosen in itertools.product(*(values for _, values in grids)):
            picked = dict(zip((path for path, _ in grids), chosen, strict=True))
            configs.append(_filled(config, (), picked, rng))
    return configs


def _grids(value: Json, path: Path, depth: int) -> Iterator[tuple[Path, list[Json]]]:
    """Yield the grids in a config, each with its path."""
    if not isinstance(value, dict):
        return
    if depth > _DEEPEST:
        raise ControlError(f"the config is nested more than {_DEEPEST} levels deep", "invalid")
    if set(value) == {"grid_search"}:
        if not isinstance(value["grid_search"], list) or not value["grid_search"]:
            raise ControlError(
                f"grid_search of {'.'.join(path) or 'config'} must be a list of values", "invalid"
            )
        yield path, value["grid_search"]
        return
    for name, inner in value.items():
        yield from _grids(inner, (*path, name), depth + 1)


def _filled(value: Json, path: Path, picked: Mapping[Path, Json], rng: random.Random) -> Json:
    """Return the config with one value from each grid, and the other parameters drawn."""
    if path in picked:
        return picked[path]
    if not isinstance(value, dict):
        return value
    if "_type" in value:
        return _drawn(value, path, rng)
    return {name: _filled(inner, (*path, name), picked, rng) for name, inner in value.items()}


def _drawn(domain: JsonObject, path: Path, rng: random.Random) -> Json:
    import numpy as np

    from ...search_space import SearchSpace, SearchSpaceError

    try:
        space = SearchSpace.parse({path[-1] if path else "config": domain})
    except SearchSpaceError as error:
        raise ControlError("; ".join(map(str, error.problems)), "invalid") from error
    drawn = space.sample(np.random.default_rng(rng.getrandbits(63)))
    return next(iter(drawn.values()))
