"""What a run has found, as tables in text or Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from mlpcore.errors import shown
from mlpcore.report.tables import NONE, escape, markdown_table, text_table
from speed.limits import Limits
from speed.results import Architecture, Report, Result
from speed.routines import DENSE, SPARSE
from speed.to_error import ErrorReport
from speed.units import digits, short_time

EXPLANATION = (
    "Time: the median of the repeats; spread: the fastest and the slowest repeat.",
    "GB/s: the bytes of weights that the routine has to move at least. Weights are float32; "
    "in large networks' steps avx2 and avx512 read 21 bits, unless the row says otherwise.",
    "Floor: the longer of moving these bytes and doing the multiply-adds, on this machine with "
    "as many threads; of the floor: floor over time.",
    "Error: greatest difference from the float64 oracle, relative to the result, or to what "
    "training has changed.",
    "A displacement field is the work of one thread.",
)


@dataclass(frozen=True)
class Table:
    """Rows of cells below their headers; the first `left` columns are aligned to the left."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    left: int = 1

    def text(self, markdown: bool = False) -> str:
        """The table with its title and its notes. Whatever cannot be printed is escaped."""

        cells = [
            tuple(shown(cell) if cell else "" for cell in row) for row in (self.headers, *self.rows)
        ]
        title, notes = shown(self.title), [shown(note) for note in self.notes]
        align = ("l" * self.left).ljust(len(self.headers), "r")
        if markdown:
            notes = [escape(note) for note in notes]
            return (
                "\n\n".join([f"**{escape(title)}**", markdown_table(cells, align), *notes]) + "\n"
            )
        body = text_table(cells, align)
        return "\n".join([title, "", body, *(textwrap.fill(note, 100) for note in notes)]) + "\n"


def column(backend: str, threads: int) -> str:
    """The header of a backend's column; a GPU has no threads of ours."""
    return backend if backend == "cuda" else f"{backend}, {threads}"


def times(value: float | None) -> str:
    """A ratio."""
    return NONE if value is None else f"{digits(value)}x"


def share(value: float | None) -> str:
    """A fraction in percent."""
    return NONE if value is None else f"{value:.0%}"


def giga(value: float | None) -> str:
    """A rate in thousand millions."""
    return NONE if value is None else digits(value / 1e9)


def machine_table(report: Report | ErrorReport) -> Table:
    """What everything was measured on."""
    fields = {"date": report.date[:10], "revision": report.revision, **asdict(report.machine)}
    fields |= {"memory": f"{report.machine.memory / 2**30:.1f} GiB"}
    caches = report.machine.caches
    sizes = [f"{level} {getattr(caches, level) >> 10:,} KiB" for level in ("l1", "l2", "l3")]
    fields["caches"] = [*sizes, "as the machine says" if caches.known else "assumed"]
    fields["versions"] = map(" ".join, report.machine.versions.items())
    rows = []
    for name, value in fields.items():
        text = str(value) if isinstance(value, (str, int, float)) else ", ".join(value or [])
        rows.append((name.replace("_", " "), text))
    return Table("The machine", ("Property", "Value"), rows, left=2)


def _limits_row(limits: Limits) -> tuple[str, ...]:
    levels = {level.name: f"{giga(level.read)} / {giga(level.copy)}" for level in limits.levels}
    place = f"CPU, {limits.threads}" if limits.place == "cpu" else "GPU"
    cells = [levels.get(name, NONE) for name in ("L2", "L3", "DRAM", "device")]
    return (place, *cells, giga(limits.multiply_adds))


def limits_table(report: Report) -> Table:
    """What the machine can do."""
    headers = ("Threads", "L2", "L3", "DRAM", "GPU memory", "G multiply-adds/s")
    note = "A GPU's multiply-adds are from its attributes; what stays on the chip can be faster."
    rows = [_limits_row(limits) for limits in report.limits]
    return Table("The machine's limits: read / copy in GB/s", headers, rows, [note])


