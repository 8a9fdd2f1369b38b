"""The benchmark tool: its arithmetic, its checks, its input. No test looks at a duration."""

from dataclasses import replace

import numpy as np
import pytest

from mlpcore import backends
from mlpcore.data import dataset
from speed import command, machine, measure, timing
from speed.peers import PEERS
from speed.peers.base import Peer
from speed.problem import TOLERANCE, make_problem
from speed.results import read_runs
from speed.routines import ROUTINES

#: The shortest measurement.
TINY = timing.Settings(seconds=1e-6, repeats=1)

DIGITS = dataset.load(name="digits")


@pytest.fixture(scope="module")
def problems():
    """By recipe."""
    return {recipe: make_problem(DIGITS, (8, 5), recipe, 200) for recipe in ("paper", "modern")}


def measured(problem, routine, *peers):
    """The rows of a routine by plain C and peers."""
    plan = measure.Plan(DIGITS, (), (routine,), ("scalar",), (1,), TINY, peers)
    return measure.measure_routine("8,5", routine, problem, plan, {})


# ---- times and floors --------------------------------------------------------------------------


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
    (measured,) = timing.measure([case], timing.Settings(seconds=1.0, repeats=3))
    assert measured == timing.Timing(0.3, 0.2, 0.4, 10, 3)


def test_weights_are_read_from_the_nearest_level_that_has_room():
    """100 GB/s in 1 MB of L2, 50 in 10 MB of L3, 10 beyond."""
    levels = ("L2", 1e6, 100e9), ("L3", 10e6, 50e9), ("DRAM", None, 10e9)
    limits = machine.Limits(1, levels)
    assert limits.seconds(4e6) == pytest.approx(1e6 / 100e9 + 3e6 / 50e9)
    assert limits.seconds(20e6) == pytest.approx(1e6 / 100e9 + 9e6 / 50e9 + 10e6 / 10e9)
    assert replace(limits, private=2e5).seconds(1e5) == 0


def test_a_step_reads_the_rows_of_active_inputs_twice(problems):
    tanh, rectifiers = (problems[recipe] for recipe in ("paper", "modern"))
    backend = backends.get("scalar", 1)
    dense, sparse = (ROUTINES["step"].work(each, backend) for each in (tanh, rectifiers))
    upper = 5 * (8 + 1) + 10 * (5 + 1)
    assert tanh.active == pytest.approx([1.0, 1.0, 1.0], rel=1e-3)
    assert dense.reads == pytest.approx((4 * upper, 4 * upper))
    assert dense.updates == pytest.approx(8 * (841 + 1) + upper, rel=1e-3)
    first, *shares = rectifiers.active
    assert 0.1 < first < 0.6 and all(0 < share < 1 for share in shares)
    read = 4 * (shares[0] * 5 * 9 + shares[1] * 10 * 6)
    assert sparse.reads == pytest.approx((read, read)) and sparse.updates < dense.updates
    assert ROUTINES["step"].work(tanh, None) == dense  # of another library, in float32


# ---- checks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ROUTINES)
def test_every_routine_is_right_and_can_be_timed(problems, key):
    routine = ROUTINES[key]
    problem = problems[routine.recipe]
    schedule = routine.schedule if routine.schedule in backends.SCHEDULES else None
    outcome, case = routine.enter(problem, backends.get("scalar", 2, schedule))
    assert problem.error(routine.enter, outcome) < TOLERANCE / 10
    case.run(case.step)


@pytest.mark.parametrize("value", [1.01, np.nan, [1.0, 2.0]])
def test_a_backend_with_a_wrong_result_is_not_timed(problems, monkeypatch, value):
    def enter(problem, backend):
        right = backend.name == "reference"
        return [(np.array(1.0 if right else value), 0)], timing.Case(None)

    monkeypatch.setitem(ROUTINES, "inference", replace(ROUTINES["inference"], enter=enter))
    (row,) = measured(problems["paper"], "inference")
    assert row.timing is None and row.wrong and "wrong" in row.reason


class Library:
    """The reference backend as a peer, which may average the loss or have no biases."""

    def __init__(self, divisor=1, biases=True):
        self.divisor, self.biases, self.reference = divisor, biases, backends.get("reference")
        self.put, self.store = self.reference.put, self.reference.store

    def load(self, network):
        return network.copy()

    def train(self, network, images, labels, order, rate):
        before = network.copy()
        self.reference.train(network, images, labels, order, rate / self.divisor)
        if not self.biases:
            for new, old in zip(network.biases, before.biases):
                new[...] = old


def test_a_peer_with_a_wrong_result_is_not_timed_and_one_that_fails_is_a_reason(problems):
    def fail(threads):
        raise RuntimeError("no such\noperator")

    def peer(make):
        return Peer("ours", "step", "numpy", make, lambda threads: {1})

    libraries = Library(), Library(divisor=10), Library(biases=False)
    peers = [peer(lambda threads, each=each: each) for each in libraries]
    peers += [peer(fail), replace(peer(fail), module="no_such_module")]
    ours, right, *wrong, failed = measured(problems["paper"], "step", *peers)
    assert ours.timing and right.timing and not ours.wrong and not right.wrong
    for row in wrong:
        assert row.timing is None and row.wrong and "wrong" in row.reason
    assert len(wrong) == 2 and failed.reason == "failed: no such operator"


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_every_peer_that_is_there_does_the_same(problems, peer):
    if reason := peer.missing():
        pytest.skip(reason)
    routine = ROUTINES[peer.routine]
    problem = problems[routine.recipe]
    outcome, case = routine.enter(problem, peer.backend(2))
    assert problem.error(routine.enter, outcome) <= TOLERANCE
    case.run(case.step)


# ---- the command -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("--arch net9", "architecture 'net9'"),
        ("--routine forward,sort", "'sort', expected forward"),
        ("--threads 0", "0, expected 1 to"),
        ("--peers JAX,fast", "'fast', expected a part of JAX scan; PyTorch by hand"),
        ("--json /nowhere/at/all.json", "cannot write /nowhere/at/all.json: No such file"),
        ("--epochs 2", "--epochs: expected only --arch"),
        ("--to-error abc", "'abc', expected a number"),
        ("--to-error 1 --arch 8;9", "--arch 8, 9: expected only one"),
        ("--to-error 1 --peers Keras", "'keras', expected a part of PyTorch AdamW 64"),
        ("--to-error 1 --routine step", "--routine together with --to-error"),
        ("--medians none.json", "cannot read none.json"),
    ],
)
def test_bad_input_is_one_line_and_status_2(capsys, arguments, message):
    assert command.main(arguments.split()) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert err.startswith("error: ") and message in err


def test_from_end_to_end(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(machine, "MOST", 1 << 22)
    monkeypatch.setattr(command, "QUICK", TINY)
    path = tmp_path / "speed.json"
    arguments = "--arch 100 --routine forward,step-sparse,deformation --peers scipy --quick"
    arguments += f" --dataset digits --json {path}"
    assert command.main(arguments.split()) == 0
    out, err = capsys.readouterr()
    assert "| forward " in out and "The paper beside us" in out and "100: forward" in err
    (report,) = read_runs([path])
    assert report.data == dataset.EMBEDDED
    assert (report.rows[0].name, report.rows[0].threads) == measure.BASE
    assert all(row.error < TOLERANCE and row.timing for row in report.rows)
    assert all(row.floor for row in report.rows if row.routine == "forward")
    names = {row.name for row in report.rows}
    assert names.isdisjoint(report.missing)
    assert names | {*report.missing} >= {"scalar", "sse2", "avx2", "avx512", "cuda", "SciPy"}
