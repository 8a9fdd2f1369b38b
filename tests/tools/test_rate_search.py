"""`tools/speedup.py --search`: the climb to a learning rate, and the file that keeps it."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlpcore.data import dataset
from mlpcore.errors import InputError
from speed import search
from speed.command import main
from speed.lesson import Contestant, Lesson, Trained
from speed.peers import LEARNERS, settings
from speed.peers.settings import Found, rate_of

PEER = Contestant("peer", "made up", lambda lesson, rate: None, 0.5)


def found(name="peer", arch="net1", **rates):
    rates = {int(key[1:]): rate for key, rate in rates.items()}
    return Found(name, arch, "by hand", rates, {n: [(rate, 1.0)] for n, rate in rates.items()})


@given(st.integers(-15, 2), st.integers(-15, 2))
def test_the_climb_ends_at_the_least_error(best, start):
    """Errors rise on both sides of the best rate."""
    tried = {}
    while (index := search.next_index(tried, start)) is not None:
        assert index not in tried and search.LOWEST <= search.grid(index) <= search.HIGHEST
        tried[index] = abs(index - best)
    assert tried[best] == 0 and len(tried) <= abs(best - start) + 3


@given(st.floats(1e-5, 1.0))
def test_the_nearest_rate_of_the_grid(rate):
    near = search.grid(search.nearest(rate))
    assert abs(math.log(near / rate)) <= math.log(2.5) / 2 + 1e-9
    assert search.nearest(near) == search.nearest(rate)


def test_a_search_finds_rates_and_keeps_to_its_time(monkeypatch):
    """The best rate falls with the epochs. A peer that takes hours is tried only once."""
    monkeypatch.setattr(Lesson, "error_of", lambda self, trained: trained.network)
    clock = [0.0]
    monkeypatch.setattr(search.time, "perf_counter", lambda: clock[0])

    def train(lesson, rate):
        assert lesson.data.held_out == len(data.train_labels) // search.HELD_OUT
        clock[0] += lesson.epochs
        return Trained(abs(math.log(rate / (0.2 if lesson.epochs == 1 else 0.05))), 1.0)

    def slow(lesson, rate):
        clock[0] += 3000
        return Trained(1.0, 1.0)

    data = dataset.load(name="digits")
    lesson = Lesson(data, (8,), epochs=1, seed=1, threads=1)
    some = replace(PEER, train=train), replace(PEER, name="slow", train=slow)
    first, second = search.search(60, lesson, (1, 3), some, lambda line: None)
    assert first.rates == {1: 0.2, 3: 0.05} and second.rates == {1: 0.5}
    assert first.tried[1] == sorted(first.tried[1]) and len(second.tried[1]) == 1
    assert first.how == second.how and "--search 60 --arch 8 --threads 1" in first.how


def test_a_search_without_time_finds_nothing():
    lesson = Lesson(dataset.load(name="digits"), (8,), epochs=1, seed=1, threads=1)
    assert search.search(1e-12, lesson, (1, 3), [PEER], print) == []


def test_the_rate_for_a_budget():
    some = [found(n1=0.2, n3=0.1, n10=0.05), found(arch="8", n3=0.4), found("another", n1=0.7)]
    rates = [rate_of(PEER, (1000, 500), n, some) for n in (1, 2, 3, 9, 10, 40)]
    assert rates == [0.2, 0.2, 0.1, 0.1, 0.05, 0.05]
    assert rate_of(PEER, (8,), 1, some) == 0.4
    assert rate_of(PEER, (9,), 1, some) == 0.2
    assert rate_of(replace(PEER, name="new"), (8,), 1, some) == PEER.start
    assert rate_of(replace(PEER, name="new", settings="another"), (8,), 1, some) == 0.7


def test_a_search_replaces_only_what_it_has_searched(tmp_path):
    path = tmp_path / "settings.json"
    assert settings.read(path) == []
    settings.write(path, [found(n1=0.2), found("another", n1=0.7)])
    settings.write(path, [found(n1=0.3), found(arch="8", n1=0.4)])
    assert settings.read(path) == [
        found(arch="8", n1=0.4), found("another", n1=0.7), found(n1=0.3)
    ]  # fmt: skip
    path.write_text("[{}]")
    with pytest.raises(InputError, match="expected what tools"):
        settings.read(path)


def test_committed_rates_are_those_of_peers():
    for each in settings.read(settings.SETTINGS):
        assert each.name in {peer.name for peer in LEARNERS if not peer.settings}
        for epochs, rate in each.rates.items():
            assert rate == min(each.tried[epochs], key=lambda pair: pair[1])[0]


def test_the_command_writes_what_it_has_found(capsys, tmp_path, monkeypatch):
    path = tmp_path / "settings.json"
    monkeypatch.setattr(settings, "SETTINGS", path)
    arguments = ["--search", "0.05", "--arch", "4", "--dataset", "digits", "--threads", "1"]
    assert main([*arguments, "--epochs", "1", "--peers", "scikit"]) == 0
    (only,) = settings.read(path)
    assert only.name == "scikit-learn" and only.architecture == "4" and 1 in only.rates
    assert "epochs 1: scikit-learn, 0.001: " in capsys.readouterr().err
