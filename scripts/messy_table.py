"""Write the table of messy columns in docs/your-data.md: what the values of a column become.

python scripts/messy_table.py            put the table between the page's markers
python scripts/messy_table.py --print    print it
"""

from __future__ import annotations

import datetime
import sys
import warnings
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from methods_table import put

from neural_brane.files.storage import atomic
from neural_brane.graph.columns import Column, infer_columns
from neural_brane.graph.encoder import Encoder

PAGE = Path(__file__).parent.parent / "docs" / "your-data.md"
ROWS = 40
SHOWN = 3  # values and attributes shown


class Messy(NamedTuple):
    """A column of a table as people write it."""

    name: str
    values: list[Any]
    texts: bool = True  # whether a CSV file can hold the column


def fill_rows(*values: Any) -> list[Any]:
    """Return the values over and over, one per row."""
    return [values[row % len(values)] for row in range(ROWS)]


def with_words(numbers: list[Any], *words: Any) -> list[Any]:
    """Return numbers whose last ones are replaced by words."""
    return [*numbers[: len(numbers) - len(words)], *words]


def steps(first: int, step: int = 1) -> list[int]:
    """Return as many numbers as there are rows, in no order."""
    return [first + step * (row * 7 % ROWS) for row in range(ROWS)]


AGES, PAY = steps(22), steps(45_000, 350)
MORNING = datetime.datetime(2024, 3, 1, 9, 15)
TIMES = [MORNING + datetime.timedelta(minutes=number) for number in steps(0, 7)]
DAYS = [datetime.date(2024, 1, 31) + datetime.timedelta(days=number) for number in steps(0, 5)]
CODES = [10**17 + number for number in steps(7, 13)]
FRACTIONS = [[number / 8, -number / 16, 0.5] for number in steps(1)]

CASES = [
    # numbers
    Messy("people", [f"{number:,}" for number in PAY]),
    Messy("people", [f"{number:,}".replace(",", " ") for number in PAY]),
    Messy("people", [f"{number:,}".replace(",", "\u202f") for number in PAY]),
    Messy("people", [f"{number:,}".replace(",", "'") for number in PAY]),
    Messy("people", fill_rows("1,00,000", "12,50,000", "2,75,000")),
    Messy("salary", [f"${number:,}" for number in PAY]),
    Messy("price", fill_rows("€5", "€12", "-€3", "€40")),
    Messy("price", fill_rows("12 EUR", "USD 5", "7 EUR")),
    Messy("price", [f"{number} EUR" for number in AGES]),
    Messy("price", [f"{number / 4:,.2f} €".translate(str.maketrans(",.", ".,")) for number in PAY]),
    Messy("share", [f"{number / 4} %" for number in steps(0, 10)]),
    Messy("share", [f"{number}%" for number in steps(0, 2)]),
    Messy("length", [f"{number / 8}".replace(".", ",") for number in AGES]),
    Messy("weight", [f"{number} kg" for number in AGES]),
    Messy("change", [f"{number}".replace("-", "\u2212") for number in steps(-20)]),
    Messy("age", with_words([str(number) for number in AGES], "unknown")),
    Messy("age", with_words([str(number) for number in AGES], "retired", "retired")),
    Messy("age", with_words([str(number) for number in AGES], "n/a", "-", "?")),
    Messy("speed", with_words([number / 4 for number in AGES], float("inf"))),
    Messy("cell", with_words([str(number) for number in AGES], "#DIV/0!")),
    Messy("grade", fill_rows("1", "2", "3", "A", "4", "B")),
    Messy("mixed", fill_rows(1, 2.0, 3)),
    Messy("code", [str(number) for number in CODES]),
    Messy("code", fill_rows(*CODES[:3])),
    Messy("code", [float(number) for number in CODES]),
    Messy("postcode", fill_rows("02139", "10115", "75001")),
    Messy("dept_id", fill_rows(101, 102, 205)),
    # dates and times
    Messy("at", TIMES),
    Messy("at", [time.isoformat() + "+01:00" for time in TIMES]),
    Messy("day", DAYS),
    Messy("day", [day.strftime("%d.%m.%Y") for day in DAYS]),
    Messy("day", [day.strftime("%m/%d/%Y") for day in DAYS]),
    Messy("day", fill_rows("01/02/2024", "03/04/2024", "05/06/2024")),
    Messy("day", with_words([day.isoformat() for day in DAYS], "0000-00-00", "present", "present")),
    Messy("year", fill_rows("0000-01-01", "1999-12-31", "9999-12-31")),
    Messy("opens", [time.strftime("%H:%M") for time in TIMES]),
    Messy("opens", [time.time() for time in TIMES]),
    Messy("wait", [datetime.timedelta(minutes=number) for number in AGES], texts=False),
    # yes and no
    Messy("member", fill_rows("Yes", "No", "YES", "no")),
    Messy("member", fill_rows("Y", "n", "y", "N")),
    Messy("member", fill_rows("TRUE", "true", "FALSE")),
    Messy("member", fill_rows("T", "F")),
    Messy("member", fill_rows("on", "off")),
    Messy("member", fill_rows(1, 0, None)),
    Messy("member", fill_rows("yes", None)),
    Messy("member", fill_rows("yes", "no", "maybe")),
    # lists and vectors
    Messy("skills", fill_rows('["go", "r"]', '["r"]', "[]")),
    Messy("skills", fill_rows("['go', 'r']", "['r', 'c, c++']")),
    Messy("skills", fill_rows("go;r", "r", None)),
    Messy("rooms", fill_rows("1,2,3", "2", "3,1")),
    Messy("rooms", fill_rows([1, 2], [2], [3, 1]), texts=False),
    Messy("vector", FRACTIONS, texts=False),
    Messy("vector", [str(row) for row in FRACTIONS]),
]


def frame(case: Messy) -> pl.DataFrame:
    """Return the column of a case as a table."""
    return pl.DataFrame([pl.Series(case.name, case.values, strict=False)])


def read_column(table: pl.DataFrame) -> tuple[Column, list[str]]:
    """Return the only column of a table, and the names of its attributes."""
    (column,) = infer_columns(table)
    if column.kind == "vector":
        return column, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return column, Encoder.fit(table, [column]).names.tolist()


def table() -> str:
    """Return the table with one row per case."""
    lines = ["| values | kind | why | attributes |", "| --- | --- | --- | --- |"]
    for case in CASES:
        column, names = read_column(frame(case))
        different = list(dict.fromkeys("" if value is None else str(value) for value in case.values))
        words = [value for value in different if not any(letter.isdigit() for letter in value)]
        shown = list(islice(dict.fromkeys([*different[:SHOWN], *words]), SHOWN + 1))
        values = " · ".join(f"`{value}`" if value else "empty" for value in shown)
        refused = "refused" if column.kind == "vector" else "none"
        some = names if len(names) <= SHOWN else [*names[: SHOWN - 1], names[-1]]
        attributes = ", ".join(f"`{name}`" for name in some) or refused
        lines.append(f"| {values} | {column.kind} | {column.why} | {attributes} |")
    return "\n".join(lines)


def fill(page: str) -> str:
    """Return the page with the table between its markers."""
    return put(page, {"messy columns": table()}, PAGE)


def main() -> None:
    """Print the table or put it into the page."""
    if "--print" in sys.argv[1:]:
        print(table())
        return
    page = fill(PAGE.read_text(encoding="utf-8"))
    with atomic(PAGE) as draft:
        draft.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
