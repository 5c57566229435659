"""What an optimiser was when it was measured: the source of our tuners, the release of another package."""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from adapters import environment_of

__all__ = ["version_of"]

_REQUIREMENTS = Path(__file__).parent / "requirements"
# What our suggestions depend on, but for tests.
_ROOMS = ("numerics", "plugins", "search_space", "tuners")
_LEFT_OUT = ("tuners/conformance.py",)
_PACKAGES = {"optuna-": "optuna", "skopt": "scikit-optimize", "hebo": "HEBO"}


def version_of(optimiser: str) -> str:
    """Return the version of an optimiser; of ours, a digest of the tuners' source as it is installed.

    >>> version_of("skopt")
    'scikit-optimize 0.10.2'
    """
    environment = environment_of(optimiser)
    if environment is None:
        return f"tuners {_digest()}"
    package = next(found for prefix, found in _PACKAGES.items() if optimiser.startswith(prefix))
    pins = (_REQUIREMENTS / f"{environment}.txt").read_text(encoding="utf-8")
    found = re.search(rf"^{package}==(\S+)", pins, re.MULTILINE)
    assert found is not None, f"{environment}.txt does not pin {package}"
    return f"{package} {found[1]}"


@cache
def _digest() -> str:
    spec = find_spec("pitchpipe")
    assert spec is not None
    assert spec.submodule_search_locations
    package = Path(spec.submodule_search_locations[0])
    digest = sha256()
    for path in sorted(path for room in _ROOMS for path in (package / room).rglob("*.py")):
        name = path.relative_to(package).as_posix()
        if name not in _LEFT_OUT:
            digest.update(b"%s\0%s\0" % (name.encode(), path.read_bytes()))
    return digest.hexdigest()[:12]