def summary_table(architecture: Architecture) -> Table:
    """Every routine by every backend: the time, and how many times as fast as `scalar`."""
    ours = [r for row in architecture.routines for r in row.results if not r.peer]
    keys, rows = list(dict.fromkeys((r.name, r.threads) for r in ours)), []
    for row in architecture.routines:
        found = [row.find(*key) for key in keys]
        cells = [f"{short_time(r.seconds)} {times(r.ratio)}" if r else NONE for r in found]
        rows.append((row.label, *cells))
    sizes = "-".join(map(str, architecture.layer_sizes))
    title = f"{architecture.name} ({sizes}, {architecture.parameters:,} weights): time, and speed"
    headers = ("Backend, threads", *(column(*key) for key in keys))
    return Table(f"{title} as a multiple of scalar's with one thread", headers, rows)


def _details(result: Result) -> dict[str, str]:
    cells = {"By": result.name, "Threads": str(result.threads)}
    if result.timing is None:
        return cells
    low, high = (t / result.seconds - 1 for t in (result.timing.low, result.timing.high))
    return {
        **cells,
        "Time": short_time(result.seconds),
        "Spread": f"{low:+.0%} {high:+.0%}",
        "x scalar": times(result.ratio),
        "G updates/s": giga(result.updates),
        "GB/s": giga(result.bandwidth),
        "Floor": NONE if result.floor is None else short_time(result.floor),
        "of the floor": share(result.reached),
        "Error": NONE if result.error is None else f"{result.error:.0e}",
    }


def detail_table(architecture: Architecture) -> Table:
    """Every time with what follows from it, peers included."""
    entries, notes = [], []
    for row in architecture.routines:
        if row.note and row.note not in notes:
            notes.append(row.note)
        for i, result in enumerate(row.results):
            entries.append({"Routine": "" if i else row.label, **_details(result)})
            if result.timing is None:
                who = f"{column(result.name, result.threads)}: {row.title}"
                notes.append(f"{who}: {result.reason}.")
    headers = [header for cells in entries for header in cells]
    headers = list(dict.fromkeys(headers))
    rows = [[cells.get(header, NONE) for header in headers] for cells in entries]
    return Table(f"{architecture.name}: in detail", headers, rows, [*notes, *EXPLANATION], left=2)


def sparse_tables(architecture: Architecture) -> list[Table]:
    """What it is worth to leave inactive neurons out, if that and another step were measured."""
    rows = {row.key: row for row in architecture.routines}
    sparse, others = rows.get(SPARSE), [rows[key] for key in ("step", DENSE) if key in rows]
    if not sparse or not others:
        return []
    keys = [(r.name, r.threads) for r in sparse.results if r.timing and not r.peer]
    lines = []
    for row in others:
        found = ((row.find(*key), sparse.find(*key)) for key in keys)
        ratios = [times(a.seconds / b.seconds if a and b else None) for a, b in found]
        lines.append((row.title, *ratios))
    title = f"{architecture.name}: time of other steps over that of {sparse.title}"
    headers = ("Backend, threads", *(column(*key) for key in keys))
    return [Table(title, headers, lines)]


def claims_table(architecture: Architecture) -> Table:
    """The paper beside us."""
    headers = ("The paper's claim", "Paper", f"Ours, {architecture.name}", "Ours over the paper")
    rows = [(c.what, c.paper, c.ours, times(c.ratio)) for c in architecture.claims]
    note = "Of times, the last column has the paper's over ours."
    return Table("The paper beside us", headers, rows, [note])


def all_tables(report: Report) -> list[Table]:
    """In the order in which they are shown."""
    tables = [machine_table(report), limits_table(report)]
    for each in report.architectures:
        tables += [summary_table(each), *sparse_tables(each), detail_table(each)]
        tables.append(claims_table(each))
    if report.missing:
        tables.append(Table("Not measured", ("What", "Why"), [*report.missing.items()], left=2))
    return tables
