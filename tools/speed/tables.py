"""What a run has found as tables of text, whatever shows them."""

from __future__ import annotations

from dataclasses import dataclass, field

from mlpcore.report.tables import NONE, digits, short_time
from speed.limits import Limits
from speed.results import Result, Row
from speed.run import ArchitectureResults, Report


@dataclass
class Table:
    """Rows of cells; a `None` among the rows is a rule between groups."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...] | None] = field(default_factory=list)
    left: int = 1  #: columns that are aligned to the left
    notes: tuple[str, ...] = ()


def column(backend: str, threads: int) -> str:
    """The heading of a backend's column; a GPU has no threads of ours."""
    return backend if backend == "cuda" else f"{backend}, {threads}"


def _optional(value: float | None, text: str) -> str:
    return NONE if value is None else text.format(value)


def _threads(n: int) -> str:
    return f"{n} thread" if n == 1 else f"{n} threads"


# ---- the machine ---------------------------------------------------------------------------


def machine_table(report: Report) -> Table:
    """What everything was measured on."""
    return Table("Machine", ("", ""), [*report.machine.lines()], left=2)


def _limit_row(place: str, limits: Limits) -> tuple[str, ...]:
    cells = [place]
    for name in ("L2", "L3", "DRAM", "device"):
        level = next((level for level in limits.levels if level.name == name), None)
        if level is None:
            cells.append(NONE)
        else:
            cells.append(f"{digits(level.read / 1e9)} / {digits(level.copy / 1e9)}")
    return (*cells, digits(limits.multiply_adds / 1e9))


def limits_table(report: Report) -> Table:
    """What the machine can do."""
    columns = ("Read / copy, GB/s", "L2", "L3", "DRAM", "device", "G multiply-adds/s")
    table = Table("The machine's limits", columns)
    notes = []
    for (place, threads), limits in report.limits.items():
        table.rows.append(_limit_row(_threads(threads) if place == "cpu" else "device", limits))
        if limits.note and limits.note not in notes:
            notes.append(limits.note)
    table.notes = tuple(notes)
    return table


# ---- an architecture -----------------------------------------------------------------------


def summary_table(results: ArchitectureResults, report: Report) -> Table:
    """Every routine by every backend: the time, and how many times as fast as `scalar`."""
    keys: list[tuple[str, int]] = []
    for row in results.rows:
        ours = [r.line for r in row.results if not r.line.peer]
        keys += [key for line in ours if (key := (line.name, line.threads)) not in keys]
    title = f"{architecture_title(results)}: time, and times as fast as scalar with one thread"
    table = Table(title, ("By, threads", *(column(*key) for key in keys)))
    for row in results.rows:
        cells = [f"{row.title}, per {row.unit}" if row.unit != "epoch" else row.title]
        for name, threads in keys:
            result = row.find(name, threads)
            ratio = "" if result is None or result.ratio is None else f"{digits(result.ratio)}x"
            cells.append(f"{short_time(result.line.seconds)} {ratio}" if result else NONE)
        table.rows.append(tuple(cells))
    return table


def architecture_title(results: ArchitectureResults) -> str:
    """Name, sizes, number of weights."""
    sizes = "-".join(map(str, results.layer_sizes))
    return f"{results.name} ({sizes}, {results.parameters:,} weights)"


DETAIL: tuple[str, ...] = ("Routine", "By", "Threads", "Time", "Spread", "x scalar", "G updates/s")
DETAIL += ("GB/s", "of limit", "Floor", "Reached", "Error")


def _detail_cells(title: str, result: Result) -> tuple[str, ...]:
    line = result.line
    start = (title, line.label, str(line.threads))
    if line.timing is None:
        return (*start, *[NONE] * (len(DETAIL) - len(start)))
    timing = line.timing
    giga = (None if v is None else digits(v / 1e9) for v in (result.updates, result.bandwidth))
    updates, bandwidth = (v or NONE for v in giga)
    return (
        *start,
        short_time(timing.seconds),
        f"{timing.low / timing.seconds - 1:+.0%} {timing.high / timing.seconds - 1:+.0%}",
        NONE if result.ratio is None else f"{digits(result.ratio)}x",
        updates,
        bandwidth,
        _optional(result.of_limit, "{:.0%}"),
        NONE if result.floor is None else short_time(result.floor),
        _optional(result.reached, "{:.0%}"),
        _optional(line.error, "{:.0e}"),
    )


def _row_notes(row: Row) -> list[str]:
    """Why there is no time, and what computes something else than the routine."""
    notes = []
    for line in (result.line for result in row.results):
        if line.timing is None:
            notes.append(f"{line.name}, {_threads(line.threads)}: {row.title}: {line.reason}.")
        elif line.other:
            notes.append(f"* {line.name} computes something else: {line.other}.")
    return notes


def detail_table(results: ArchitectureResults) -> Table:
    """Every time with what follows from it, peers included."""
    table = Table(f"{architecture_title(results)}: in detail", DETAIL, left=2)
    notes: list[str] = []
    for row in results.rows:
        if table.rows:
            table.rows.append(None)
        for i, result in enumerate(row.results):
            title = f"{row.title}, per {row.unit}" if row.unit != "epoch" else row.title
            table.rows.append(_detail_cells("" if i else title, result))
        notes += _row_notes(row)
    table.notes = (*notes, *EXPLANATION)
    return table


EXPLANATION = (
    "Times are medians; the spread is that of the fastest and the slowest repeat.",
    "GB/s: the bytes of weights that the routine has to move at least, in float32 but for large "
    "networks' steps by avx2 and avx512, which read 21 bits unless it says otherwise; of limit: "
    "of the bandwidth measured where weights of this size fit.",
    "Floor: the longer of moving these bytes and doing the multiply-adds, on this machine with "
    "as many threads; Reached: floor over time.",
    "Error: greatest difference from the float64 oracle, relative to the result, or to what "
    "training has changed.",
    "A displacement field is the work of one thread. Validation may be faster than the floor, "
    "which counts multiply-adds in float32: by avx2, and by avx512 with VNNI, in 8-bit integers, "
    "by avx512 with AMX.",
)


def claims_table(results: ArchitectureResults) -> Table:
    """The paper beside us."""
    columns = ("The paper's claim", "Paper", f"Ours, {results.name}", "Ours over the paper")
    table = Table("The paper beside us", columns)
    for claim in results.claims:
        ratio = NONE if claim.ratio is None else f"{digits(claim.ratio)}x"
        table.rows.append((claim.what, claim.paper, claim.ours, ratio))
    table.notes = ("Of times, the paper's over ours.",)
    return table


def missing_table(report: Report) -> Table:
    """What was not measured, and why."""
    rows: list[tuple[str, ...] | None] = [*report.missing.items()]
    return Table("Not measured", ("", "Reason"), rows, left=2)


def all_tables(report: Report) -> list[Table]:
    """In the order in which they are shown."""
    tables = [machine_table(report), limits_table(report)]
    for results in report.architectures:
        tables += [summary_table(results, report), detail_table(results), claims_table(results)]
    if report.missing:
        tables.append(missing_table(report))
    return tables
