"""`tools/speedup.py`: its checks and its input. No test looks at a duration."""

import json
import re
from types import SimpleNamespace
from unittest import mock

import pytest

from mlpcore import Network, backends, dataset
from speed import command, measure, timing, to_error
from speed.peers import PEERS
from speed.peers.base import Peer
from speed.problem import TOLERANCE, make_problem
from speed.routines import ROUTINES

#: The shortest measurement.
TINY = timing.Settings(seconds=1e-6, repeats=1)

DIGITS = dataset.load(name="digits")


@pytest.fixture(scope="module")
def problems():
    """By recipe."""
    return {recipe: make_problem(DIGITS, (8, 5), recipe, 200) for recipe in ("paper", "modern")}


@pytest.mark.parametrize("way", [*ROUTINES, *PEERS], ids=lambda way: getattr(way, "name", way))
def test_every_routine_of_ours_and_of_a_peer_is_right_and_can_be_timed(problems, way):
    ours, routine = way in ROUTINES, ROUTINES[getattr(way, "routine", way)]
    if not ours and (reason := way.missing()):
        pytest.skip(reason)
    schedule = routine.schedule if routine.schedule in backends.SCHEDULES else None
    backend = backends.get("scalar", 2, schedule) if ours else way.backend(2)
    problem = problems[routine.recipe]
    outcome, case = routine.enter(problem, backend)
    assert problem.error(routine.enter, outcome) <= TOLERANCE / (10 if ours else 1)
    case.run(case.step)


def library(divisor):
    """The reference backend as a peer, which may average the loss."""
    ours = backends.get("reference")

    def train(network, images, labels, order, rate):
        ours.train(network, images, labels, order, rate / divisor)

    return SimpleNamespace(put=ours.put, load=Network.copy, store=ours.store, train=train)


def test_a_peer_with_a_wrong_result_is_not_timed_and_one_that_fails_is_a_reason(problems):
    fail = mock.Mock(side_effect=RuntimeError("no such\noperator"))
    makers = (lambda threads: library(1)), (lambda threads: library(10)), fail
    peers = [Peer("ours", "step", "numpy", make, lambda n: {1}) for make in makers]
    plan = measure.Plan(DIGITS, (), ("step",), ("scalar",), (1,), TINY, peers)
    ours, right, wrong, failed = measure.measure_routine("8,5", "step", problems["paper"], plan)
    assert ours.timing and right.timing and not ours.wrong and not right.wrong
    assert wrong.timing is None and wrong.wrong and "wrong" in wrong.reason
    assert failed.reason == "failed: no such operator"


def test_bad_input_is_one_line_and_status_2(capsys):
    for arguments, message in (
        ("--arch net9", "architecture 'net9'"),
        ("--routine step,sort", "'sort', expected step"),
        ("--peers JAX,fast", "'fast', expected a part of JAX scan; PyTorch by hand"),
        ("--epochs 2", "--epochs without --to-error"),
        ("--to-error 1 --routine step", "--routine together with --to-error"),
    ):
        assert command.main(arguments.split()) == 2
        out, err = capsys.readouterr()
        assert out == "" and re.fullmatch(rf"error: .*{message}.*\n", err)


def test_from_end_to_end(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(command, "QUICK", TINY)
    path = tmp_path / "speed.json"
    arguments = "--arch 100 --routine step,step-sparse,deformation --quick --dataset digits"
    assert command.main([*arguments.split(), "--json", str(path)]) == 0
    out, err = capsys.readouterr()
    assert "| step " in out and "The paper beside us" in out and "100: step" in err
    report = json.loads(path.read_bytes())
    assert report["data"] == dataset.EMBEDDED
    assert (report["rows"][0]["name"], report["rows"][0]["threads"]) == measure.BASE
    assert all(row["error"] < TOLERANCE and row["timing"] for row in report["rows"])
    monkeypatch.setattr(to_error, "OURS", to_error.OURS[:1])
    arguments = "--to-error 60,89 --arch 8 --dataset digits --threads 1 --epochs 2,1"
    assert command.main([*arguments.split(), "--json", str(path)]) == 0
    out, err = capsys.readouterr()
    assert "to 89 %" in out and "epochs 1, ours modern" in err
    assert "s from Enter" in err
    assert [*json.loads(path.read_bytes())["learners"]] == ["ours modern"]
