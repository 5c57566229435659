"""How many of NNI's unit tests pass, and why the others do not."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from pathlib import Path

from .place import Place

__all__ = ["unit_tests"]

_PATIENCE_S = 420.0  # for one file: test_experiment sleeps for 190 s
_REPEATS = "a finite space is never repeated"
_INTERNALS = "NNI's internals"
_SOONER = "wants to see it RUNNING after a minute; its 100 trials may have ended before"
# Why tests do not pass: by file, and by test where files have several reasons.
_REASONS: Mapping[str, str] = {
    "test_anneal": _REPEATS,
    "test_dngo": _REPEATS,
    "test_evolution": _REPEATS,
    "test_batch": "`Batch` takes objects: parameters have names",
    "test_gp": "text options work, where the test wants an error",
    "test_metis": "text options work, where the test wants an error",
    "test_pbt": "`PBT` suggests a checkpoint with the parameters: trials are paused and resumed",
    "test_regularized_evolution_tuner": "architecture search",
    "test_experiment_resume_view": _SOONER,
    "test_experiment_resume_with_id": _SOONER,
    "sdk/test_curvefitting_assessor": f"{_INTERNALS}: the class of its curves",
    "experiment/test_config_base": f"{_INTERNALS}: a base class for sections of a config",
    "experiment/test_exp_config": "wants defaults in the JSON that Pitchpipe does not have",
    "experiment/test_ts_remote": "wants defaults in the JSON of the platform `remote`",
}
# Files that are not run.
_OUTSIDE: Mapping[str, str] = {
    "sdk/test_hyperopt_tuner": f"{_INTERNALS}: its adapter for hyperopt",
    "sdk/test_version": f"{_INTERNALS}: versions in serialized models",
    "sdk/test_ws_channel": f"{_INTERNALS}: its WebSocket",
    "sdk/test_serializer": "architecture search: `nni.trace` for models",
    "sdk/test_networkmorphism_tuner": "architecture search",
    "sdk/test_graph_utils": "architecture search",
    "sdk/mutable": "architecture search",
    "nas": "architecture search",
    "tools/nnictl": f"{_INTERNALS}: functions of its nnictl",
    "tools/trial_tool": f"{_INTERNALS}: its channel over files",
}


def unit_tests(sources: Path) -> Iterator[str]:
    """Yield a table of the unit tests by file, with what does not pass and why."""
    yield "| file | passed | of | the others |\n|---|---|---|---|"
    with Place(sources) as place:
        folder = place.folder / "test" / "ut"
        for path in sorted(folder.rglob("test_*.py")):
            name = str(path.relative_to(folder).with_suffix(""))
            if not any(name.startswith(outside) for outside in _OUTSIDE):
                print(f"{name} ... (at most {_PATIENCE_S:g} s)", file=sys.stderr, flush=True)
                yield _row(place, name)
    for name, why in _OUTSIDE.items():
        yield f"| {name} | not run | | {why} |"


def _row(place: Place, name: str) -> str:
    folder = place.folder / "test"
    report = folder / "report.xml"
    options = ["-q", "-p", "no:cacheprovider", "-o", "addopts=", f"--junitxml={report}"]
    ran = place.python("-m", "pytest", *options, f"ut/{name}.py", folder=folder, patience_s=_PATIENCE_S)
    if not report.exists():
        why = f"not ended after {_PATIENCE_S:g} s" if ran.code is None else ran.last_line
        return f"| {name} | 0 | ? | {why} |"
    cases = list(ET.parse(report).getroot().iter("testcase"))
    report.unlink()
    failed = {case: fault for case in cases for fault in case if fault.tag in ("failure", "error")}
    if any(fault.tag == "error" for fault in failed.values()):
        return f"| {name} | 0 | {_count(folder / f'ut/{name}.py')} | {_why(name, '', *failed.values())} |"
    whys = dict.fromkeys(_why(name, case.get("name", ""), fault) for case, fault in failed.items())
    return f"| {name} | {len(cases) - len(failed)} | {len(cases)} | {'; '.join(whys)} |"


def _why(name: str, test: str, *faults: ET.Element) -> str:
    known = _REASONS.get(test) or _REASONS.get(name)
    if known:
        return known
    lines = [
        line[1:].strip() for fault in faults for line in (fault.text or "").splitlines() if line[:2] == "E "
    ]
    return f"{test}: {(lines or ['?'])[0][:120]}".replace("|", " ")


def _count(path: Path) -> int:
    """Return how many tests a file has that cannot be imported."""
    return sum(
        line.lstrip().startswith("def test_") for line in path.read_text(encoding="utf-8").splitlines()
    )
