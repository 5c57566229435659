"""Draw mutants with cosmic-ray, in the form of `drawn.toml`.

In a virtual environment with cosmic-ray 8.7.0: `python tests/mutants/draw.py --seed 43 --count 60`. First a line is
drawn, then one of its mutations: an arithmetic operator has eleven, and would be drawn too often. Mutations of
annotations are left out. Whoever adds what is printed looks at each: one that changes
nothing belongs under `[[equivalent]]`, with the reason.
"""

from __future__ import annotations

import argparse
import ast
import random
from collections import defaultdict
from difflib import SequenceMatcher
from pathlib import Path

from cosmic_ray.ast import Visitor, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator, operator_names
from parso.tree import NodeOrLeaf as Node

TREE = Path(__file__).resolve().parent.parent.parent
FOLDERS = ("runner", "store", "protocol", "dispatcher", "search_space")


def main() -> None:
    """Print as many mutants as the command line asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    paths = sorted(path for folder in FOLDERS for path in (TREE / folder).rglob("*.py"))
    places = {(path, line): found for path in paths for line, found in mutations_of(path).items()}
    number = 0
    for path, line in rng.sample(sorted(places), len(places)):
        operator, occurrence = rng.choice(places[path, line])
        mutated = mutate_code(path.read_text(), get_operator(operator)(), occurrence)
        if meaning(mutated or "") not in (None, meaning(path.read_text())):
            number += 1
            print(entry(number, path, operator.removeprefix("core/"), mutated))
        if number == options.count:
            return


def mutations_of(path: Path) -> dict[int, list[tuple[str, int]]]:
    """Return the mutations of each line: the operator, and the number of its occurrence in the file."""
    found = defaultdict[int, list[tuple[str, int]]](list)
    tree = get_ast(path.read_text())
    for name in sorted(operator_names()):
        if "Variable" not in name and "Exception" not in name:  # these need more than a place
            counter = Places(get_operator(name)())
            counter.walk(tree)
            for occurrence, line in enumerate(counter.lines):
                found[line].append((name, occurrence))
    return found


class Places(Visitor):
    """Notes the lines that an operator can change, in the order of its occurrences."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self.lines: list[int] = []

    def visit(self, node: Node) -> Node:
        """Take a node."""
        self.lines += [node.start_pos[0] for _ in self._operator.mutation_positions(node)]
        return node


def meaning(text: str) -> str | None:
    """Return the syntax tree of a module without what says only types; None for what cannot be parsed."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            if getattr(node, name, None) is not None:
                setattr(node, name, ast.Constant(None))
    return ast.dump(tree)


def changed(text: str, mutated: str) -> tuple[int, int, int]:
    """Return the first line that differs, and the ends of the differing lines in both texts."""
    codes = SequenceMatcher(None, text.splitlines(), mutated.splitlines(), autojunk=False).get_opcodes()
    differing = [code for code in codes if code[0] != "equal"]
    return differing[0][1], differing[-1][2], differing[-1][4]


def entry(number: int, path: Path, operator: str, mutated: str) -> str:
    """Return a mutant in the form of the table; its old text has as many lines as make it unique."""
    text = path.read_text()
    lines, others = text.splitlines(), mutated.splitlines()
    begin, end, other_end = changed(text, mutated)
    shift = 0
    while text.count("\n".join(lines[begin - shift : end])) > 1:
        shift += 1
    old, new = "\n".join(lines[begin - shift : end]), "\n".join(others[begin - shift : other_end])
    file = path.relative_to(TREE).as_posix()
    where = next(
        (
            line.split("(")[0].split()[-1].rstrip(":")
            for line in reversed(lines[: begin + 1])
            if " def " in f" {line}"
        ),
        "module",
    )
    return "\n".join(
        [
            "[[mutants]]",
            f'name = "drawn-{number:02}"',
            f'file = "{file}"',
            f"old = '''\n{old}'''",
            f"new = '''\n{new}'''",
            f'breaks = "`{where}`: {operator}"',
            "",
        ]
    )


if __name__ == "__main__":
    main()
