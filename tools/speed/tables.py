"""What runs have found, as tables in Markdown: medians over the runs, and the paper beside us.

A ratio compares two times of the same run, which took turns. The tables have the median of the
runs' ratios.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from mlpcore.errors import printable
from mlpcore.report.tables import NONE, escape, markdown_table
from speed.machine import Limits
from speed.results import BASE, Key, Report, Row

#: Characters that are shown of a cell or a note.
LONG = 1000

EXPLANATION = (
    "Time: of a sample or an image, the median of the repeats; spread: the fastest and the "
    "slowest. With several runs: the median of their times, and the least and the greatest.",
    "x scalar: times as fast as plain C on one thread; x ours: times as long as our fastest.",
    "GB/s: the bytes of weights that have to be read at least. Weights are float32; in large "
    "networks' steps avx2 and avx512 read 21 bits, unless the row says otherwise.",
    "Floor: the least time to read them, with as many threads of this CPU, over the time.",
    "Error: greatest difference from the float64 oracle, relative to the result, or to what "
    "training has changed.",
)


def table(
    title: str,
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    notes: Iterable[str] = (),
    left: int = 1,
) -> str:
    """A table with its title and notes; the first `left` columns are aligned to the left.

    What a terminal would obey is escaped.
    """
    cells = [tuple(printable(cell, LONG) for cell in row) for row in (headers, *rows)]
    align = ("l" * left).ljust(len(headers), "r")
    blocks = [f"**{escape(printable(title))}**", markdown_table(cells, align)]
    return "\n\n".join([*blocks, *(escape(printable(note, LONG)) for note in notes)]) + "\n"


# ---- cells -------------------------------------------------------------------------------------


def short_time(seconds: float) -> str:
    """A measured time with three digits: 37.2 µs."""
    units = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))
    # 0.9995 of a unit and more are 1.00 with three digits.
    unit, size = next((each for each in units if seconds >= 0.9995 * each[1]), units[-1])
    return f"{digits(seconds / size)} {unit}"


def digits(value: float) -> str:
    """A number with three significant digits, or all before the point, without an exponent."""
    if value <= 0:
        return NONE
    rounded = float(f"{value:.3g}")
    places = max(0, 2 - math.floor(math.log10(rounded)))
    return f"{rounded if places else value:,.{min(places, 4)}f}"


def ratio(rows: Sequence[Row], others: Sequence[Row]) -> str:
    """The times of some rows over those of others in the same runs."""
    ratios = [row.seconds / other.seconds for row, other in zip(rows, others)]
    if not ratios:
        return NONE
    text = f"{digits(statistics.median(ratios))}x"
    return text if len(ratios) == 1 else f"{text} ({digits(min(ratios))} to {digits(max(ratios))})"


def column(backend: str, threads: int) -> str:
    """A backend with its threads; a GPU has none of ours."""
    return backend if backend == "cuda" else f"{backend}, {threads}"


# ---- tables ------------------------------------------------------------------------------------


def head(
    date: str,
    revision: str,
    machine: Mapping[str, str],
    missing: Mapping[str, str],
    limits: Sequence[Limits] = (),
) -> str:
    """What everything was measured on, and what could not be."""
    rows = [("date", date[:10]), ("revision", revision or "not known"), *machine.items()]
    for each in limits:
        speeds = (f"{name} {digits(speed / 1e9)}" for name, _, speed in each.levels)
        rows.append((f"GB/s read, threads: {each.threads}", ", ".join(speeds)))
    rows += [(f"without {name}", reason) for name, reason in missing.items()]
    return table("The machine", ("", ""), rows, left=2)


def median(rows: Sequence[Row]) -> float:
    """The median of the runs' seconds."""
    return statistics.median(row.seconds for row in rows)


def timed(runs: Sequence[Report]) -> dict[Key, list[Row]]:
    """The rows of every run; none where a run has no time."""
    rows = zip(*(run.rows for run in runs), strict=True)
    return {each[0].key: list(each) if all(r.timing for r in each) else [] for each in rows}


def fastest(rows: Mapping[Key, list[Row]], network: str, routine: str) -> list[Row]:
    """Those of our fastest backend with its number of threads."""
    ours = (own for key, own in rows.items() if key[:2] == (network, routine) and not key[-1])
    return min(filter(None, ours), key=median, default=[])


