"""The benchmark tool: its arithmetic, its checks, its input. No test looks at a duration."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mlpcore import backends
from mlpcore.backends.simd import SimdBackend
from mlpcore.errors import InputError
from mlpcore.network import Network
from mlpcore.network.architecture import PRESETS
from mlpcore.report.tables import short_time
from mlpcore.store import provenance
from speed import claims as claims_module
from speed import floors, limits, machine, medians, output, results, timing
from speed.command import main, make_plan, parser
from speed.peers import PEERS, jax_trainer
from speed.peers.base import Peer, WrongResult, ready_trainer
from speed.peers.numpy_trainers import NumpyTrainer
from speed.problem import (
    CHECKED,
    ORACLE_BUDGET,
    PAPER,
    TOLERANCE,
    Problem,
    memory_needed,
)
from speed.routines import ROUTINES
from speed.run import Plan, columns, measure_row

ROOT = Path(__file__).resolve().parents[2]

#: As short as it gets.
TINY = timing.Settings(seconds=1e-6, repeats=1)

RUNNING = [name for name, reason in backends.available().items() if reason is None]

SIZES = (841, 1000, 500, 10)
FIRST, UPPER = 842 * 1000, 1001 * 500 + 501 * 10


@pytest.fixture(scope="module")
def problem():
    return Problem((8, 5), images=200)


def machine_limits(threads=1, private=0.0):
    """100 GB/s in 1 MB of L2, 50 in 10 MB of L3, 10 beyond; copies at half of that."""
    levels = (
        limits.Level("L2", 1e6, 100e9, 50e9),
        limits.Level("L3", 10e6, 50e9, 25e9),
        limits.Level("DRAM", math.inf, 10e9, 5e9),
    )
    return limits.Limits(threads, levels, 1e11, private)


def line(name, seconds, threads=1, **more):
    return results.Line(name, threads, timing.Timing(seconds, seconds, seconds, 1, 1), **more)


# ---- images --------------------------------------------------------------------------------


def test_images_are_strokes_on_a_background(problem):
    """Nearly as many pixels as in MNIST's deformed digits: the background saves no more time."""
    assert problem.images.shape == (200, 29, 29) and problem.images.dtype == np.float32
    assert problem.images.min() == -1 and problem.images.max() == 1
    assert 0.28 < problem.foreground < 0.34
    assert np.all(problem.images[:, 0, 0] == -1)
    assert len(np.unique(problem.images, axis=0)) == 200


# ---- times ---------------------------------------------------------------------------------


def test_a_timing_is_the_median_per_unit():
    measured = timing.Timing.of([3.0, 1.0, 2.0], units=10)
    assert (measured.seconds, measured.low, measured.high) == (0.2, 0.1, 0.3)
    assert measured.times(60_000).seconds == pytest.approx(12_000)


def test_cases_are_run_in_turn_and_in_multiples_of_their_step():
    calls = []
    cases = [timing.Case(lambda n, i=i: calls.append((i, n)), step=8, most=64) for i in range(2)]
    measured = timing.measure(cases, timing.Settings(seconds=1.0, repeats=3))
    assert all(n % 8 == 0 and n <= 64 for _, n in calls)
    assert [t.units for t in measured] == [64, 64]
    timed = [i for i, n in calls[-12:] if n == 64]
    assert timed == [0, 1, 1, 0, 0, 1]


def test_a_case_may_bring_its_own_clock():
    ran = []
    case = timing.Case(ran.append, step=10, most=10, clock=lambda call: (call(), 5.0)[1])
    (measured,) = timing.measure([case], timing.Settings(seconds=1.0, repeats=3))
    assert measured.seconds == 0.5
    assert set(ran) == {10}


# ---- floors and ratios ---------------------------------------------------------------------


def test_weights_come_from_the_nearest_level_with_room():
    seconds = floors.memory_seconds(floors.Traffic(4e6, 4e6), machine_limits())
    assert seconds == pytest.approx(1e6 / 100e9 + 3e6 / 50e9)
    seconds = floors.memory_seconds(floors.Traffic(40e6, 20e6, "copy"), machine_limits())
    assert seconds == pytest.approx(2 * (1e6 / 50e9 + 9e6 / 25e9 + 10e6 / 5e9))
    assert floors.memory_seconds(floors.Traffic(1e5, 1e5), machine_limits(private=2e5)) == 0


