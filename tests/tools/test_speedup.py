"""The benchmark tool: its arithmetic, its checks, its input. No test looks at a duration."""

from dataclasses import replace

import numpy as np
import pytest

from mlpcore import backends
from mlpcore.network.architecture import PRESETS
from mlpcore.store import provenance
from speed import claims, floors, limits, timing
from speed.command import main, make_plan, parser
from speed.measure import Plan, measure_row
from speed.peers import PEERS
from speed.peers.base import Peer, check_trainer
from speed.problem import CHECKED, ORACLE_BUDGET, TOLERANCE, Problem
from speed.results import Report, Result, Row
from speed.routines import ROUTINES

#: The shortest measurement.
TINY = timing.Settings(seconds=1e-6, repeats=1)


@pytest.fixture(scope="module")
def problem():
    return Problem((8, 5), images=200, training_seconds=0.1)


@pytest.fixture
def small_buffers(monkeypatch):
    monkeypatch.setattr(limits, "MOST", 1 << 22)


def machine_limits(private=0.0):
    """100 GB/s in 1 MB of L2, 50 in 10 MB of L3, 10 beyond; copies at half of that."""
    levels = (
        limits.Level("L2", 1e6, 100e9, 50e9),
        limits.Level("L3", 10e6, 50e9, 25e9),
        limits.Level("DRAM", None, 10e9, 5e9),
    )
    return limits.Limits("cpu", 1, levels, 1e11, private)


def result(name, seconds, threads=1, peer=False):
    return Result(name, threads, peer, timing=timing.Timing(seconds, seconds, seconds, 1, 1))


def plan(*routines, peers=()):
    return Plan(((8, 5),), routines, ("scalar",), (1,), TINY, peers)


# ---- times, floors, ratios -------------------------------------------------------------------


def test_cases_are_run_in_turn_and_in_multiples_of_their_step(monkeypatch):
    calls = []
    cases = [timing.Case(lambda n, i=i: calls.append((i, n)), step=8, most=64) for i in range(2)]
    measured = timing.measure(cases, timing.Settings(seconds=1.0, repeats=3))
    assert all(n % 8 == 0 and n <= 64 for _, n in calls)
    assert [t.units for t in measured] == [64, 64]
    assert [i for i, n in calls[-12:] if n == 64] == [0, 1, 1, 0, 0, 1]

    ticks = iter([0.0, 0.0, 4.0, 0.0, 2.0, 0.0, 3.0])
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(ticks))
    case = timing.Case(lambda n: None, step=10, most=10)
    (measured,) = timing.measure([case], timing.Settings(seconds=1.0, repeats=3), per=100)
    assert measured == timing.Timing(30.0, 20.0, 40.0, 10, 3)


def test_the_floor_is_the_longer_of_bytes_and_multiply_adds():
    def seconds(*traffic, private=0.0):
        return floors.Work((floors.Traffic(*traffic),), 1e3).floor(machine_limits(private))

    assert seconds(4e6, 4e6) == pytest.approx(1e6 / 100e9 + 3e6 / 50e9)
    copied = 2 * (1e6 / 50e9 + 9e6 / 25e9 + 10e6 / 5e9)
    assert seconds(40e6, 20e6, True) == pytest.approx(copied)
    assert seconds(1e5, 1e5, private=2e5) == 1e-8
    slow = floors.Work(multiply_adds=1e9)
    assert slow.floor(machine_limits()) == pytest.approx(1e-2)
    assert (slow + slow).floor(machine_limits()) == pytest.approx(2e-2)


