"""Tries NNI's own files unchanged: python benchmarks/nni_files.py SOURCES, with `examples` and `test` of NNI 3.0 in it.

Prints the tables of docs/reference/nni.md: its configs, unit tests, examples, scripts that start an experiment, and
lines of nnictl. Nothing is written to SOURCES. It takes about half an hour; `--only` prints one table.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from nni_tables.command_lines import command_lines
from nni_tables.configs import configs
from nni_tables.projects import examples, scripts
from nni_tables.unit_tests import unit_tests


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sources", type=Path)
    parser.add_argument(
        "--only", choices=["configs", "tests", "examples", "scripts", "nnictl"], help="One table."
    )
    parser.add_argument("--patience", type=float, default=60.0, help="Seconds for one example or script.")
    given = parser.parse_args()
    sources = given.sources.resolve()
    if not any((sources / part).is_dir() for part in ("examples", "test")):
        parser.error(f"{sources} has neither examples nor test: give the folder of NNI's sources")
    tables = {
        "configs": configs,
        "tests": unit_tests,
        "examples": partial(examples, patience_s=given.patience),
        "scripts": partial(scripts, patience_s=given.patience),
        "nnictl": command_lines,
    }
    for name, table in tables.items():
        if given.only in (None, name):
            print(f"\n## {name}\n")
            for line in table(sources):
                print(line, flush=True)


if __name__ == "__main__":
    main()