def test_the_work_of_a_step():
    """The layers above the first are read twice; nothing else has to be moved per sample."""
    work = floors.step(SIZES)
    assert work.moved == 8 * UPPER
    assert work.multiply_adds == 2 * (FIRST + UPPER) + UPPER
    assert work.updates == FIRST + UPPER == 1_347_510
    immediate = floors.step(SIZES, immediate=True)
    assert immediate.moved == 4 * UPPER + 8 * (FIRST + UPPER)
    sparse = floors.step(SIZES, foreground=0.25)
    assert sparse.multiply_adds == pytest.approx(FIRST / 2 + 3 * UPPER)
    sparse = floors.step(SIZES, True, 0.25)
    assert sparse.moved == immediate.moved
    assert sparse.multiply_adds == pytest.approx(FIRST * 1.25 + 3 * UPPER)
    assert floors.validation(SIZES, 0.25).multiply_adds == pytest.approx(FIRST / 4 + UPPER)
    assert floors.backward(SIZES).multiply_adds == UPPER
    assert floors.update(SIZES).moved == 8 * (FIRST + UPPER)


def test_a_floor_is_the_longer_of_bytes_and_multiply_adds():
    slow, fast = floors.Work(multiply_adds=1e9), floors.Work((floors.Traffic(1e6, 1e6),), 1e3)
    assert floors.floor_seconds(slow, machine_limits()) == pytest.approx(1e-2)
    assert floors.floor_seconds(fast, machine_limits()) == pytest.approx(1e-5)
    assert floors.floor_seconds((slow + fast).scale(3), machine_limits()) == pytest.approx(
        3 * (1e9 + 1e3) / 1e11
    )
    assert floors.bandwidth_limit(slow, machine_limits()) is None


def test_ratios_rates_and_fractions():
    work = floors.Work((floors.Traffic(2e6, 1e6),), 1e6, updates=5e5)
    lines = [line("scalar", 4e-3), line("avx2", 1e-4, threads=2), line("NumPy", 8e-3, peer=True)]
    given = {("cpu", 1): machine_limits(1), ("cpu", 2): machine_limits(2)}
    base, fast, peer = results.derive_all(lines, work, given)
    assert (base.ratio, fast.ratio, peer.ratio) == pytest.approx((1.0, 40.0, 0.5))
    assert fast.updates == pytest.approx(5e9)
    assert fast.bandwidth == pytest.approx(20e9)
    assert fast.of_limit == pytest.approx(0.2)
    assert fast.floor == pytest.approx(2e-5)
    assert fast.reached == pytest.approx(0.2)


def test_a_backend_may_have_less_to_move_than_others():
    """Packed weights; who reads float32 keeps the routine's own floor."""
    work = floors.Work((floors.Traffic(3e6, 3e6),), updates=1e6)
    packed = replace(line("avx2", 1e-4), work=floors.Work((floors.Traffic(2e6, 2e6),), updates=1e6))
    own, other = results.derive_all(
        [packed, line("sse2", 1e-4)], work, {("cpu", 1): machine_limits()}
    )
    assert (own.bandwidth, other.bandwidth) == pytest.approx((20e9, 30e9))
    assert own.floor < other.floor
    assert own.updates == other.updates


@pytest.mark.parametrize("name", [n for n in RUNNING if n in backends.INSTRUCTION_SETS])
def test_the_floor_of_a_step_is_of_what_its_backend_reads(name):
    problem, backend = Problem((1000, 500), images=64), SimdBackend(name, 1, packed_from=0)
    step, epoch = ROUTINES["step"].work, ROUTINES["epoch"].work
    moved = step(problem, None).moved
    assert moved == epoch(problem, None).moved == 8 * UPPER
    assert step(problem, SimdBackend(name, 1, "deferred")).moved == moved
    assert step(problem, backend).moved == epoch(problem, backend).moved
    share = step(problem, backend).moved / moved
    assert 2 / 3 < share < 0.7 if backend.packs else share == 1


