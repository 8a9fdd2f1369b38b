"""What is written about the runs: Table 1 in Markdown, notes on it, and a page for a folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from mlpcore.data.dataset import MNIST
from mlpcore.errors import InputError
from mlpcore.files import atomic_write
from mlpcore.report.tables import markdown_table
from mlpcore.training.config import TrainingConfig
from mlpcore.training.schedule import PAPER_LEARNING_RATE_END, SCHEDULE_EPOCHS
from table1.records import CommitteeResult, Measured, Record, Summary
from table1.tables import DETAILS, committee_name, has_papers_figures, kind_of_all, table

REPORT = "report.md"

#: The lines of a page between which `replace_table` puts the table.
BEGIN, END = "<!-- table1 begin -->", "<!-- table1 end -->"

#: The settings that the paper states, in an experiment of the usual length.
PAPER = TrainingConfig(epochs=SCHEDULE_EPOCHS, learning_rate_end=PAPER_LEARNING_RATE_END)


def write_report(out: Path, measured: Measured) -> None:
    """Writes table, notes, and the figures that finished runs have in their folders."""
    summary = Summary(tuple(measured.committees), tuple(measured.unreadable))
    parts = ["# Table 1", table_text(measured.records, summary)]
    if measured.notes:
        parts += ["## Left out", "\n".join(f"- {line}" for line in measured.notes)]
    for record in measured.records:
        for name in ("learning-curves", "misclassified"):
            if record.finished and (record.folder / "figures" / f"{name}.png").exists():
                parts.append(f"![{record.name}: {name}]({record.name}/figures/{name}.png)")
    atomic_write(out / REPORT, ("\n\n".join(parts) + "\n").encode(errors="replace"))


def table_text(records: Sequence[Record], summary: Summary, brief: bool = False) -> str:
    """The table, with details and notes unless it is to be brief."""
    text = [markdown_table(table(records, summary.committees, DETAILS if brief else ()))]
    if not brief:
        text += notes(records, summary.committees)
    names = ", ".join(sorted(summary.missing))
    return "\n\n".join([*text, f"Started, but not in the table: {names}."] if names else text)


def replace_table(text: str, table: str, page: str) -> str:
    """The text of a page with this table between `BEGIN` and `END`; an InputError without them."""
    before, found, rest = text.partition(f"{BEGIN}\n")
    _, ended, after = rest.partition(f"{END}\n")
    if not found or not ended or BEGIN in rest or END in before + after:
        raise InputError(f"{page}: expected the lines {BEGIN} and {END}, once each")
    return f"{before}{BEGIN}\n{table}\n{END}\n{after}"


def notes(records: Sequence[Record], committees: Iterable[CommitteeResult] = ()) -> list[str]:
    """What a reader has to know about the table, a paragraph each."""
    kind = kind_of_all(records)
    said = [
        "Each row reports the network with the lowest validation error, the error on the "
        f"undeformed training images. Only the best {kind} error is selected by the {kind} images "
        "themselves: expect more errors on other digits.",
        "Brackets hold 95 % confidence intervals: Wilson's for the errors of one network, and "
        f"Student's t over the seeds for a mean on the same {kind} images.",
    ]
    if not all(record.finished for record in records):
        said.append("The row of an unfinished run shows the epochs so far.")
    names: dict[str, list[str]] = {}
    for record in records:
        names.setdefault(other_settings(record), []).append(record.name)
    names.pop("", None)
    said += [f"Settings of {', '.join(names[each])}: {each}." for each in names]
    if has_papers_figures(records):
        said.append(
            "The paper does not give its number of epochs. The second guess of its net4 is right "
            "for 30 of 35 errors, and it trains with up to 5 G weight updates/s."
        )
    for committee in committees:
        members = ", ".join(sorted(committee.members))
        said.append(f"The {committee_name(committee, records)} is of {members}.")
    return said


def other_settings(record: Record) -> str:
    """The settings in which a run differs from the paper's over `SCHEDULE_EPOCHS` epochs."""
    ours, papers = (vars(config) | vars(config.deformation) for config in (record.config, PAPER))
    said = [
        f"{name.replace('_', ' ')} {value:g}"
        for name, value in ours.items()
        if isinstance(value, float | int) and name != "seed" and value != papers[name]
    ]
    if record.data.name != MNIST:
        said.append(f"data {record.data.name}")
    if record.data.held_out:
        said.append(f"{record.data.held_out:,} training images held out and tested on")
    return ", ".join(said)
