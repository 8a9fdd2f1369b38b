"""Files of any origin: a command reads them, or refuses them in one line, soon, in little memory.

Series of the campaigns of ``make torture``, with the same judge.
"""

import random

import pytest

from torture import forked, idx_files, judge, pictures, run_files

#: Parts of a series, for as many processes.
PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize(
    ("campaign", "n"),
    [
        pytest.param(run_files, 100, id="runs"),
        pytest.param(idx_files, 100, id="data"),
        pytest.param(pictures, 60, id="pictures"),
    ],
)
def test_a_command_works_or_refuses(campaign, n, part):
    result = judge.attempts(campaign.attempt, range(part * n // PARTS, (part + 1) * n // PARTS))
    assert (result.tried, result.what) == (n // PARTS, [])


@pytest.mark.parametrize("slow", pictures.SLOW, ids=lambda function: function.__name__)
def test_a_picture_that_keeps_its_decoder_busy(slow, tmp_path, monkeypatch):
    """It took half a minute and more. The clock is the processor's."""
    monkeypatch.setattr("mlpcore.data.pictures.MAX_SECONDS", 0.3)
    judge.warm()
    (tmp_path / "picture").write_bytes(slow(random.Random(0)))
    outcome = forked.call("predict", "picture", folder=tmp_path)
    assert outcome.status == 2
    assert b"keeps its decoder busy for more than 0.3 seconds" in outcome.err


def test_the_judge_condemns():
    sound = {"status": 0, "out": b"", "err": b"", "seconds": 1.0, "memory": 0}
    assert judge.fault(forked.Outcome(**sound)) == ""
    assert judge.fault(forked.Outcome(**sound | {"status": 2, "err": b"error: no\n"})) == ""
    for wrong in (
        {"status": 1},
        {"status": -11},
        {"status": 2},
        {"status": 2, "err": b"error: no\nerror: no\n"},
        {"err": b"error: no\n"},
        {"err": b"TIFFReadDirectory: no\n"},
        {"out": b"\x1b[31m"},
        {"out": b"x" * 301},
        {"seconds": 11.0},
        {"memory": 2**30},
    ):
        assert judge.fault(forked.Outcome(**sound | wrong))
