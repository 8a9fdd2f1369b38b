"""tools/reproduce.py: stopped anywhere it goes on; it refuses, and reports."""

import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import mlpcore
from mlpcore import backends
from mlpcore.commands import runs
from mlpcore.data import mnist
from mlpcore.files import lock
from mlpcore.store.run_folder import CONFIG, LAST, METRICS, Run
from mlpcore.training.trainer import Diverged, Trainer
from small_runs import assert_same_result, load_tool, write_idx
from table1 import report, work
from table1.command import main
from table1_runs import SMALL, arguments, assert_finished, contents, refusal, run_state

TOOLS = Path(__file__).parents[3] / "tools"


# ---- training ------------------------------------------------------------------------------


def test_from_nothing_to_the_table(data, capsys, whole):
    assert main(arguments(data)) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = [line.split() for line in out.splitlines()]
    assert ["net1-seed0", "not", "started", "0/3", "not", "known", "yet"] in lines
    assert ["net2-seed0", "finished", "3/3", "-"] in lines
    assert any(line[:1] == ["net2-seed0"] and line[-1] == "(estimate)" for line in lines)
    assert [line[0] for line in lines if "3/3" in line].count("3/3") == 2  # the epochs' lines
    assert_finished("runs/table1", whole)
    text = Path("runs/table1/report.md").read_text()
    assert "| net1-seed0" in text
    assert "| committee of all 2 finished runs |" in text


def test_another_recipe_has_its_own_runs_beside_the_papers(data, capsys):
    for recipe in ("saturating", "paper"):
        assert main([*arguments(data, "--recipe", recipe), "--nets", "2"]) == 0
    names = sorted(path.name for path in Path("runs/table1").glob("net*"))
    assert names == ["net2-saturating-seed0", "net2-seed0"]
    text = Path("runs/table1/report.md").read_text()
    assert (
        "Settings of net2-saturating-seed0: learning rate 0.001 to 1e-06 in 3 epochs, 2 t" in text
    )
    assert "targets of 1.5 and -1.5" in text


def test_finished_runs_are_left_alone(data, capsys):
    assert main(arguments(data)) == 0
    before = contents("runs/table1/net1-seed0") | contents("runs/table1/net2-seed0")
    capsys.readouterr()
    shutil.rmtree(data)  # nothing is left to train, so the data need not be there
    argv = arguments(data)
    argv.remove("--data")
    argv.remove(data)
    assert main(argv) == 0
    out = capsys.readouterr().out
    assert "epoch " not in out
    assert "note: net1-seed0, net2-seed0 without second guesses: cannot read the folder" in out
    assert contents("runs/table1/net1-seed0") | contents("runs/table1/net2-seed0") == before


class Killed(BaseException):
    """No handler of errors sees it."""


def test_killed_before_any_file_is_written_it_goes_on(data, monkeypatch, whole):
    replace, survived, n = os.replace, False, 0
    while not survived:
        left = n

        def kill(source, target):
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            replace(source, target)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", kill)
            try:
                main(arguments(data, "--out", f"out{n}"))
                survived = True
            except Killed:
                pass
        assert main(arguments(data, "--out", f"out{n}")) == 0
        assert_finished(f"out{n}", whole)
        n += 1
    # Of each run config, last, report and, for each of three epochs, metrics and last at least.
    assert n > 2 * 9 + 1


