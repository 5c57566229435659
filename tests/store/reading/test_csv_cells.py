"""Cells of CSV files: a spreadsheet calculates nothing, and each value is read back as it was."""

import csv
import io
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pitchpipe.store.reading import cell_text, cell_value, csv_text

from ...hostile_texts import TEXTS, stored_text

ANY_TEXT = st.text(max_size=6) | st.sampled_from(
    [*map(stored_text, TEXTS), "=1", "+1", "-x", "@x", "\r=1", "\n=1", "＝1", "＠x", "null"]
)
VALUES = ANY_TEXT | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES |= st.lists(ANY_TEXT | st.integers(), max_size=3)


def read(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode(), newline="")))


@settings(max_examples=50)
@given(st.lists(VALUES, min_size=1, max_size=4))
def test_values_are_read_back_as_they_were(values: list[Any]) -> None:
    (row,) = read(csv_text([values]))
    found = [*map(cell_value, row)]
    assert (found, [*map(type, found)]) == (values, [*map(type, values)])


@settings(max_examples=50)
@given(st.lists(ANY_TEXT, min_size=1, max_size=4))
def test_names_are_read_back_and_no_text_begins_a_formula(names: list[str]) -> None:
    (row,) = read(csv_text([names]))
    assert [*map(cell_text, row)] == names
    assert not any(
        cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")) for cell in row
    )


def test_numbers_and_usual_words_stay_as_they_are() -> None:
    values = [-1.5, 3, True, None, float("nan"), float("-inf"), "relu", "two words", "C:\\new", "'tis"]
    assert csv_text([values]) == b"-1.5,3,True,,,-inf,relu,two words,C:\\new,''tis\n"
    assert csv_text([["=A1", "-1", "0.1", "true", ""]]) == b"'=A1,'-1,'0.1,'true,'\n"