HEADERS = ("Routine", "By", "Time", "Spread", "x scalar", "x ours", "GB/s", "Floor", "Error")


def cells(own: Sequence[Row], standard: Sequence[Row], ours: Sequence[Row]) -> list[str]:
    """Of rows with times: the time and what follows from it; `ours` is empty for our rows."""
    seconds, timings = median(own), [row.timing for row in own if row.timing]
    low = min(each.low for each in timings) / seconds - 1
    high = max(each.high for each in timings) / seconds - 1
    floors = [row.floor / row.seconds for row in own if row.floor]
    return [
        short_time(seconds),
        f"{low:+.0%} {high:+.0%}",
        ratio(standard, own),
        ratio(own, ours),
        digits(own[0].moved / seconds / 1e9),
        f"{statistics.median(floors):.0%}" if floors else NONE,
        f"{own[0].error or 0:.0e}",
    ]


def network_table(network: str, runs: Sequence[Report]) -> str:
    """Every time of a network, peers included."""
    rows, lines, notes, before = timed(runs), [], [], ""
    for row in (row for row in runs[0].rows if row.network == network):
        own, by = rows[row.key], column(row.name, row.threads)
        standard = rows.get((network, row.routine, *BASE, False), [])
        ours = fastest(rows, network, row.routine) if row.peer else []
        line = cells(own, standard, ours) if own else [NONE] * (len(HEADERS) - 2)
        lines.append(("" if row.routine == before else row.routine, by, *line))
        before = row.routine
        if row.reason:
            notes.append(f"{by}, {row.routine}: {row.reason}.")
    return table(network, HEADERS, lines, notes, left=2)


# ---- the paper ---------------------------------------------------------------------------------

#: Images of an epoch, as MNIST has them.
EPOCH = 60_000

#: The paper's figures (Results; Appendix, "Forward Propagation"): what, of which routine, by whom
#: if not by our fastest, how much and in which unit.
CLAIMS = (
    ("Forward, over a standard processor", "forward", None, 40, "x"),
    ("Backward, over a standard processor", "backward", None, 40, "x"),
    ("Deformation, over a standard processor", "deformation", None, 10, "x"),
    ("SSE in single precision, at most", "forward", ("sse2", 1), 4, "x"),
    ("Bandwidth of forward", "forward", None, 115, " GB/s"),
    ("Weight updates in training", "step", None, 5, " G/s"),
    (f"Deformation of {EPOCH:,} images, standard processor", "deformation", BASE, 93, " s"),
    (f"Deformation of {EPOCH:,} images, fastest", "deformation", None, 9, " s"),
)


def claims_table(network: str, runs: Sequence[Report]) -> list[str]:
    """The paper beside us, as far as that was measured."""
    rows, lines = timed(runs), []
    for what, routine, by, paper, unit in CLAIMS:
        own = rows.get((network, routine, *by, False)) if by else fastest(rows, network, routine)
        standard = rows.get((network, routine, *BASE, False))
        if own and standard:
            figure = {
                "x": median(standard) / median(own),
                " GB/s": own[0].moved / median(own) / 1e9,
                " G/s": own[0].updated / median(own) / 1e9,
                " s": EPOCH * median(own),
            }[unit]
            better = paper / figure if unit == " s" else figure / paper
            ours = f"{digits(figure)}{unit} ({column(own[0].name, own[0].threads)})"
            lines.append((what, f"{paper}{unit}", ours, f"{digits(better)}x"))
    headers = ("The paper's claim", "Paper", f"Ours, {network}", "times better")
    return [table("The paper beside us", headers, lines)] if lines else []


def all_tables(runs: Sequence[Report]) -> list[str]:
    """Of one run or of several on the same machine, in the order in which they are shown."""
    first = runs[0]
    tables = [head(first.date, first.revision, first.machine, first.missing, first.limits)]
    for network in dict.fromkeys(row.network for row in first.rows):
        tables += [network_table(network, runs), *claims_table(network, runs)]
    return [*tables, *(f"{note}\n" for note in (*first.notes, *EXPLANATION))]
