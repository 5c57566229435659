"""Prints the budget table: Pitchpipe's own limits, and its peers measured side by side.

    make bench                                          with the peers, where .peers has them
    .venv/bin/python benchmarks/run.py --quick          small sizes: shows that everything works
    .venv/bin/python benchmarks/run.py --peers DIR functions scripts

Run it with the interpreter of an environment in which the wheel is installed (not an editable installation),
on a machine that does nothing else. How to install the peers is in docs/lab/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from groups import GROUPS
from measuring import Bench
from reporting import as_json, header, notes, table_lines

DISTRIBUTIONS = ("pitchpipe", "optuna", "rustuna", "ray", "nni")


def main() -> int:
    """Measure the chosen groups, print the table; the exit code is 1 if nothing could be measured."""
    options = _options()
    peers = options.peers if options.peers is not None and options.peers.is_dir() else None
    if peers is None:
        print("no peers: see docs/lab/benchmarks.md for how to install them", file=sys.stderr)
    bench = Bench(peers, options.repetitions or (1 if options.quick else 3), options.quick)
    versions = {name: bench.version(name) for name in DISTRIBUTIONS}
    if versions["pitchpipe"] is None:
        print(f"{sys.executable} has no pitchpipe: make install", file=sys.stderr)
        return 1
    _warn_of_load()
    chosen = [group for group in GROUPS if not options.groups or group.name in options.groups]
    measured = []
    for group in chosen:
        print(f"== {group.name}", file=sys.stderr, flush=True)
        measured.append((group, bench.measure(group.probes)))
        _write(options.json, as_json(measured, versions, quick=options.quick))
    top = header(measured, versions, bench.repetitions, quick=options.quick)
    lines = [*top, *table_lines(measured), "", *notes(measured)]
    print("\n".join(lines))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join(group.name for group in GROUPS))
    parser.add_argument("--peers", type=Path, help="the virtual environment with Optuna, Ray Tune and NNI")
    parser.add_argument("--repetitions", type=int, help="of each probe (3)")
    parser.add_argument("--quick", action="store_true", help="small sizes, once: shows that everything works")
    parser.add_argument(
        "--json", type=Path, default=Path("build/benchmarks.json"), help="where the JSON goes"
    )
    options = parser.parse_args()
    if unknown := set(options.groups) - {group.name for group in GROUPS}:
        parser.error(f"no such group: {', '.join(sorted(unknown))}")
    return options


def _warn_of_load() -> None:
    load = os.getloadavg()[0]
    if load > 1:
        print(f"the machine is busy (load {load:.1f}): read ratios, not figures", file=sys.stderr)


def _write(path: Path, data: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