def test_the_paper_beside_us():
    def row(key, *times):
        lines = [result(name, t) for name, t in zip(("scalar", "sse2", "avx512"), times)]
        work = floors.Work((floors.Traffic(2e6, 1e6),), 1e6, updates=1e6)
        return Row(key, key, "sample", tuple(r.derive(work, 1, None, times[0]) for r in lines))

    rows = [
        row("forward", 8e-3, 4e-3, 1e-4),
        row("step", 8e-3, 4e-3, 1e-4),
        row("deformation", 31e-4, 1e-4, 1e-5),
        row("epoch", 100.0, 50.0, 6.0),
    ]
    found = {claim.what: claim for claim in claims.compare(rows)}
    assert found["Forward, over a standard processor"].ratio == pytest.approx(80 / 40)
    assert found["Backward, over a standard processor"].ours == "not measured"
    assert found["SSE in single precision, forward"].ratio == pytest.approx(2 / 4)
    assert found["Bandwidth of forward"].ratio == pytest.approx(20 / 115)
    assert found["Weight updates in training"].ratio == pytest.approx(10 / 5)
    standard = found["Deformation for 60,000 images, standard processor"]
    assert standard.ratio == pytest.approx(93 / 186) and standard.ours == "186 s (scalar, 1 thread)"
    assert found["Deformation for 60,000 images, fastest"].ours == "600 ms (avx512, 1 thread)"
    assert found["Displacement field for 60,000 images, fastest"].ratio is None
    assert found["Deformation's share of an epoch"].ours.startswith("10.0%")


# ---- checks ------------------------------------------------------------------------------------


def test_a_problem_is_like_mnist_and_its_oracle_keeps_to_its_budget(problem):
    """A digit's share of background decides its time. The oracle trains net1 on all its samples."""
    assert problem.images.min() == -1 and problem.images.max() == 1
    assert 0.28 < problem.foreground < 0.34
    large = Problem(PRESETS["net4"], images=64)
    assert Problem((1000, 500), images=64).checked == CHECKED
    cost = 3 * large.network.n_parameters * large.checked
    assert 2 < large.checked < CHECKED and 0.5 * ORACLE_BUDGET < cost <= ORACLE_BUDGET


@pytest.mark.parametrize("key", ROUTINES)
def test_every_routine_is_right_and_can_be_timed(problem, key):
    routine = ROUTINES[key]
    backend = backends.get("scalar", 2, *filter(None, [routine.schedule]))
    outcome, case = routine.enter(problem, backend)
    assert problem.error(routine.enter, outcome) < TOLERANCE / 10
    case.run(case.step)
    assert routine.work(problem, backend).floor(machine_limits()) > 0


@pytest.mark.parametrize("value", [1.01, np.nan, [1.0, 2.0]])
def test_a_backend_with_a_wrong_result_is_not_timed(problem, value):
    def enter(problem, backend):
        right = backend.name == "reference"
        return [(np.array(1.0 if right else value), 0)], timing.Case(None)

    (line,) = measure_row(replace(ROUTINES["field"], enter=enter), problem, plan()).results
    assert line.timing is None and line.failed and "wrong" in line.reason


def own_peer(kind):
    """The reference backend as a peer: right, or with a frequent mistake."""

    def check(problem, threads):
        network, backend = problem.network.copy(), backends.get("reference")
        rate = problem.rate / (10 if kind == "loss averaged over outputs" else 1)

        def after(samples):
            result = network.copy()
            backend.train(result, problem.flat_images, problem.labels, samples, rate)
            return [*result.weights, *result.biases]

        def train(order):
            for pair in order.reshape(-1, 2):
                old = network.copy()
                new = after(pair)
                if kind == "batches of two":
                    start = [*old.weights, *old.biases]
                    new = [x + y - z for x, y, z in zip(after(pair[:1]), after(pair[1:]), start)]
                for array, value in zip([*network.weights, *network.biases], new):
                    array[...] = value
                if kind == "no biases":
                    for array, value in zip(network.biases, old.biases):
                        array[...] = value

        return check_trainer(problem, train, lambda: zip(network.weights, network.biases))

    return Peer("ours", "step", "numpy", check, lambda threads: {1})


@pytest.mark.parametrize(
    "kind", ["right", "loss averaged over outputs", "batches of two", "no biases"]
)
def test_a_peer_with_a_wrong_result_is_not_timed(problem, kind):
    row = measure_row(ROUTINES["step"], problem, plan(peers=(own_peer(kind),)))
    ours, other = row.results
    assert ours.timing and not ours.failed
    assert (other.timing is None) == other.failed == ("wrong" in other.reason) == (kind != "right")


