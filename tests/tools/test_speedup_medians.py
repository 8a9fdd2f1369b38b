"""`tools/speedup.py --medians`: one table, and a chart, from the JSON documents of several runs."""

from dataclasses import replace
from pathlib import Path

import pytest

from mlpcore.errors import InputError
from speed.command import main
from speed.results import Report, Row, read_runs, write_document
from speed.tables import all_tables
from speed.timing import Settings, Timing

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"

MACHINE = {"CPU": "A CPU, 2 cores (load 0.5)", "GPU": "none (no driver)", "versions": "jax 1"}
ANOTHER = {("scalar", 1): 8.5}  # makes a run differ from the first


def report(times=None, **changes):
    """A run of two backends and a peer; seconds by (name, threads), None for a row without."""
    seconds = {("scalar", 1): 8.0, ("avx2", 2): 2.0, ("JAX scan", 1): 6.0, ("JAX scan", 2): 5.0}
    rows, network = [], "net1\x1b"
    for (name, threads), value in (seconds | (times or {})).items():
        timing = Timing(value, value, value, 1, 1) if value else None
        peer, floor = name == "JAX scan", None if name == "JAX scan" else 1.0
        rows.append(Row(network, "step", name, threads, peer, timing, moved=4e9, floor=floor))
    run = Report("2026-11-23T11:07:32Z", "a" * 40, MACHINE, Settings(), "MNIST", [], {}, [], rows)
    return replace(run, **changes)


@pytest.fixture
def kept(tmp_path):
    """Writes reports into files, and gives their names."""

    def write(*reports):
        paths = [tmp_path / f"run-{i}.json" for i in range(len(reports))]
        for path, each in zip(paths, reports):
            write_document(path, each)
        return [str(path) for path in paths]

    return write


def cells(out):
    """The cells of the rows by the second column, of the table that has times."""
    rows = [
        [c.strip() for c in row.strip("|").split("|")] for row in out.splitlines() if "|" in row
    ]
    columns = next(row for row in rows if "Time" in row)
    return {row[1]: dict(zip(columns, row)) for row in rows if len(row) == len(columns)}


def test_medians_of_runs(kept, capsys):
    """The ratio is the median of the runs' ratios. It is not 2.5, the ratio of the medians."""
    slow = {("avx2", 2): 4.0, ("JAX scan", 1): 20.0, ("JAX scan", 2): 24.0}
    fast = {("avx2", 2): 1.0, ("JAX scan", 2): 4.0}
    busy = MACHINE | {"CPU": "A CPU, 2 cores (load 2.0)", "GPU": "none (busy)"}
    last = report(fast, date="2026-11-25T11:07:32+00:00", machine=busy)
    assert main(["--medians", *kept(report(slow), report(), last)]) == 0
    out = capsys.readouterr().out
    found = cells(out)
    assert "\x1b" not in out  # a terminal would obey it
    ours, jax = found["avx2, 2"], found["JAX scan, 2"]
    assert (ours["Time"], ours["Spread"]) == ("2.00 s", "-50% +100%")
    assert ours["x scalar"] == "4.00x (2.00 to 8.00)" and ours["GB/s"] == "2.00"
    assert ours["Floor"] == "50%" and ours["x ours"] == "-"
    assert jax["Time"] == "5.00 s" and jax["x ours"] == "4.00x (2.50 to 6.00)"


def test_a_row_without_a_time_in_one_run_has_no_median(kept, capsys):
    assert main(["--medians", *kept(report(), report({("avx2", 2): None} | ANOTHER))]) == 0
    found = cells(capsys.readouterr().out)
    assert found["avx2, 2"]["Time"] == "-"
    assert found["JAX scan, 2"]["x ours"] == "0.607x (0.588 to 0.625)"  # scalar is our fastest


@pytest.mark.parametrize(
    "other, message",
    [
        ({"machine": MACHINE | {"CPU": "B"}}, "machine, settings, revision, data and rows"),
        ({"settings": Settings(0.025)}, "machine, settings"),
        ({"times": {("sse2", 1): 1.0}}, "machine, settings"),
        ({}, "expected another run"),
        ({"date": "soon"}, "expected what tools/speedup.py --json writes"),
        ({"times": {("scalar", 1): -1.0}}, "expected what tools/speedup.py --json writes"),
    ],
)
def test_runs_that_cannot_be_compared(kept, other, message):
    with pytest.raises(InputError, match=message):
        read_runs([Path(each) for each in kept(report(), report(**other))])


def test_committed_results_can_be_read():
    paths = [path for path in RESULTS.rglob("*.json") if b'"routine": "' in path.read_bytes()]
    if not paths:
        pytest.skip("no results are committed here")
    for path in paths:
        assert all(all_tables(read_runs([path])))