def test_peers_on_the_device_have_its_floor():
    """However many threads of the CPU others use."""
    on_gpu = [peer for peer in PEERS if "GPU" in peer.name or "CUDA" in peer.name]
    assert [peer.on_device for peer in PEERS] == [peer in on_gpu for peer in PEERS]
    work = floors.Work((floors.Traffic(2e6, 1e6),), 1e6)
    given = {("cpu", 1): machine_limits(1), ("cpu", 8): machine_limits(8)}
    given["cuda", 1] = limits.Limits(1, (limits.Level("device", math.inf, 4e12, 4e12),), 1e15)
    for peer in on_gpu:
        assert peer.thread_counts(8) == [1]
        for threads in (1, 8):
            each = line(peer.name, 1e-3, threads, peer=True)
            (result,) = results.derive_all([each], work, given)
            assert result.floor == pytest.approx(2e6 / 4e12)


def test_without_a_time_or_a_base_there_are_no_figures():
    work = floors.Work(multiply_adds=1e6)
    absent, present = results.derive_all(
        [results.Line("scalar", 1, reason="wrong"), line("avx2", 1e-3)], work, {}
    )
    assert absent == results.Result(results.Line("scalar", 1, reason="wrong"))
    assert present.ratio is present.floor is present.updates is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (37.24e-6, "37.2 µs"),
        (0.9994e-3, "999 µs"),
        (0.9996e-3, "1.00 ms"),
        (0.9996, "1.00 s"),
        (9.996, "10.0 s"),
        (1234.5, "1,234 s"),
        (2.5e-12, "0.0025 ns"),
    ],
)
def test_measured_times_have_three_digits(value, text):
    assert short_time(value) == text


def test_the_paper_beside_us():
    work = floors.Work((floors.Traffic(2e6, 1e6),), 1e6, updates=1e6)

    def row(key, *times):
        lines = [line(name, t) for name, t in zip(("scalar", "sse2", "avx512"), times)]
        return results.Row(key, key, "sample", results.derive_all(lines, work, {}))

    rows = [
        row("forward", 8e-3, 4e-3, 1e-4),
        row("step", 8e-3, 4e-3, 1e-4),
        row("deformation", 31e-4, 1e-4, 1e-5),
        row("epoch", 100.0, 50.0, 6.0),
    ]
    claims = {c.what: c for c in claims_module.compare(rows)}
    assert claims["Forward, over a standard processor"].ratio == pytest.approx(80 / 40)
    assert claims["Backward, over a standard processor"].ours == "not measured"
    assert claims["SSE in single precision, forward, one thread"].ratio == pytest.approx(2 / 4)
    assert claims["Weight updates in training"].ratio == pytest.approx(1e10 / 5e9)
    standard = claims["Deformation for 60,000 images, standard processor"]
    assert standard.ratio == pytest.approx(93 / 186) and standard.ours == "186 s (scalar, 1 thread)"
    fastest = claims["Deformation for 60,000 images, fastest"]
    assert fastest.ours == "600 ms (avx512, 1 thread)"
    assert claims["Deformation's share of an epoch"].ours.startswith("10.0%")


# ---- the machine ---------------------------------------------------------------------------