def test_a_peer_that_fails_is_a_reason(problem):
    def check(problem, threads):
        raise RuntimeError("no such\noperator")

    broken = Peer("broken", "step", "numpy", check, lambda threads: {1, threads})
    absent = replace(broken, module="no_such_module")
    row = measure_row(ROUTINES["step"], problem, plan(peers=(broken, absent)))
    assert [line.reason for line in row.results[1:]] == ["failed: no such operator"]
    asked = plan(ROUTINES["step"], peers=(absent,))
    assert asked.missing()["broken"] == "no_such_module is not installed"


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_every_peer_that_is_there_does_the_same(problem, peer):
    if reason := peer.missing():
        pytest.skip(reason)
    error, case = peer.check(problem, 2)
    assert error <= TOLERANCE
    case.run(case.step)


# ---- the command -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--arch", "net9"], "architecture 'net9'"),
        (["--arch", "1000000,1000000"], "needs about"),
        (["--backend", "mmx"], "'mmx', expected scalar"),
        (["--routine", "forward,sort"], "'sort', expected forward"),
        (["--threads", "1,two"], "'two', expected a whole number"),
        (["--peers", "JAX,fast"], "'fast', expected a part of JAX scan; PyTorch by hand"),
        (["--json", "/nowhere/at/all.json"], "cannot write /nowhere/at/all.json: No such file"),
        (["--json", "."], "cannot write .: expected a file or a new name"),
    ],
)
def test_bad_input_is_one_line_and_status_2(capsys, arguments, message):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert err.startswith("error: ") and message in err


def test_options_make_a_plan(monkeypatch):
    monkeypatch.setattr("speed.command.available_cores", lambda: 6)

    def read(*arguments):
        return make_plan(parser().parse_args(arguments))

    several = read("--arch", "net1;8,4", "--arch", "8,4;3", "--routine", "update,forward")
    assert several.architectures == ((1000, 500), (8, 4), (3,))
    assert [routine.key for routine in several.routines] == ["forward", "update"]
    assert several.threads == (1, 6) and several.peers == ()
    assert read("--threads", "4,2,4").threads == (1, 2, 4)
    pairs = read("--backend", "scalar", "--threads", "2").columns()
    assert pairs == [("scalar", 1), ("scalar", 2)]
    assert [peer.name for peer in read("--peers", "scan, scipy").peers] == [
        *("JAX scan", "JAX scan, GPU", "SciPy")
    ]
    assert read("--peers").peers == PEERS


def test_from_end_to_end(tmp_path, capsys, small_buffers):
    path = tmp_path / "speed.json"
    arguments = ["--arch", "8", "--quick", "--routine", "forward,epoch", "--markdown", "--peers"]
    assert main([*arguments, "--json", str(path)], TINY) == 0
    out, err = capsys.readouterr()
    assert "| Forward, per sample" in out and "The paper beside us" in out and "8: forward" in err
    report = Report.read(path)
    assert list(tmp_path.iterdir()) == [path] and report.revision == provenance.revision()
    forward, epoch = report.architectures[0].routines
    base = forward.results[0]
    assert (base.name, base.threads, base.ratio) == ("scalar", 1, 1.0)
    for line in (*forward.results, *epoch.results):
        assert line.error < TOLERANCE and line.reached == pytest.approx(line.floor / line.seconds)
    measured = {line.name for line in forward.results}
    assert measured.isdisjoint(report.missing)
    assert measured | {*report.missing} >= {"scalar", "sse2", "avx2", "avx512", "cuda"}


def test_results_outlast_an_output_that_closes(monkeypatch, tmp_path, small_buffers):
    def closed(*arguments):
        raise OSError("closed")

    monkeypatch.setattr("speed.tables.Table.text", closed)
    path = tmp_path / "speed.json"
    arguments = ["--arch", "8", "--backend", "scalar", "--routine", "forward", "--threads", "1"]
    assert main([*arguments, "--json", str(path)], TINY) == 2
    assert Report.read(path).architectures
