"""tools/reproduce.py: stopped anywhere it goes on; its table and evidence are of its runs."""

import json
import os
import re
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from mlpcore.commands import runs
from mlpcore.commands.train import make_config, parse
from mlpcore.errors import InputError
from mlpcore.network.architecture import PRESETS
from mlpcore.report.console import Console
from mlpcore.store.run_folder import LAST
from mlpcore.store.weights import weights_sha256
from small_runs import assert_same_result, isolate, load_run, write_idx
from table1 import command
from table1.evidence import arguments, gather, keep, read_all
from table1.tables import overview, put_tables, table

ROOT = Path(__file__).parents[2]

#: Hidden layers instead of those of the paper's networks.
SMALL = {"net1": (8,), "net2": (9, 6)}

NAMES = ["net1-seed0", "net2-seed0"]


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """Runs that nothing has interrupted, in a folder; beside it are their data."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "draw", lambda *args: [])  # takes longer than these trainings
        for name, widths in SMALL.items():
            patch.setitem(PRESETS, name, widths)
        assert main(write_idx(folder / "letters"), "--out", folder / "out") == 0
    return folder / "out"


@pytest.fixture
def data(tmp_path, monkeypatch, whole):
    """The folder of the data; the working folder is empty."""
    isolate(monkeypatch, tmp_path / "work")
    monkeypatch.setattr(runs, "draw", lambda *args: [])
    for name, widths in SMALL.items():
        monkeypatch.setitem(PRESETS, name, widths)
    return whole.parent / "letters"


def main(data, *more):
    options = ["--nets", "1,2", "--epochs", "3", "--threads", "1", "--data", data, *more]
    return command.main(list(map(str, options)))


def stop_before(patch, epoch, number=signal.SIGTERM):
    """Sends this process a signal as soon as so many epochs of a run are done."""
    start = Console.on_epoch_start

    def send(self, trainer):
        start(self, trainer)
        if trainer.state.epoch == epoch:
            os.kill(os.getpid(), number)

    patch.setattr(Console, "on_epoch_start", send)


def contents(folder):
    return {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


# ---- training ------------------------------------------------------------------------------


def test_all_runs_are_trained_once(data, whole, capsys):
    """A run that was killed before its report gets one."""
    assert main(data) == 0
    for name in NAMES:
        assert_same_result(load_run(f"runs/table1/{name}"), load_run(whole / name))
    assert "| net2-seed0" in Path("runs/table1/report.md").read_text()
    before = contents("runs/table1/net1-seed0")
    capsys.readouterr()
    assert main(data.with_name("gone")) == 0  # Nothing is left to train, so nothing needs them.
    assert re.search(r"^net1-seed0, on letters +3 ", capsys.readouterr().out, re.MULTILINE)
    assert contents("runs/table1/net1-seed0") == before
    Path("runs/table1/net1-seed0/report.md").unlink()
    assert main(data) == 0
    assert contents("runs/table1/net1-seed0").keys() == before.keys()


def test_a_damaged_run_is_one_line_and_the_others_go_on(data, whole, capsys):
    shutil.copytree(whole / "net1-seed0", "out/net1-seed0")
    Path("out/net1-seed0/report.md").unlink()
    path = Path("out/net1-seed0", LAST)
    path.write_bytes(path.read_bytes()[:-5])
    before = contents("out/net1-seed0")
    assert main(data, "--out", "out") == 2
    error, note = capsys.readouterr().err.splitlines()
    assert error.startswith(f"error: {path}") and note.startswith("note: net1-seed0 is left out: ")
    assert contents("out/net1-seed0") == before
    assert load_run("out/net2-seed0").epoch == 3
    assert "net1" not in Path("out/report.md").read_text()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--nets 6", "'6', expected some of net1"),
        ("--report --out new", "new: expected a folder with runs of at least one epoch"),
        ("--page page.md", "benchmarks/results/table1 holds no evidence"),
        ("--epochs 4 --out old", "old/net1-seed0 was started with --arch net1 --recipe paper"),
    ],
)
def test_refusals(data, whole, capsys, options, words):
    shutil.copytree(whole / "net1-seed0", "old/net1-seed0")
    with pytest.MonkeyPatch.context() as patch:
        stop_before(patch, 0)
        assert main(data, "--out", "new") == 128 + signal.SIGTERM
    before = contents(".")
    capsys.readouterr()
    assert main(data, *options.split(" ")) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: ") and words in error
    assert contents(".") == before


# ---- evidence ------------------------------------------------------------------------------


def test_evidence_holds_what_has_come_of_a_run_without_paths(data, whole):
    assert command.main(["--evidence", "kept", "--out", str(whole)]) == 0
    assert sorted(os.listdir("kept")) == ["README.md", *(f"{name}.json" for name in NAMES)]
    first, second = read_all(Path("kept"))
    state = load_run(whole / "net1-seed0")
    assert (first.best, first.last) == (state.best_metrics, state.history[-1])
    assert [each.sha256 for each in first.weights] == [
        weights_sha256(network) for network in (state.best, state.network)
    ]
    assert first.finished and first.weights[0].machine
    assert second.training.hidden_layers == SMALL["net2"]
    assert first.weights[1].sha256 in Path("kept/README.md").read_text()
    for content in contents("kept").values():
        assert not re.search(rb"(^|[\s\"'(\[])/\w", content)


def test_evidence_makes_way_for_more_epochs_of_a_run_and_not_for_other_weights(data, whole, capsys):
    with pytest.MonkeyPatch.context() as patch:
        stop_before(patch, 2)
        main(data, "--out", "out")
    keep(Path("kept"), gather(Path("out")))
    (kept,) = read_all(Path("kept"))
    assert (kept.finished, kept.last.epoch, len(kept.weights)) == (False, 2, 1)
    assert main(data, "--out", "out") == 0
    keep(Path("kept"), gather(Path("out")))
    assert all(run.finished for run in read_all(Path("kept")))
    path, before = Path("kept/net1-seed0.json"), contents("kept")
    assert command.main(["--evidence", "kept", "--out", str(whole)]) == 0
    assert f"net1-seed0: the same weights as in {path}" in capsys.readouterr().out
    assert before.items() <= contents("kept").items()
    forged = json.loads(path.read_text())
    forged["weights"][0]["sha256"] = "0" * 64
    path.write_text(json.dumps(forged))
    before = contents("kept")
    assert command.main(["--evidence", "kept", "--out", str(whole)]) == 2
    assert "net1-seed0 has other weights or settings than kept/" in capsys.readouterr().err
    assert contents("kept") == before


def test_each_recipe_is_shown_by_its_longest_finished_runs(data, whole):
    run, _ = gather(whole)
    run = replace(run, data=msgspec.structs.replace(run.data, name="MNIST"))

    def again(name, seconds, errors, epochs=3, of=3):
        last = replace(run.last, epoch=epochs, test_errors=errors, training_errors=errors)
        training = replace(run.training, epochs=of)
        return replace(run, name=name, seconds=seconds, training=training, last=last)

    runs = [
        again("net1-seed0", 60, 9, epochs=5, of=9),  # not finished
        again("net1-seed1", 60, 6, epochs=2, of=2),  # shorter
        again("net1-seed2", 60, 12),
        again("net1-modern-seed1", 60, 3),
        again("net1-modern-seed2", 180, 9),
    ]
    cells = overview(runs)[1]
    assert cells[2:] == ("20.00 % (1 x 3, 1.0 min)", "-", "10.00 % (2 x 3, 2.0 min)", "2.61 %")
    assert {row[2:] for row in overview(runs)[2:]} == {("-",) * 4}
    other = replace(runs[4], backend="cuda: NVIDIA H200, compute capability 9.0, float32")
    machines = [row[-1] for row in table([runs[3], other])]
    name = run.weights[-1].machine.partition(",")[0]
    assert machines[2].startswith(name.split("(")[0]) and machines[2].endswith(", 1 thread")
    assert machines[3:] == ["NVIDIA H200", "-"]


def test_the_page_of_the_documentation_has_the_table_of_the_evidence(tmp_path, monkeypatch):
    """`make table-1` has been called since the evidence changed, and finds its two marks."""
    page, evidence = tmp_path / "page.md", read_all(ROOT / command.FOLDER)
    for run in evidence:  # whose options give its settings again
        again = make_config(
            parse(arguments(run.training)), run.training.backend, run.training.schedule
        )
        assert again == run.training
    content = (ROOT / command.PAGE).read_text()
    page.write_text(re.sub(r"^\| net.*\n", "", content, flags=re.MULTILINE))
    monkeypatch.chdir(ROOT)
    assert command.main(["--page", str(page)]) == 0
    assert page.read_text() == content
    page.write_text("# No marks\n")
    with pytest.raises(InputError, match=r"page\.md: expected the lines <!-- table1 begin"):
        put_tables(page, evidence)