def test_caches_as_linux_describes_them(tmp_path):
    for i, (level, kind, size) in enumerate(
        [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2048K")]
    ):
        folder = tmp_path / f"index{i}"
        folder.mkdir()
        for name, value in (("level", level), ("type", kind), ("size", size)):
            (folder / name).write_text(value + "\n")
    assert machine.read_caches(tmp_path) == machine.Caches(48 << 10, 2 << 20, 2 << 20, True)
    assert not machine.read_caches(tmp_path / "absent").known


def test_buffers_lie_within_their_levels():
    caches = machine.Caches(32 << 10, 1 << 20, 32 << 20, True)
    sizes = limits.level_sizes(caches, 2, 16 << 30)
    assert sizes["L2"] <= 2 << 20 < sizes["L3"] < 32 << 20 < sizes["DRAM"]
    assert "L3" not in limits.level_sizes(machine.Caches(l2=1 << 20, l3=1 << 20), 2, 1 << 30)
    assert limits.level_sizes(caches, 2, 64 << 20)["DRAM"] == 8 << 20


def test_more_threads_have_no_lower_limits():
    slow = machine_limits(2)
    slow = limits.Limits(2, (limits.Level("L2", 2e6, 1.0, 60e9),), 1.0)
    better = limits.at_least(slow, machine_limits(1))
    assert better.levels == (limits.Level("L2", 2e6, 100e9, 60e9),)
    assert better.multiply_adds == 1e11


# ---- checks --------------------------------------------------------------------------------


def test_the_oracle_of_variants_is_the_reference_backend(problem):
    network = Network(problem.layer_sizes)
    network.assign(problem.network)
    order = problem.order[: problem.checked]
    reference = backends.get("reference")
    reference.train(network, problem.flat_images, problem.labels, order, problem.rate)
    result = list(zip(network.weights, network.biases))
    # The reference rounds its result to float32.
    assert problem.training_error(result, PAPER) < TOLERANCE / 10


@pytest.mark.parametrize("key", ROUTINES)
def test_every_routine_is_right_and_can_be_timed(problem, key):
    routine = ROUTINES[key]
    backend = backends.get("scalar", 2, routine.schedule)
    assert routine.check(problem, backend) < TOLERANCE
    case = routine.prepare(problem, backend)
    case.run(case.step)
    assert floors.floor_seconds(routine.work(problem, backend), machine_limits()) > 0


def test_the_oracle_keeps_to_its_budget():
    """Of net1 all samples, of net4 as many as take it about as long."""
    small, large = Problem((1000, 500), images=64), Problem(PRESETS["net4"], images=64)
    assert small.checked == CHECKED
    n = large.network.n_parameters
    assert 2 < large.checked < CHECKED
    assert 0.5 * ORACLE_BUDGET < 3 * n * large.checked <= ORACLE_BUDGET
    assert 3 * small.network.n_parameters * CHECKED <= ORACLE_BUDGET


def test_jax_is_called_for_as_many_samples_whatever_is_checked(problem, monkeypatch):
    """A call costs most in proportion where few samples are checked, on large networks."""
    pytest.importorskip("jax")
    monkeypatch.setattr(problem, "checked", 2)
    trainer = jax_trainer.JaxTrainer(problem, 1)
    sizes, scan = [], trainer.scan

    def count(layers, order, data):
        sizes.append(len(order))
        return scan(layers, order, data)

    trainer.scan = count
    trainer.train(problem.order[: 2 * CHECKED])
    assert sizes == [CHECKED, CHECKED]


def test_jax_computes_in_float32(problem):
    """On a GPU, products of float32 would be of TensorFloat-32 else."""
    pytest.importorskip("jax")
    trainer = jax_trainer.JaxTrainer(problem, 1)
    traced = []
    step = trainer._step

    def record(jnp, *arguments):
        traced.append(trainer.jax.config.jax_default_matmul_precision)
        return step(jnp, *arguments)

    trainer._step = record
    trainer.train(problem.order[: problem.checked])
    assert traced and set(traced) == {"float32"}
    with trainer.jax.default_matmul_precision(jax_trainer.PRECISION):
        arguments = trainer.layers, problem.order[: problem.checked], trainer.data
        text = trainer.scan.lower(*arguments).as_text()
    products = [line for line in text.splitlines() if "stablehlo.dot_general" in line]
    assert products and all("precision = [HIGHEST, HIGHEST]" in line for line in products)


@pytest.mark.parametrize("peer", [p for p in PEERS if not p.missing()], ids=lambda peer: peer.name)
def test_every_peer_that_is_there_does_the_same(problem, peer):
    ready = peer.ready(problem, 2)
    ready.case.run(ready.case.step)
    assert (
        ready.error is None
        if peer.routine == "deformation" and peer.other
        else (ready.error <= TOLERANCE)
    )


class MeanTrainer(NumpyTrainer):
    """The loss averaged over the outputs."""

    def set_up(self, problem):
        super().set_up(problem)
        self.rate = problem.rate / problem.layer_sizes[-1]


class BatchTrainer(NumpyTrainer):
    """Batches of two: the second sample sees the weights before the first's update."""

    def train(self, order):
        for pair in order.reshape(-1, 2):
            before = [w.copy() for w in self.weights], [b.copy() for b in self.biases]
            changes = []
            for i in pair:
                self.weights, self.biases = ([a.copy() for a in part] for part in before)
                self.step(self.images[i], self.targets[self.labels[i]])
                changes.append((self.weights, self.biases))
            (w0, b0), (w1, b1) = changes
            self.weights = [x + y - w for x, y, w in zip(w0, w1, before[0])]
            self.biases = [x + y - b for x, y, b in zip(b0, b1, before[1])]


class BiaslessTrainer(NumpyTrainer):
    """Biases stay as they were."""

    def step(self, x, target):
        before = [b.copy() for b in self.biases]
        super().step(x, target)
        self.biases = before


@pytest.mark.parametrize("wrong", [MeanTrainer, BatchTrainer, BiaslessTrainer])
def test_a_peer_with_a_wrong_result_is_not_timed(problem, wrong):
    ready = ready_trainer(wrong)
    with pytest.raises(WrongResult, match="weights are off"):
        ready(problem, 1)
    peer = Peer("wrong", "step", lambda: None, ready)
    plan = Plan(((8, 5),), (ROUTINES["step"],), ("scalar",), (1,), TINY, (peer,))
    row = measure_row(ROUTINES["step"], problem, plan, {}, lambda title, steps: None)
    ours, other = (result.line for result in row.results)
    assert ours.timing and not ours.failed
    assert other.timing is None and other.failed and "wrong" in other.reason


def test_a_peer_that_fails_is_a_reason(problem):
    def ready(problem, threads):
        raise RuntimeError("no such\noperator")

    peer = Peer("broken", "step", lambda: None, ready)
    plan = Plan(((8, 5),), (ROUTINES["step"],), (), (1,), TINY, (peer,))
    row = measure_row(ROUTINES["step"], problem, plan, {}, lambda title, steps: None)
    assert row.results[-1].line.reason == "failed: no such operator"


def test_a_backend_with_a_wrong_result_is_not_timed(problem):
    wrong = replace(ROUTINES["forward"], check=lambda problem, backend: 0.5)
    plan = Plan(((8, 5),), (wrong,), ("scalar",), (1,), TINY)
    row = measure_row(wrong, problem, plan, {}, lambda title, steps: None)
    assert row.results[0].line.timing is None and row.results[0].line.failed


# ---- the command ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--arch", "net9"], "architecture 'net9'"),
        (["--arch", "8;0"], "a layer has 1 to"),
        (["--arch", "1000000,1000000"], "needs about"),
        (["--backend", "mmx"], "backend 'mmx': expected scalar"),
        (["--routine", "forward,sort"], "routine 'sort': expected forward"),
        (["--threads", "0"], "threads 0"),
        (["--threads", "two"], "expected whole numbers"),
        (["--threads", "1,,2"], "expected whole numbers"),
        (["--peers", "JAX,fast"], "peers 'fast': expected a part of JAX scan, PyTorch by hand"),
        (["--peers", "JAX,,NumPy"], "peers '': expected a part of JAX scan"),
        (["--peers="], "peers '': expected a part of JAX scan"),
        (["--json", "/nowhere/at/all.json"], "cannot write /nowhere/at/all.json: No such file"),
        (["--json", "."], "cannot write .: expected a file or a new name"),
        (["--plot", "chart.xyz"], "expected a name that ends in"),
        (["--fast"], "unrecognized arguments"),
    ],
)
def test_bad_input_is_one_line_and_status_2(capsys, arguments, message):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert err.startswith("error: ") and message in err


