"""Sentences are data: a room has one file of inputs, `test_sentences.txt`, each with what users read about it.

A line `== NAME` starts a section: one function answers its inputs. A short answer follows ` → ` on the line of its
input, others are below it, indented. To add an input, write its line; a command in
CONTRIBUTING.md writes the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from syrupy.location import PyTestLocation

ARROW, INDENT, WIDTH = " → ", "    ", 120


class SentencesFile(SingleFileSnapshotExtension):
    """A snapshot that is the text itself, beside its test."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"

    @classmethod
    def dirname(cls, *, test_location: PyTestLocation) -> str:
        return str(Path(test_location.filepath).parent)


def answered(room: Path, sections: Mapping[str, Callable[[str], Iterable[str]]]) -> str:
    """Return the file of a room with the present answers, without the name of the test's folder."""
    lines: list[str] = []
    answer: Callable[[str], Iterable[str]] = list  # until the first section
    for line in (room / "test_sentences.txt").read_text("utf-8").splitlines():
        given = line.partition(ARROW)[0]
        if line.startswith("== "):
            answer = sections[line.removeprefix("== ")]
            lines += ["", line] if lines else [line]
        elif given and not line.startswith(INDENT):
            lines += with_answers(given, list(answer(given)) or ["-"])
    return "\n".join(lines) + "\n"


def with_answers(given: str, answers: list[str]) -> list[str]:
    answers = [answer.replace(f"{Path.cwd()}/", "") for answer in answers]
    line = given + ARROW + answers[0]
    if len(answers) == 1 and len(line) <= WIDTH:
        return [line]
    return [given, *(INDENT + answer for answer in answers)]
