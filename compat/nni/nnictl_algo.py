"""`nnictl algo`: names for classes of one's own, which configs then use like those of the built-in algorithms."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ...assessors import REGISTRY as ASSESSORS
from ...cli import FAILED, FILE, Failure, print_table
from ...config import check_parameters, read_source
from ...plugins import Registered, register, registered, registry_file, unregister
from ...tuners import REGISTRY as TUNERS

_BUILT_IN = {"tuner": TUNERS, "assessor": ASSESSORS}
_KINDS = {"tuner": "tuner", "advisor": "tuner", "assessor": "assessor"}
_FORM = "algoType: tuner, builtinName: NAME, className: module.Class"


@click.command("nnictl algo register")
@click.option(
    "--meta",
    "--meta_path",
    "-m",
    "meta",
    type=FILE,
    required=True,
    help="The file: algoType, builtinName, className.",
)
def algo_register(meta: Path) -> None:
    """Register the tuners, assessors and advisors that a YAML file describes."""
    source = read_source(meta).data
    if not isinstance(source, Mapping):
        raise Failure(f"{meta} must contain {_FORM}")
    algorithms = [_algorithm(section, meta) for section in source.get("algorithms", [source])]
    for algorithm in algorithms:
        _register(algorithm)
        click.echo(f"registered the {algorithm.kind} {algorithm.name}: {algorithm.class_name}")


@click.command("nnictl algo unregister")
@click.argument("name")
def algo_unregister(name: str) -> None:
    """Remove a registered name."""
    unregister(_find(name).name)
    click.echo(f"removed {name}")


@click.command("nnictl algo show")
@click.argument("name")
def algo_show(name: str) -> None:
    """Print what is registered under a name, as JSON."""
    click.echo(json.dumps(asdict(_find(name)), indent=4))


@click.command("nnictl algo list")
def algo_list() -> None:
    """List the built-in and the registered algorithms."""
    print_table(("name", "type", "source", "class"), _rows())


#: The verbs below `algo` by NNI's words.
ALGO: Mapping[str, click.Command] = {
    "register": algo_register,
    "unregister": algo_unregister,
    "show": algo_show,
    "list": algo_list,
}


def _algorithm(section: Any, file: Path) -> Registered:
    """Return the algorithm that a section of the file describes; its class is in `codeDir`, or where the file is."""
    given = {str(key).replace("_", "").lower(): value for key, value in dict(section or {}).items()}
    kind = _KINDS.get(str(given.get("algotype")))
    if kind is None or not given.get("builtinname") or not given.get("classname"):
        raise Failure(f"{file} must contain {_FORM}; algoType is tuner, assessor or advisor")
    own = file.absolute().parent
    directory = given.get("codedir") or given.get("codedirectory")
    module = own.joinpath(*str(given["classname"]).split(".")[:-1])
    if directory is None and (module.is_dir() or module.with_suffix(".py").is_file()):
        directory = own
    return Registered(
        kind=kind,
        name=str(given["builtinname"]),
        class_name=str(given["classname"]),
        code_directory=None if directory is None else str((own / directory).resolve()),
        class_args=dict(given.get("classargs") or {}),
        accepts_class_args=given.get("acceptclassargs", True) is not False,
        validator=given.get("classargsvalidator"),
    )


def _register(algorithm: Registered) -> None:
    """Register an algorithm whose class can be loaded; leave what was there otherwise."""
    kind, name = algorithm.kind, algorithm.name
    if name in _BUILT_IN[kind]:
        raise Failure(f"{name} is a built-in {kind}: choose another builtinName")
    before = [known for known in _registered() if known.name.lower() == name.lower()]
    register(algorithm)
    asked = {"tuner": {"name": "Random"}, kind: {"name": name}}
    # Arguments that only a config can give may be missing.
    findings = check_parameters(asked).findings
    problems = [finding for finding in findings if finding.path[:2] != (kind, "class_args")]
    if problems:
        unregister(name)
        for known in before:
            register(known)
        raise Failure(problems[0].message, FAILED)


def _find(name: str) -> Registered:
    algorithms = _registered()
    for algorithm in algorithms:
        if algorithm.name.lower() == name.lower():
            return algorithm
    known = ", ".join(algorithm.name for algorithm in algorithms) or "nothing"
    raise Failure(f"{name} is not registered (in {registry_file()}: {known})")


def _registered() -> list[Registered]:
    try:
        return registered()
    except ValueError as error:
        raise Failure(str(error), FAILED) from error


def _rows() -> Iterator[tuple[str, ...]]:
    for kind, registry in _BUILT_IN.items():
        for name in registry.names():
            yield name, kind, "built-in" if name in registry.built_in else "installed package", ""
    for algorithm in _registered():
        yield algorithm.name, algorithm.kind, "registered", algorithm.class_name