def test_a_backend_that_cannot_run_is_named():
    if not backends.available().get("cuda", "absent"):
        pytest.skip("there is a CUDA device")
    with pytest.raises(InputError, match="backend 'cuda' cannot run: "):
        make_plan(parser().parse_args(["--backend", "cuda"]))


def test_several_architectures_and_routines():
    arguments = ["--arch", "net1;8,4", "--arch", "8,4;3", "--routine", "update,forward"]
    plan = make_plan(parser().parse_args(arguments))
    assert plan.architectures == ((1000, 500), (8, 4), (3,))
    assert [routine.key for routine in plan.routines] == ["forward", "update"]


def test_numbers_of_threads(monkeypatch):
    monkeypatch.setattr("speed.command.available_cores", lambda: 6)
    for text, expected in (([], (1, 6)), (["4,2,4"], (1, 2, 4)), (["1"], (1,))):
        arguments = ["--backend", "sse2"] + [word for n in text for word in ("--threads", n)]
        plan = make_plan(parser().parse_args(arguments))
        assert plan.threads == expected
        pairs = [("scalar", 1), *(("sse2", n) for n in expected)]
        assert columns(plan) == (pairs if backends.available()["sse2"] is None else pairs[:1])


def test_memory_grows_with_the_network_and_the_peers():
    net1, net4 = (1000, 500), (2500, 2000, 1500, 1000, 500)
    assert memory_needed(net1) < memory_needed(net4) < memory_needed(net4, peers=True)