def environment():
    """For subprocesses: this package, no data set, and no way to download one."""
    root = str(Path(mlpcore.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": root, "XDG_CACHE_HOME": os.getcwd()}


def start(*argv):
    """The tool in a process of its own, with the small presets."""
    code = f"""
import os, sys
from mlpcore.network.architecture import PRESETS
from mlpcore.commands import runs
from table1 import collect, report
from table1.command import main
PRESETS.update({SMALL})
os.fsync = report.draw = runs.draw = lambda *args: []
sys.exit(main())
"""
    return subprocess.Popen(
        [sys.executable, "-c", code, *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        text=True,
    )


def test_sigkill_at_random_points(data):
    """Two runs of 40 epochs, killed twice somewhere, are as if they never were."""
    argv = ["--nets", "1,2", "--epochs", "40", "--threads", "1", "--data", data, "--out"]
    assert main([*argv, "expected"]) == 0
    rng = random.Random(1)
    for _ in range(2):
        process = start(*argv, "out")
        lines = rng.randrange(40)
        for line in process.stdout:
            lines -= bool(re.match(r" *\d+/40 ", line))
            if lines < 0:
                break
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
    process = start(*argv, "out")
    _, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert_finished("out", "expected")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_and_the_printed_command_goes_on(data, capsys, monkeypatch, number, whole):
    on_samples, sent = Trainer._on_samples, []

    def hook(self, begin, done):
        if self.config.hidden_layers == SMALL["net2"] and not sent:
            sent.append(number)
            os.kill(os.getpid(), number)
        return on_samples(self, begin, done)

    monkeypatch.setattr(Trainer, "_on_samples", hook)
    argv = arguments(data, "--out", "the runs")
    assert main(argv, script="tools/reproduce.py") == 128 + number
    *_, stopped, command = capsys.readouterr().out.splitlines()
    assert stopped.startswith("stopped: 0 of 3 epochs done")
    assert shlex.split(command)[1:] == ["tools/reproduce.py", *argv]
    assert main(shlex.split(command)[2:]) == 0
    assert_finished("the runs", whole)


@pytest.mark.parametrize("when", ["evaluation", "report"])
def test_a_signal_too_late_to_stop_a_run_stops_before_the_next(data, capsys, monkeypatch, when):
    evaluate, sent = Trainer._evaluate, []

    def send():
        if not sent:
            sent.append(signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGTERM)

    def late(self):
        errors = evaluate(self)
        if when == "evaluation" and self.state.epoch == 2:
            send()
        return errors

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_evaluate", late)
        if when == "report":
            patch.setattr(runs, "draw", lambda *args: send() or [])
        argv = arguments(data, "--out", "out")
        assert main(argv) == 128 + signal.SIGTERM
    *_, stopped, command = capsys.readouterr().out.splitlines()
    assert stopped == "stopped: 3 of 3 epochs done; saved. To go on:"
    assert Path("out/net1-seed0", runs.REPORT).exists()
    assert not Path("out/net2-seed0").exists()
    assert main(shlex.split(command)[2:]) == 0


def test_a_report_that_cannot_be_written_is_a_note_for_each_run(data, capsys, whole):
    for net in SMALL:
        Path(f"out/{net}-seed0", runs.REPORT, "in the way").mkdir(parents=True)
    assert main(arguments(data, "--out", "out")) == 0
    out, err = capsys.readouterr()
    assert err == ""
    for net in SMALL:
        assert f"note: no report: cannot write out/{net}-seed0/{runs.REPORT}: expected" in out
        assert_same_result(run_state(f"out/{net}-seed0"), run_state(whole / f"{net}-seed0"))


def test_a_run_started_by_hand_is_adopted(data, monkeypatch, whole):
    """As `tools/train.py` starts it with the paper's rates, whether it has finished or not."""
    tool = load_tool("train")
    common = ["--epochs", "3", "--lr-end", "1e-6", "--seed", "0", "--data", data]
    for net in "12":
        out = f"runs/table1/net{net}-seed0"
        with monkeypatch.context() as patch:
            if net == "2":  # stopped at once
                patch.setattr(Trainer, "_on_samples", lambda *args: os.kill(os.getpid(), 15))
            status = tool.main(["--arch", f"net{net}", *common, "--out", out])
        assert status == (0 if net == "1" else 128 + 15)
    finished = Path("runs/table1/net1-seed0", LAST).read_bytes()
    assert main(arguments(data)) == 0
    assert_finished("runs/table1", whole)
    assert Path("runs/table1/net1-seed0", LAST).read_bytes() == finished


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--epochs", "4"], "out/net1-seed0 was started with epochs 3, asked for 4"),
        (["--backend", "reference"], "with backend {}, asked for reference"),
    ],
)
def test_other_settings_are_refused_before_anything_is_trained(half_done, capsys, options, words):
    before = contents("out")
    text = refusal(capsys, *half_done, *options)
    assert words.format(backends.get().name) in text
    assert contents("out") == before


def test_other_data_are_refused_before_anything_is_trained(half_done, capsys, tmp_path):
    before = contents("out")
    other = str(write_idx(tmp_path / "other", n_train=231))
    text = refusal(capsys, *half_done, "--data", other)
    assert f"out/net1-seed0 was started with other data than those in {other}" in text
    assert contents("out") == before


@pytest.mark.parametrize("damaged", [LAST, METRICS, CONFIG])
def test_a_damaged_run_is_one_line_and_the_others_go_on(half_done, capsys, whole, damaged):
    path = Path("out/net1-seed0", damaged)
    path.write_bytes(path.read_bytes()[:-5])
    before = contents("out/net1-seed0")
    assert main(half_done) == 2
    out, err = capsys.readouterr()
    assert re.fullmatch(r"error: [^\n]+\n", err)
    assert damaged in err
    assert re.search(r"^net1-seed0 +damaged ", out, re.MULTILINE)
    assert_same_result(run_state("out/net2-seed0"), run_state(whole / "net2-seed0"))
    assert contents("out/net1-seed0") == before
    text = Path("out/report.md").read_text()
    assert "Started, but not in the table: net1-seed0." in text
    assert f"- {err.removeprefix('error: ')}" in text


def test_a_run_without_its_settings_is_not_started_anew(half_done, capsys):
    Path("out/net1-seed0", CONFIG).unlink()
    before = contents("out/net1-seed0")
    assert main(half_done) == 2
    assert CONFIG in capsys.readouterr().err
    assert contents("out/net1-seed0") == before


def test_a_run_of_another_process_is_reported_and_left_alone(data, capsys, monkeypatch):
    argv = arguments(data, "--out", "out")
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_on_samples", lambda *args: os.kill(os.getpid(), signal.SIGTERM))
        assert main(argv) == 128 + signal.SIGTERM
    before, taken = contents("out/net1-seed0"), lock(Path("out/net1-seed0"))
    capsys.readouterr()
    try:
        assert main(argv) == 1
        assert contents("out/net1-seed0") == before
        out, err = capsys.readouterr()
        assert err == ""
        assert re.search(r"^net1-seed0 +running +0/3", out, re.MULTILINE)
        assert re.search(r"^net2-seed0 +finished +3/3", out, re.MULTILINE)
        assert "net1-seed0 (running)" in Path("out/report.md").read_text()
    finally:
        os.close(taken)
    assert main(argv) == 0


def test_another_process_may_be_faster(data, capsys, monkeypatch, whole):
    """It takes a run between the look at its folder and its creation, and is killed."""
    create, taken = Run.create, []

    def late(folder, *rest):
        if not taken:
            folder.mkdir(parents=True)
            taken.append(lock(folder))
        return create(folder, *rest)

    monkeypatch.setattr(Run, "create", late)
    monkeypatch.setattr(work.time, "sleep", lambda seconds: taken.append(os.close(taken[0])))
    assert main(arguments(data, "--out", "out")) == 0
    assert len(taken) == 2
    assert capsys.readouterr().err == ""
    assert_finished("out", whole)


def test_another_process_may_have_begun(data, capsys, monkeypatch, whole):
    """After the look at its folder, and it is killed as soon as the run is there."""
    create, begun = Run.create, []

    def late(folder, *rest):
        if not begun:
            begun.append(create(folder, *rest))
            begun[0].close()
        return create(folder, *rest)

    monkeypatch.setattr(Run, "create", late)
    assert main(arguments(data, "--out", "out")) == 0
    assert len(begun) == 1
    assert capsys.readouterr().err == ""
    assert_finished("out", whole)


def test_a_run_that_diverges_is_one_line_and_the_others_go_on(data, capsys, monkeypatch):
    begin = runs.start

    def fail(trainer):
        raise Diverged("training diverged")

    def diverge(folder, *args):
        with monkeypatch.context() as patch:
            if folder.name == "net1-seed0":
                patch.setattr(Trainer, "_train", fail)
            return begin(folder, *args)

    monkeypatch.setattr(runs, "start", diverge)
    assert main(arguments(data)) == 2
    out, err = capsys.readouterr()
    assert re.fullmatch(r"error: training diverged; .* holds the weights before that\n", err)
    assert re.search(r"^net1-seed0 +failed +0/3", out, re.MULTILINE)
    assert run_state("runs/table1/net2-seed0").epoch == 3


def test_a_run_whose_backend_is_missing_here(data, capsys, monkeypatch):
    argv = arguments(data, "--out", "out", "--backend", "scalar")
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_on_samples", lambda *args: os.kill(os.getpid(), signal.SIGTERM))
        assert main(argv) == 128 + signal.SIGTERM
    get = backends.get

    def lacking(name="auto", *args, **kwargs):
        if name == "scalar":
            raise mlpcore.InputError("backend 'scalar' cannot run: no such luck")
        return get(name, *args, **kwargs)

    monkeypatch.setattr(backends, "get", lacking)
    capsys.readouterr()
    assert main(arguments(data, "--out", "out")) == 2
    out, err = capsys.readouterr()
    assert err == "error: net1-seed0 cannot go on: backend 'scalar' cannot run: no such luck\n"
    assert re.search(r"^net1-seed0 +failed +0/3", out, re.MULTILINE)
    assert run_state("out/net2-seed0").epoch == 3


# ---- report --------------------------------------------------------------------------------


@pytest.mark.figures
def test_the_report_is_rebuilt_with_figures(half_done, capsys):
    before = contents("out")
    assert main(["--report", "--out", "out"]) == 0
    assert "net1-seed0" in capsys.readouterr().out
    text = Path("out/report.md").read_text()
    linked = re.findall(r"\]\((figures/[^)]+\.png)\)", text)
    names = ["learning-curves", "net1-seed0-misclassified"]
    assert linked == [f"figures/{name}.png" for name in names]
    for name in linked:
        assert Path("out", name).read_bytes().startswith(b"\x89PNG")
    assert {path: content for path, content in contents("out").items() if path in before} == before


def test_figures_that_fail_do_not_fail_the_report(half_done, capsys, monkeypatch):
    def fail(*args):
        raise RuntimeError("no\nfont")

    monkeypatch.setattr(report, "draw", fail)
    assert main(["--report", "--out", "out"]) == 0
    note = "no figures are drawn: RuntimeError: no font"
    assert f"note: {note}\n" in capsys.readouterr().out
    text = Path("out/report.md").read_text()
    assert f"- {note}\n" in text and "| net1-seed0" in text


def test_second_guesses_are_counted_on_the_test_images(half_done, monkeypatch):
    state = run_state("out/net1-seed0")
    assert main(["--report", "--out", "out"]) == 0
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in Path("out/report.md").read_text().splitlines()
        if line.startswith(("| run ", "| net1-seed0 "))
    ]
    row = dict(zip(*rows))
    right, errors = map(int, row["second guess right"].split(" of "))
    assert errors == state.best_metrics.test_errors
    assert 0 <= right <= errors
    error = row["test error at best validation"]
    assert error.startswith(f"{state.best_metrics.test_error:.2f} %")


