"""The report on a folder of runs: Table 1 in Markdown, with figures."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlpcore.files import atomic_write
from mlpcore.report import figures
from mlpcore.report.tables import markdown_table
from table1.measure import Committee, Measured
from table1.records import Record
from table1.tables import BRIEF, is_of_all, notes, table, test_kind

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REPORT, FIGURES = "report.md", "figures"

#: Okabe and Ito's colours, which every eye tells apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def write_report(out: Path, measured: Measured, problems: Mapping[str, str]) -> list[str]:
    """Writes the table and the figures of the runs in a folder.

    Parameters
    ----------
    problems
        By name a line on each run that could not be read.

    Returns
    -------
    A line for whatever is left out.

    Raises
    ------
    InputError
        When a file cannot be written.
    """
    left_out = [*problems.values(), *measured.notes]
    names: list[str] = []
    try:
        names = draw(out / FIGURES, measured)
    except Exception as error:  # whatever it is, there is the table
        reason = " ".join(str(error).split())
        left_out.append(f"no figures are drawn: {type(error).__name__}: {reason}")
    lines = [
        "# Table 1",
        "",
        f"Rebuilt on {datetime.date.today().isoformat()} by `tools/reproduce.py --report`.",
        "",
        table_text(measured.records, measured.committees, problems),
    ]
    if left_out:
        lines += ["", "## Left out", "", *(f"- {line}" for line in left_out)]
    if names:
        lines += ["", "## Figures"]
        for name in names:
            lines += ["", f"![{name}]({FIGURES}/{name}.png)"]
    lines += ["", "## Runs", ""]
    for record in measured.records:
        lines.append(f"- [{record.name}]({record.name}/): {record.state}")
    atomic_write(out / REPORT, ("\n".join(lines) + "\n").encode(errors="replace"))
    return left_out


def table_text(
    records: Sequence[Record], committees: Sequence[Committee], missing: Iterable[str]
) -> str:
    """The table in Markdown and what has to be said about it.

    Parameters
    ----------
    missing
        Runs that were started and are not among the records.
    """
    text = [markdown_table(table(records, committees)), *notes(records)]
    for committee in committees:
        if not is_of_all(committee, records):
            members = ", ".join(sorted(committee.members))
            text.append(f"The committee of {len(committee.members)} is of {members}.")
    return "\n\n".join([*text, *_not_there(missing)])


def brief_table_text(
    records: Sequence[Record], committees: Sequence[Committee], missing: Iterable[str]
) -> str:
    """The same rows, with the columns by which runs are judged, and little said."""
    rows = markdown_table(table(records, committees, BRIEF))
    return "\n\n".join([rows, *_not_there(missing)])


def _not_there(missing: Iterable[str]) -> list[str]:
    names = ", ".join(sorted(missing))
    return [f"Started, but not in the table: {names}."] if names else []


def draw(folder: Path, measured: Measured) -> list[str]:
    """Learning curves, and the misclassified images of each finished run; their names."""
    drawn: dict[str, Figure] = {}
    started = [record for record in measured.records if record.history]
    if started:
        drawn["learning-curves"] = learning_curves(started)
    for record in started:
        if record.finished and record.name in measured.evaluations:
            drawn[f"{record.name}-misclassified"] = figures.misclassified(
                measured.images[record.name], measured.evaluations[record.name]
            )
    if drawn:
        figures.write_figures(folder, drawn)
    return list(drawn)


def learning_curves(records: Sequence[Record]) -> Figure:
    """Validation and test errors of all runs, each of which has an epoch at least."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(figures.WIDTH, 4.5), dpi=figures.DPI, layout="constrained")
    axes = figure.subplots()
    errors: list[float] = []
    colours: dict[str, str] = {}
    for record in records:
        label = None if record.network in colours else record.network
        colour = colours.setdefault(record.network, COLOURS[len(colours) % len(COLOURS)])
        epochs = [m.epoch for m in record.history]
        validation = [m.validation_error for m in record.history]
        test = [m.test_error for m in record.history]
        # A single epoch would be no line.
        style: dict[str, Any] = {"color": colour, "marker": "o" if len(epochs) == 1 else ""}
        axes.plot(epochs, validation, linewidth=0.8, label=label, **style)
        axes.plot(epochs, test, linewidth=0.8, linestyle=":", **style)
        errors += validation + test
    figures.log_axis(axes, errors)
    axes.set_xlabel("epoch", size=9)
    axes.set_ylabel("error (%)", size=9)
    axes.tick_params(labelsize=8)
    axes.grid(color=figures.LIGHT)
    kind = test_kind(records)
    axes.set_title(f"Validation error (solid) and {kind} error (dotted) of all runs", size=9)
    axes.legend(fontsize=8, frameon=False)
    return figure