def test_from_end_to_end(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(limits, "MOST", 1 << 22)
    path = tmp_path / "speed.json"
    arguments = ["--arch", "8", "--quick", "--routine", "forward", "--markdown"]
    assert main([*arguments, "--json", str(path)], TINY) == 0
    out, err = capsys.readouterr()
    assert "| Forward, per sample |" in out and "The paper beside us" in out
    assert "8: forward" in err

    document = json.loads(path.read_text())
    assert list(tmp_path.iterdir()) == [path]
    assert document["revision"] == provenance.revision()
    (architecture,) = document["architectures"]
    (routine,) = architecture["routines"]
    base = routine["results"][0]
    assert (base["name"], base["threads"], base["ratio"]) == ("scalar", 1, 1.0)
    for result in routine["results"]:
        seconds = result["timing"]["seconds"]
        assert result["ratio"] == pytest.approx(base["timing"]["seconds"] / seconds)
        assert result["reached"] == pytest.approx(result["floor"] / seconds)
        assert result["error"] < TOLERANCE
    for name in ("scalar", "sse2", "avx2", "avx512", "cuda"):
        measured = any(r["name"] == name and r["timing"] for r in routine["results"])
        assert measured != (name in document["missing"])


def test_a_chart(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(limits, "MOST", 1 << 22)
    path = tmp_path / "speed.svg"
    arguments = ["--arch", "4;8", "--routine", "update", "--backend", "scalar", "--threads", "1"]
    assert main([*arguments, "--plot", str(path)], TINY) == 0
    assert "<svg" in path.read_text()
    assert "Weight update, per sample" in capsys.readouterr().out


def test_results_outlast_an_output_that_closes(monkeypatch, tmp_path):
    def closed(*arguments):
        raise OSError("closed")

    monkeypatch.setattr("speed.output.markdown", closed)
    monkeypatch.setattr(limits, "MOST", 1 << 22)
    path = tmp_path / "speed.json"
    arguments = ["--arch", "8", "--backend", "scalar", "--routine", "forward", "--threads", "1"]
    assert main([*arguments, "--markdown", "--json", str(path)], TINY) == 2
    assert json.loads(path.read_text())["architectures"]


def test_a_link_is_no_place_for_results(capsys, tmp_path):
    link, target = tmp_path / "link.json", tmp_path / "target.json"
    link.symlink_to(target)
    assert main(["--json", str(link)]) == 2
    assert "expected a file or a new name" in capsys.readouterr().err
    assert not target.exists()
    target.write_text("other results")
    assert main(["--json", str(link)]) == 2
    assert "a link: expected a file or a new name" in capsys.readouterr().err
    assert link.is_symlink() and target.read_text() == "other results"


def test_peers_by_a_part_of_their_names():
    options = parser().parse_args(["--arch", "8", "--peers", "numpy, scipy"])
    assert [peer.name for peer in make_plan(options).peers] == ["NumPy", "SciPy"]
    options = parser().parse_args(["--arch", "8", "--peers"])
    assert make_plan(options).peers == PEERS


def test_numbers_that_json_lacks_become_null():
    assert output._finite({"a": [math.inf, 1.0, (np.nan,)]}) == {"a": [None, 1.0, [None]]}


# ---- medians of several runs ---------------------------------------------------------------


def document(**changes):
    """What a run of two lines and a peer writes: seconds by (name, threads)."""
    times = {("scalar", 1): 8.0, ("avx2", 2): 2.0, ("JAX scan", 1): 6.0, ("JAX scan", 2): 5.0}
    times |= changes.pop("times", {})
    lines = [
        {
            "name": name,
            "threads": threads,
            "peer": name == "JAX scan",
            "timing": None if value is None else {"seconds": value},
            "reached": 1 / value if value and name != "JAX scan" else None,
        }
        for (name, threads), value in times.items()
    ]
    unit = changes.pop("unit", "sample")
    routine = {"key": "step", "title": "On-line step", "unit": unit, "results": lines}
    network = {"name": "net1", "routines": [routine]}
    result = {
        "date": "2026-11-23T11:07:32+00:00",
        "revision": "a" * 40,
        "machine": MACHINE,
        "settings": {"seconds": 0.06, "repeats": 7},
        "architectures": [network],
    }
    return result | changes


MACHINE = {"cpu": "A CPU", "cores": 2, "device": "none (no driver)", "versions": {"jax": "1"}}
MACHINE |= {"caches": {"l3": 1}, "load": 0.5, "memory": 1000}
ANOTHER = {("scalar", 1): 8.5}  # a run that is no copy


@pytest.fixture
def kept(tmp_path):
    """Writes documents into files, and gives their names."""

    def write(*documents):
        paths = [tmp_path / f"run-{i}.json" for i in range(len(documents))]
        for path, content in zip(paths, documents):
            path.write_text(json.dumps(content))
        return [str(path) for path in paths]

    return write


def medians_of(files, capsys):
    """Title, cells of the only row by column, notes."""
    assert main(["--medians", *files, "--markdown"]) == 0
    title, _, columns, _, row, *notes = capsys.readouterr().out.splitlines()
    cells = (line.strip("| ").split(" | ") for line in (columns, row))
    return title, dict(zip(*cells)), " ".join(notes)


def test_medians_of_runs(kept, capsys):
    """Ratios are of one run each: JAX's median is 5 s and ours 2, but 2.5 is no run's ratio."""
    slow = {("avx2", 2): 4.0, ("JAX scan", 1): 20.0, ("JAX scan", 2): 24.0}
    fast = {("avx2", 2): 1.0, ("JAX scan", 2): 4.0}
    busy = MACHINE | {"load": 2.0, "memory": 1001, "device": "none (busy)"}
    last = document(times=fast, date="2026-11-25T11:07:32+00:00", machine=busy)
    files = kept(document(times=slow), document(), last)
    title, cells, notes = medians_of(files, capsys)
    assert "On-line step, per sample: medians of 3 runs, 2026-11-23 to 2026-11-25" in title
    assert cells == {
        "By, threads": "net1",
        "scalar, 1": "8.00 s",
        "avx2, 2": "2.00 s",
        "JAX scan": "5.00 s 4.0x (2.5 to 5.0)",
        "of the floor": "50%",
    }
    assert f"A CPU, 2 cores, revision {'a' * 40}." in notes
    assert "the least and the greatest" in notes


def test_one_run_has_no_range(kept, capsys):
    title, cells, notes = medians_of(kept(document()), capsys)
    assert "one run, 2026-11-23**" in title and cells["JAX scan"] == "5.00 s 2.5x"
    assert "the least" not in notes


def test_medians_without_a_time(kept, capsys):
    """A line that has none in one of the runs has no median; the fastest is another then."""
    files = kept(document(), document(times={("avx2", 2): None, ("JAX scan", 2): None} | ANOTHER))
    _, cells, _ = medians_of(files, capsys)
    assert cells["avx2, 2"] == "-" and cells["of the floor"] == "12%"
    assert cells["JAX scan"] == "6.00 s 0.7x (0.7 to 0.8)"
    nothing = {("scalar", 1): None, ("avx2", 2): None}
    _, cells, _ = medians_of(kept(document(times=nothing)), capsys)
    assert cells["JAX scan"] == "5.00 s" and cells["of the floor"] == "-"


def test_medians_of_what_a_run_writes(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(limits, "MOST", 1 << 22)
    path = str(tmp_path / "speed.json")
    arguments = ["--arch", "8;4", "--backend", "scalar", "--routine", "forward,epoch"]
    assert main([*arguments, "--threads", "1", "--json", path], TINY) == 0
    capsys.readouterr()
    assert main(["--medians", path, "--routine", "forward"]) == 0
    out = capsys.readouterr().out
    assert "Forward, per sample: one run" in out and "Epoch" not in out
    assert main(["--medians", path, path]) == 2
    assert "speed.json is the same as" in capsys.readouterr().err
    assert main(["--medians", path]) == 0
    assert "Epoch of 60,000 images: one run" in capsys.readouterr().out


@pytest.mark.parametrize(
    "other, message",
    [
        ({"machine": MACHINE | {"cpu": "B"}}, "run-1.json: cpu B, expected that of"),
        ({"machine": MACHINE | {"device": "a GPU"}}, "device a GPU, expected that of"),
        ({"machine": MACHINE | {"caches": {"l3": 2}}}, "caches l3 2, expected that of"),
        ({"machine": MACHINE | {"versions": {"jax": "2"}}}, "versions jax 2, expected that of"),
        ({"settings": {"seconds": 0.025}}, "settings seconds 0.025, expected that of"),
        ({"revision": ""}, "revision not known, expected that of"),
        ({"times": {("sse2", 1): 1.0}}, "other networks, routines or lines than"),
        ({"unit": "image"}, "other networks, routines or lines than"),
        ({}, "is the same as"),
        *(
            (other, "expected what tools/speedup.py --json writes")
            for other in (
                {"architectures": []},
                {"architectures": None},
                {"architectures": document()["architectures"] * 2},
                {"machine": []},
                {"date": "soon"},
                {"times": {("JAX scan", 2): "0.1"}},
                {"times": {("avx2", 2): 0.0}},
                {"times": {("avx2", 2): -1.0}},
                {"times": {("avx2", 2): math.inf}},
                {"times": {("avx2", 2): 10**400}},
                {"times": {(None, 2): 1.0}},
                {"times": {("avx2", 1.5): 1.0}},
                {"times": {("avx2", math.inf): 1.0}},
            )
        ),
    ],
)
def test_runs_that_cannot_be_compared(kept, capsys, other, message):
    files = kept(document(), document(**other))
    assert main(["--medians", *files]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "run-1.json" in err and message in err


def test_bad_input_for_medians(kept, capsys, tmp_path):
    (file,) = kept(document())
    (tmp_path / "text").write_text("no JSON")
    for arguments, message in (
        ([file, "--arch", "net1"], "--arch together with --medians"),
        ([file, "--json", "a.json"], "--json together with --medians"),
        ([file, "--quick"], "--quick together with --medians"),
        ([file, "--routine", "forward"], "routine 'forward': the runs have step"),
        ([file, "--routine", "sort"], "routine 'sort': expected"),
        ([str(tmp_path / "text")], "text: expected what tools/speedup.py --json writes"),
        ([str(tmp_path / "none")], "cannot read"),
        ([str(tmp_path)], "is not a regular file"),
    ):
        assert main(["--medians", *arguments]) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.count("\n") == 1 and message in err


def test_the_readme_says_what_the_runs_give():
    """`tools/speedup.py --medians` of them; without the runs there is nothing to compare."""
    runs = sorted(ROOT.glob("benchmarks/results/2026-11-23-xeon-2-cores-five-runs/*.json"))
    if not runs:
        pytest.skip("no runs")
    text = output.markdown(medians.tables(medians.read_runs(runs), ["step"]))
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table) == 7 and "\n".join(table) in (ROOT / "README.md").read_text()
