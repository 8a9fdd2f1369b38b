"""The findings of a run as tables in Markdown, with the paper's figures."""

from collections.abc import Iterable, Mapping

from matplotlib.ticker import EngFormatter

from mlpcore.report.tables import NONE, Rows, markdown_table
from speed.measure import BASE, Report, Row

EXPLANATION = (
    "Time: of a sample or an image, the median of the repeats; spread: the fastest and slowest.",
    "x scalar: times as fast as plain C on one thread; x ours: times as long as our fastest.",
    "Error: greatest difference from the float64 oracle, relative to the result or the change.",
)


def table(title: str, rows: Rows, notes: Iterable[str] = (), left: int = 1) -> str:
    """A table with its title and notes; the first `left` columns are aligned to the left."""
    align = ["left"] * left + ["right"] * (len(rows[0]) - left)
    return "\n\n".join([f"**{title}**", markdown_table(rows, align), *notes]) + "\n"


def digits(value: float) -> str:
    """A number with three significant digits."""
    return f"{float(f'{value:.3g}'):,g}"


def short_time(seconds: float) -> str:
    """A measured time with three digits: 37.2 µs."""
    return EngFormatter("s")(float(f"{seconds:.3g}"))


def column(row: Row) -> str:
    """A backend with its threads; a GPU has none of ours."""
    return row.name if row.name == "cuda" else f"{row.name}, {row.threads}"


def head(machine: Mapping[str, str]) -> str:
    """A description of the machine that everything was measured on."""
    return table("The machine", [("", ""), *machine.items()], left=2)


def find(report: Report, network: str, routine: str, by: tuple[str, int] | None) -> Row | None:
    """The row of a backend and its threads, or of our fastest; None without a time."""
    of = network, routine, False
    ours = [row for row in report.rows if (row.network, row.routine, row.peer) == of and row.timing]
    ours = [row for row in ours if by in (None, (row.name, row.threads))]
    return min(ours, key=lambda row: row.seconds, default=None)


def network_table(report: Report, network: str) -> str:
    """Every time of a network, peers included."""
    lines: Rows = [("Routine", "By", "Time", "Spread", "x scalar", "x ours", "Error")]
    notes = []
    for row in (row for row in report.rows if row.network == network):
        line = [NONE] * 5
        if row.timing:
            standard = find(report, network, row.routine, BASE)
            ours = find(report, network, row.routine, None) if row.peer else None
            spread = (each / row.seconds - 1 for each in (row.timing.low, row.timing.high))
            line = [
                short_time(row.seconds),
                "{:+.0%} {:+.0%}".format(*spread),
                f"{digits(standard.seconds / row.seconds)}x" if standard else NONE,
                f"{digits(row.seconds / ours.seconds)}x" if ours else NONE,
                f"{row.error or 0:.0e}",
            ]
        lines.append((row.routine, column(row), *line))
        if row.reason:
            notes.append(f"{column(row)}, {row.routine}: {row.reason}.")
    return table(network, lines, notes, left=2)


# ---- the paper ---------------------------------------------------------------------------------

#: Images of an epoch, as MNIST has them.
EPOCH = 60_000

#: The paper's figures (Results): what, of which routine, by whom
#: if not by our fastest, how much and in which unit.
CLAIMS = (
    ("Deformation, over a standard processor", "deformation", None, 10, "x"),
    ("Weight updates in training", "step", None, 5, " G/s"),
    (f"Deformation of {EPOCH:,} images, standard processor", "deformation", BASE, 93, " s"),
    (f"Deformation of {EPOCH:,} images, fastest", "deformation", None, 9, " s"),
)


def claims_table(report: Report, network: str) -> list[str]:
    """The paper beside us, as far as that was measured."""
    lines: Rows = [("The paper's claim", "Paper", f"Ours, {network}", "times better")]
    for what, routine, by, paper, unit in CLAIMS:
        own, standard = (find(report, network, routine, each) for each in (by, BASE))
        if own and standard:
            figure = {
                "x": standard.seconds / own.seconds,
                " G/s": 1e-9 * report.parameters[network] / own.seconds,
                " s": EPOCH * own.seconds,
            }[unit]
            better = paper / figure if unit == " s" else figure / paper
            ours = f"{digits(figure)}{unit} ({column(own)})"
            lines.append((what, f"{paper}{unit}", ours, f"{digits(better)}x"))
    return [table("The paper beside us", lines)] if len(lines) > 1 else []


def all_tables(report: Report) -> list[str]:
    """The tables of a run, in the order in which they are shown."""
    tables = [head(report.machine)]
    for network in report.parameters:
        tables += [network_table(report, network), *claims_table(report, network)]
    return [*tables, *(f"{note}\n" for note in EXPLANATION)]
