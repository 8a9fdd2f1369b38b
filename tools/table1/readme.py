"""The table of the evidence, and its place in a README."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from mlpcore.errors import InputError
from table1.evidence import read_evidence
from table1.measure import Committee
from table1.records import Record
from table1.report import brief_table_text, table_text


def full_table(folder: Path) -> str:
    """What the evidence in a folder shows, every run and what there is to say."""
    return _render(folder, table_text)


def readme_table(folder: Path) -> str:
    """What the project's README shows of it: every run, in short."""
    return _render(folder, brief_table_text)


def _render(
    folder: Path, text: Callable[[Sequence[Record], Sequence[Committee], Sequence[str]], str]
) -> str:
    found = read_evidence(folder)
    return text([each.record for each in found.runs], found.committees, found.missing)


BEGIN, END = "<!-- table1 begin -->", "<!-- table1 end -->"


def replace_table(text: str, table: str) -> str:
    """A text whose part between two lines, `BEGIN` and `END`, is replaced.

    Raises
    ------
    InputError
        When these lines are not there once each, in this order.
    """
    before, found, rest = text.partition(f"{BEGIN}\n")
    _, ended, after = rest.partition(f"{END}\n")
    if not found or not ended or BEGIN in rest or END in before + after:
        raise InputError(f"expected the lines {BEGIN} and {END}, once each")
    return f"{before}{BEGIN}\n{table}\n{END}\n{after}"