# ---- bad input -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--nets 6", "'6', expected 1, 2, 3, 4, 5"),
        ("--nets 1,,2", "'', expected 1"),
        ("--nets 1000,500", "'1000', expected 1"),
        ("--seeds -1", "seed -1"),
        ("--seeds a", "'a', expected a whole number"),
        ("--epochs 0", "epochs 0"),
        ("--epochs many", "'many'"),
        ("--threads 0", "threads 0"),
        ("--backend mmx", "'mmx': expected auto"),
        ("--data none", "none"),
        ("--out file", "file"),
        ("--out /proc/runs", "/proc/runs"),
        ("--speed 9", "--speed"),
        ("more", "more"),
        ("--unfinished", "--unfinished alone"),
        ("--report --unfinished", "--unfinished together with --report"),
        ("--report --nets 1", "--nets together with"),
        ("--readme file --out here", "--out together with --readme"),
        ("--data=", "'', expected a folder"),
        ("--out=", "'', expected a folder"),
        ("--evidence kept --epochs 0", "--epochs together with"),
        ("--rerun kept --seeds 0", "--seeds together with --rerun"),
        ("--rerun kept --recipe paper", "--recipe together with --rerun"),
        ("--recipe nonsense", "argument --recipe: invalid choice: 'nonsense'"),
        ("--rerun kept --report", "--report together with --rerun"),
        ("--rerun none", "none/config.json"),
        ("--report", "runs/table1"),
        ("--report --out file", "file"),
        ("--report --out .", "holds no runs"),
        ("--readme none", "none"),
        ("--readme file", "benchmarks/results/table1"),
    ],
)
def test_arguments_are_refused_and_nothing_is_left(capsys, options, words):
    Path("file").touch()
    assert words in refusal(capsys, *options.split())
    assert os.listdir() == ["file"]


def test_without_mnist_nothing_else_is_trained_on(capsys, monkeypatch):
    monkeypatch.setattr(mnist, "download", lambda *args: "the network is down")
    assert "MNIST was not found" in refusal(capsys, "--nets", "1")
    assert os.listdir() == []


def test_the_tool_itself():
    result = subprocess.run(
        [sys.executable, TOOLS / "reproduce.py", "--nets", "0"],
        capture_output=True,
        env=environment(),
        text=True,
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert re.fullmatch(r"error: [^\n]+\n", result.stderr)
