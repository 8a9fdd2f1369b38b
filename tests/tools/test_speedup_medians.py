"""`tools/speedup.py --medians`: one table from the JSON documents of several runs."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlpcore.errors import InputError
from speed import medians
from speed.command import main
from speed.machine import Caches, Machine
from speed.results import Architecture, Report, Result, Row
from speed.timing import Settings, Timing

ROOT = Path(__file__).resolve().parents[2]

MACHINE = Machine("A CPU", ("avx2",), 2, 2, Caches(), 1000, "none (no driver)", {"jax": "1"}, 0.5)
ANOTHER = {("scalar", 1): 8.5}  # makes a run differ from the first


def report(times=None, **changes):
    """A run of two lines and a peer; seconds by (name, threads), None for a line without."""
    seconds = {("scalar", 1): 8.0, ("avx2", 2): 2.0, ("JAX scan", 1): 6.0, ("JAX scan", 2): 5.0}
    lines = []
    for (name, threads), value in (seconds | (times or {})).items():
        peer = name == "JAX scan"
        timing = Timing(value, value, value, 1, 1) if value else None
        reached = 1 / value if value and not peer else None
        lines.append(Result(name, threads, peer, timing=timing, reached=reached))
    row = Row("step", "On-line step", "sample", tuple(lines))
    network = Architecture(changes.pop("network", "net1"), (841, 10), 8420, (row,), ())
    date = "2026-11-23T11:07:32+00:00"
    fields = {"architectures": (network,), "limits": (), "missing": {}, "revision": "a" * 40}
    return replace(Report(date, MACHINE, Settings(), **fields), **changes)


@pytest.fixture
def kept(tmp_path):
    """Writes reports into files, and gives their names."""

    def write(*reports):
        paths = [tmp_path / f"run-{i}.json" for i in range(len(reports))]
        for path, each in zip(paths, reports):
            each.write(path)
        return [str(path) for path in paths]

    return write


def medians_of(files, capsys):
    """The title, the cells of the only row by column, and the notes."""
    assert main(["--medians", *files, "--markdown"]) == 0
    title, _, columns, _, row, *notes = capsys.readouterr().out.splitlines()
    cells = ([cell.strip() for cell in line.strip("|").split("|")] for line in (columns, row))
    return title, dict(zip(*cells)), " ".join(notes)


def test_medians_of_runs(kept, capsys):
    """The ratio is the median of the runs' ratios. It is not 2.5, the ratio of the medians."""
    slow = {("avx2", 2): 4.0, ("JAX scan", 1): 20.0, ("JAX scan", 2): 24.0}
    fast = {("avx2", 2): 1.0, ("JAX scan", 2): 4.0}
    busy = replace(MACHINE, load=2.0, memory=1001, device="none (busy)")
    last = report(fast, date="2026-11-25T11:07:32+00:00", machine=busy)
    title, cells, notes = medians_of(kept(report(slow), report(), last), capsys)
    assert "On-line step, per sample: medians of 3 runs, 2026-11-23 to 2026-11-25" in title
    assert cells == {
        "Network": "net1",
        "scalar, 1": "8.00 s",
        "avx2, 2": "2.00 s",
        "JAX scan": "5.00 s 4.0x (2.5 to 5.0)",
        "of the floor": "50%",
    }
    assert "A CPU, 2 cores" in notes and f"revision {'a' * 40}." in notes
    title, cells, _ = medians_of(kept(report()), capsys)
    assert "one run, 2026-11-23**" in title and cells["JAX scan"] == "5.00 s 2.5x"


def test_medians_without_a_time(kept, capsys):
    """A line without a time in one run has no median, and cannot be the fastest."""
    files = kept(report(), report({("avx2", 2): None, ("JAX scan", 2): None} | ANOTHER))
    _, cells, _ = medians_of(files, capsys)
    assert cells["avx2, 2"] == "-" and cells["of the floor"] == "12%"
    assert cells["JAX scan"] == "6.00 s 0.7x (0.7 to 0.8)"
    _, cells, _ = medians_of(kept(report({("scalar", 1): None, ("avx2", 2): None})), capsys)
    assert cells["JAX scan"] == "5.00 s" and cells["of the floor"] == "-"


def test_what_a_terminal_would_obey_is_escaped(kept, capsys):
    _, cells, _ = medians_of(kept(report(network="\x1b[2J|")), capsys)
    assert "\x1b" not in cells["Network"]


@pytest.mark.parametrize(
    "other, message",
    [
        ({"machine": replace(MACHINE, cpu="B")}, "machine, settings or revision"),
        ({"settings": Settings(0.025)}, "machine, settings or revision"),
        ({"revision": ""}, "machine, settings or revision"),
        ({"times": {("sse2", 1): 1.0}}, "networks, routines and lines"),
        ({}, "expected another run"),
        ({"date": "soon"}, "expected what tools/speedup.py --json writes"),
    ],
)
def test_runs_that_cannot_be_compared(kept, capsys, other, message):
    assert main(["--medians", *kept(report(), report(**other))]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "run-1.json" in err and message in err


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_documents_are_refused_or_read(tmp_path, data):
    """Some bytes, or a value of another kind, in place of what a run writes."""
    path = tmp_path / "run.json"
    content = bytearray(msgspec.json.encode(report()))
    if data.draw(st.booleans()):
        begin = data.draw(st.integers(0, len(content)))
        content[begin : begin + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
    else:
        number = data.draw(st.sampled_from([b"-1.0", b"0", b"1e999", b"1" * 400, b"null", b"[]"]))
        content = content.replace(b'"seconds":8.0', b'"seconds":' + number)
    path.write_bytes(content)
    try:
        runs = medians.read_runs([path])
    except InputError:
        return
    for table in medians.tables(runs):
        assert table.text()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--arch", "net1"], "--arch together with --medians"),
        (["--routine", "forward"], "routine 'forward': the runs have step"),
        (["none.json"], "cannot read"),
    ],
)
def test_bad_input_for_medians(kept, capsys, monkeypatch, tmp_path, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["--medians", *kept(report()), *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and message in err


def test_committed_results_of_any_version_can_be_read():
    results = ROOT / "benchmarks" / "results"
    paths = [p for p in results.rglob("*.json") if b'"of_limit"' in p.read_bytes()]
    if not paths:
        pytest.skip("no results are committed here")
    for path in paths:
        assert medians.tables(medians.read_runs([path]))
