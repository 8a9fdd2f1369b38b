"""tools/reproduce.py: stopped anywhere it goes on; it refuses, reports and keeps evidence."""

import contextlib
import dataclasses
import hashlib
import json
import os
import pkgutil
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
from mlpcore import backends, mnist, runs
from mlpcore.architecture import PRESETS
from mlpcore.checkpoint import BEST, CONFIG, LAST, METRICS, Run, history_lines
from mlpcore.files import lock
from mlpcore.table1 import collect, evidence, readme, report, work
from mlpcore.table1.command import main
from mlpcore.table1.rerun import first_difference, other_revisions
from mlpcore.training import Diverged, Trainer
from mlpcore.weights import weights_sha256
from small_runs import assert_same_result, isolate, load_tool, write_idx

TOOLS = Path(__file__).parents[1] / "tools"

#: Instead of the paper's networks.
SMALL = {"net1": (8,), "net2": (9, 6)}


@pytest.fixture(autouse=True)
def isolated(tmp_path, monkeypatch):
    """An empty working folder, no data set of this machine, no network; small presets.

    No test cuts the power, so nothing waits for the disk.
    """
    isolate(monkeypatch, tmp_path / "work")
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    for name, widths in SMALL.items():
        monkeypatch.setitem(PRESETS, name, widths)


@pytest.fixture(autouse=True)
def no_figures(request, monkeypatch):
    """Figures take longer than these trainings: only tests that are marked draw them."""
    if not request.node.get_closest_marker("figures"):
        monkeypatch.setattr(report, "draw", lambda *args: [])
        monkeypatch.setattr(runs, "draw", lambda *args: [])
        monkeypatch.setattr(collect, "draw", lambda *args: [])


@pytest.fixture
def data(tmp_path):
    """A folder of small IDX files."""
    return str(write_idx(tmp_path / "letters"))


def arguments(data, *more):
    return ["--nets", "1,2", "--epochs", "3", "--threads", "1", "--data", data, *more]


def run_state(folder):
    run = Run.open(Path(folder), to_train=False)
    return run.load()


def contents(folder):
    return {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def assert_finished(out, expected):
    """All runs in one folder have come to the same as those in another."""
    for name in ("net1-seed0", "net2-seed0"):
        assert_same_result(run_state(Path(out, name)), run_state(Path(expected, name)))
        assert Path(out, name, runs.REPORT).exists()


def refusal(capsys, *argv):
    """The one line on stderr with which the tool refuses its arguments."""
    capsys.readouterr()
    assert main(list(argv)) == 2
    err = capsys.readouterr().err
    assert re.fullmatch(r"error: [^\n]+\n", err)
    return err


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Runs of the same settings that nothing has interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    data = str(write_idx(folder / "letters"))
    with pytest.MonkeyPatch.context() as patch:
        for name, widths in SMALL.items():
            patch.setitem(PRESETS, name, widths)
        patch.setattr(report, "draw", lambda *args: [])
        patch.setattr(runs, "draw", lambda *args: [])
        assert main(arguments(data, "--out", str(folder / "out"))) == 0
    return folder / "out"


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
from mlpcore.architecture import PRESETS
from mlpcore import runs
from mlpcore.table1 import collect, report
from mlpcore.table1.command import main
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


@pytest.fixture
def half_done(data, whole):
    """net1 is finished, net2 has not begun."""
    shutil.copytree(whole / "net1-seed0", "out/net1-seed0")
    return arguments(data, "--out", "out")


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


# ---- evidence ------------------------------------------------------------------------------


@pytest.fixture
def kept(half_done):
    """Evidence of net1."""
    assert main(["--evidence", "kept", "--out", "out"]) == 0
    return Path("kept")


def test_evidence_holds_all_but_weights_and_paths(kept, whole):
    assert sorted(path.name for path in kept.iterdir()) == [
        "README.md",
        "net1-seed0",
        "summary.json",
    ]
    files = sorted(path.name for path in (kept / "net1-seed0").iterdir())
    assert files == [CONFIG, METRICS, "report.md", "result.json"]
    assert (kept / "net1-seed0" / METRICS).read_bytes() == Path(
        "out/net1-seed0", METRICS
    ).read_bytes()
    ours, theirs = (json.loads(Path(f, "net1-seed0", CONFIG).read_text()) for f in ("out", kept))
    assert theirs["data"].pop("source") == "a folder of IDX files"
    assert ours["data"].pop("source") == str(whole.parent / "letters")
    assert ours == theirs
    for path, content in contents(kept).items():
        text = content.decode()
        assert str(whole.parent) not in text
        assert not re.search(r"(^|[\s\"'(\[])/\w", text), path
        assert os.uname().nodename not in text
    result = json.loads((kept / "net1-seed0" / "result.json").read_text())
    assert re.fullmatch(r"[0-9a-f]{40}(\+changes)?(\+stale)?|", result["best"]["revision"])
    assert result["best"]["machine"] == result["collected"]["machine"] != ""
    assert result["last"]["epoch"] == result["epochs"] == 3
    assert len(result["best"]["sha256"]) == len(result["last"]["sha256"]) == 64


def test_evidence_has_the_rows_of_the_report(kept):
    assert main(["--report", "--out", "out"]) == 0
    table = readme.full_table(kept)
    assert table in Path("out/report.md").read_text()
    assert table in (kept / "README.md").read_text()


def test_the_settings_stay_as_the_run_has_them(half_done, kept):
    """The revision that wrote them may know none of those that have been added since."""
    path = Path("out/net1-seed0", CONFIG)
    settings = json.loads(path.read_text())
    del settings["training"]["target"], settings["data"]["held_out"]
    settings["note"] = "/home/me"
    path.write_text(json.dumps(settings))
    assert main(["--evidence", "kept", "--out", "out"]) == 0
    kept_settings = json.loads((kept / "net1-seed0" / CONFIG).read_text())
    assert kept_settings["training"] == settings["training"]
    assert kept_settings["data"].keys() == settings["data"].keys()
    assert "note" not in kept_settings
    assert evidence.read_run_evidence(kept / "net1-seed0").record.finished


@pytest.mark.parametrize("gone_on", [False, True])
def test_without_the_data_nothing_is_lost(kept, half_done, capsys, monkeypatch, gone_on):
    """Second guesses and committees stay, for the networks are the same."""
    folder = kept / "net1-seed0"
    result = json.loads((folder / "result.json").read_text())
    assert result["test"]["n"] > 0
    written = put_committees(kept, ["net1-seed0", "net3-seed7"])
    if gone_on:  # and the best network is still that of before
        monkeypatch.setattr(collect, "_is_same", lambda *args: True)
        as_it_was(folder)
    before = contents(folder)

    def gone(*args, **kwargs):
        raise mlpcore.InputError("the data are gone")

    monkeypatch.setattr("mlpcore.table1.measure.find_data", gone)
    assert main(["--evidence", "kept", "--out", "out"]) == 0
    assert "without second guesses: the data are gone" in capsys.readouterr().out
    assert (contents(folder) == before) != gone_on
    after = json.loads((folder / "result.json").read_text())
    assert (after["epochs"], after["test"]) == (3, result["test"])
    assert committees(kept) == written


@pytest.mark.parametrize("module", ["collect", "measure"])
def test_a_network_of_another_epoch_does_not_count(half_done, capsys, monkeypatch, module):
    """As while another process saves: the metrics are there before the network, or after it."""
    place = f"mlpcore.table1.{module}.read_network"
    read = pkgutil.resolve_name(place)

    def of_another_epoch(path, *args):
        network, metadata = read(path, *args)
        return network, metadata | {"epoch": "9"}

    monkeypatch.setattr(place, of_another_epoch)
    assert main(["--evidence", "kept", "--out", "out"]) == 0
    note = f"note: {Path('out/net1-seed0', BEST)} is of another epoch than the metrics: expected"
    assert note in capsys.readouterr().out
    summary = json.loads(Path("kept", evidence.SUMMARY).read_text())
    if module == "collect":
        assert summary["missing"][0] == "net1-seed0 (not readable)"
        assert not Path("kept/net1-seed0").exists()
    else:
        result = json.loads(Path("kept/net1-seed0/result.json").read_text())
        assert result["test"] is None


@pytest.mark.parametrize("name", ["best", "last"])
def test_evidence_of_other_weights_is_not_overwritten(kept, capsys, name):
    """Of as many epochs with the same errors, as another revision may come to."""
    path = kept / "net1-seed0" / "result.json"
    result = json.loads(path.read_text())
    result[name]["sha256"] = "0" * 64
    path.write_text(json.dumps(result))
    before = contents(kept)
    text = refusal(capsys, "--evidence", "kept", "--out", "out")
    assert "kept/net1-seed0 has other weights than the run net1-seed0: expected" in text
    assert contents(kept) == before


@pytest.mark.parametrize("last", ["report.md", METRICS, "result.json"])
def test_a_collection_that_is_killed_can_be_done_again(half_done, capsys, monkeypatch, last):
    """Of a new run at any point, for its settings come last."""
    write = collect.atomic_write

    def killed(path, *parts):
        write(path, *parts)
        if path.name == last:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(collect, "atomic_write", killed)
        with contextlib.suppress(KeyboardInterrupt):
            main(["--evidence", "kept", "--out", "out"])
    assert not Path("kept/net1-seed0", CONFIG).exists()
    assert main(["--evidence", "kept", "--out", "out"]) == 0
    assert evidence.read_run_evidence(Path("kept/net1-seed0")).record.finished


def test_damaged_evidence_may_be_removed(kept, capsys):
    (kept / "net1-seed0" / METRICS).write_text("")
    text = refusal(capsys, "--evidence", "kept", "--out", "out")
    assert "kept/net1-seed0 may be removed, to be written anew" in text
    shutil.rmtree(kept / "net1-seed0")
    assert main(["--evidence", "kept", "--out", "out"]) == 0
    assert evidence.read_run_evidence(kept / "net1-seed0").record.finished


def test_runs_of_other_folders_are_still_missing(kept):
    """Until there is evidence of them."""
    path = kept / evidence.SUMMARY
    summary = json.loads(path.read_text())
    missing = ["net1-seed0 (2 of 3 epochs)", "net3 (copy) (120 of 2,000 epochs)"]
    missing += ["net3 (old) (damaged)", "net4-seed7"]
    path.write_text(json.dumps(summary | {"missing": missing}))
    for _ in range(2):
        assert main(["--evidence", "kept", "--out", "out"]) == 0
        assert json.loads(path.read_text())["missing"] == missing[1:]


@pytest.mark.parametrize(
    ("epochs", "change", "words"),
    [
        (2, {}, "has 3 epochs, 2 has the run net1-seed0: expected the same run"),
        (3, {"validation_errors": 0}, "has other errors after epoch 2 than the run net1-seed0: "),
    ],
)
def test_better_evidence_is_not_overwritten(kept, capsys, monkeypatch, epochs, change, words):
    """By a run that was started anew and stopped, or came to something else."""
    history = list(evidence.read_run_evidence(kept / "net1-seed0").record.history)
    history[1] = dataclasses.replace(history[1], **change)
    load = Run.load

    def changed(self):
        state = load(self)
        state.history[:] = history[:epochs]
        return state

    monkeypatch.setattr(Run, "load", changed)
    before = contents(kept)
    assert words in refusal(capsys, "--evidence", "kept", "--out", "out", "--unfinished")
    assert contents(kept) == before


def put_committees(folder, *members):
    """Makes the evidence say that there are such; returns what it says of them."""
    path = folder / evidence.SUMMARY
    counts = {"n": 10, "errors": 2, "second_right": 1}
    committees = [{"members": list(names), "counts": counts} for names in members]
    path.write_text(json.dumps(json.loads(path.read_text()) | {"committees": committees}))
    return committees


def committees(folder):
    return json.loads((folder / evidence.SUMMARY).read_text())["committees"]


def as_it_was(folder, **changes):
    """Makes the evidence of a run that of its first two epochs, with changes to the best."""
    history = evidence.read_run_evidence(folder).record.history[:2]
    metrics = b"".join(history_lines(history))
    (folder / METRICS).write_bytes(metrics)
    path = folder / "result.json"
    result = json.loads(path.read_text())
    result["best"] |= {"epoch": min(history, key=lambda m: m.validation_errors).epoch} | changes
    result |= {"epochs": 2, "last": None, "metrics_sha256": hashlib.sha256(metrics).hexdigest()}
    path.write_text(json.dumps(result))


def test_committees_stay_while_their_members_do(kept, capsys):
    names = ["net2-seed7", "net3-seed7"], ["net1-seed0", "net3-seed7"]
    others, with_this = put_committees(kept, *names)
    assert main(["--evidence", "kept", "--out", "out"]) == 0
    assert committees(kept) == [others, with_this]
    as_it_was(kept / "net1-seed0", sha256="0" * 64)
    capsys.readouterr()
    assert main(["--evidence", "kept", "--out", "out"]) == 0
    assert committees(kept) == [others]
    assert "| committee of 2 finished runs |" in readme.readme_table(kept)
    note = "note: a committee of 2 is left out: net1-seed0 was another\n"
    assert note in capsys.readouterr().out


def test_a_committee_is_replaced_by_one_that_has_all_its_members(data, capsys):
    argv = ["--nets", "1", "--epochs", "2", "--threads", "1", "--data", data, "--out", "out"]
    assert main([*argv, "--seeds", "0,1"]) == main(["--evidence", "kept", "--out", "out"]) == 0
    assert [each["members"] for each in committees(Path("kept"))] == [["net1-seed0", "net1-seed1"]]
    assert main([*argv, "--seeds", "2"]) == main(["--evidence", "kept", "--out", "out"]) == 0
    three = ["net1-seed0", "net1-seed1", "net1-seed2"]
    assert [each["members"] for each in committees(Path("kept"))] == [three]


def test_a_damaged_summary_is_left_as_it_is(kept, capsys):
    (kept / evidence.SUMMARY).write_text("{")
    before = contents(kept)
    assert "summary.json is damaged" in refusal(capsys, "--evidence", "kept", "--out", "out")
    assert contents(kept) == before


def test_held_out_runs_beside_others_do_not_name_the_page(kept, data):
    train = load_tool("train")
    argv = ["--data", data, "--hold-out", "40", "--arch", "8", "--epochs", "1"]
    assert train.main([*argv, "--threads", "1", "--out", "runs/own/held-out"]) == 0
    assert main(["--evidence", "kept", "--out", "runs/own"]) == 0
    assert (kept / "README.md").read_text().startswith("# Table 1, by this library\n")


@pytest.mark.figures
def test_evidence_shows_what_is_misclassified(kept, half_done, capsys, monkeypatch):
    folder = kept / "net1-seed0"
    assert (folder / "misclassified.png").read_bytes().startswith(b"\x89PNG")
    assert "![misclassified](misclassified.png)" in (folder / "report.md").read_text()
    shutil.rmtree(folder)

    def fail(*args):
        raise RuntimeError("no font\nat all")

    monkeypatch.setattr("mlpcore.figures.misclassified", fail)
    capsys.readouterr()
    assert main(["--evidence", "kept", "--out", "out"]) == 0
    note = "note: net1-seed0 has no figure: RuntimeError: no font at all\n"
    assert note in capsys.readouterr().out
    assert "misclassified.png" not in (folder / "report.md").read_text()
    assert evidence.read_run_evidence(folder).record.finished


def test_evidence_of_unfinished_runs_only_on_demand(kept, half_done, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        run_epoch = Trainer._run_epoch

        def stop_after_two(self):
            run_epoch(self)
            if self.state.epoch == 2:
                self.request_stop()
                os.kill(os.getpid(), signal.SIGTERM)

        patch.setattr(Trainer, "_run_epoch", stop_after_two)
        assert main(half_done) == 128 + signal.SIGTERM
    shutil.copytree("out/net2-seed0", "unfinished/net2-seed0")
    assert "no finished run" in refusal(capsys, "--evidence", "none", "--out", "unfinished")
    assert not Path("none").exists()
    assert main(["--evidence", "kept", "--out", "out"]) == 0
    assert "note: net2-seed0 is left out: 2 of 3 epochs, unfinished" in capsys.readouterr().out
    assert not (kept / "net2-seed0").exists()
    assert "Started, but not in the table: net2-seed0 (2 of 3 epochs)." in readme.readme_table(kept)
    assert main(["--evidence", "kept", "--out", "out", "--unfinished"]) == 0
    assert "| net2-seed0 (unfinished) |" in readme.readme_table(kept)
    text = (kept / "net2-seed0" / "report.md").read_text()
    assert text.startswith("**Not finished: 2 of 3 epochs.**")
    assert json.loads((kept / "net2-seed0" / "result.json").read_text())["last"] is None
    data = half_done[half_done.index("--data") + 1]
    capsys.readouterr()
    assert main(["--rerun", "kept/net2-seed0", "--data", data, "--threads", "1"]) == 0
    out = capsys.readouterr().out
    assert "the same as kept/net2-seed0 in its 2 epochs, to the bit" in out
    assert run_state("runs/rerun/net2-seed0").epoch == 2
    assert main(["--rerun", "kept/net2-seed0", "--data", data, "--threads", "1"]) == 0
    assert run_state("runs/rerun/net2-seed0").epoch == 2
    result = kept / "net2-seed0" / "result.json"
    text = result.read_text()
    result.write_text(text.replace(json.loads(text)["best"]["sha256"], "0" * 64))
    assert main(["--rerun", "kept/net2-seed0", "--data", data, "--threads", "1"]) == 1
    assert f"{BEST}: weights of SHA-256" in capsys.readouterr().out
    beyond = ["--rerun", "kept/net2-seed0", "--data", data, "--out", "out"]
    assert main(half_done) == 0  # the run itself goes on to its end
    assert "net2-seed0 has 3 epochs, expected the 2 of kept/net2-seed0" in refusal(capsys, *beyond)


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("result.json", '"epochs": 3', '"epochs": 2', "does not fit metrics.jsonl beside it"),
        ("result.json", '"second_right": ', '"second_right": 9', "expected the result of a run"),
        ("result.json", '"sha256"', '"sha1"', "expected the result of a run"),
        ("result.json", '"revisions": [', '"revisions": [1,', "expected the result of a run"),
        ("result.json", "{", "", "expected JSON"),
        ("metrics.jsonl", '"epoch": 3', '"epoch": 4', "expected metrics of epochs"),
        ("metrics.jsonl", '"n_test": 60', '"n_test": 61', "result.json does not fit"),
        ("config.json", '"seed": 0', '"seed": "0"', "seed '0': expected a whole number"),
        ("../summary.json", '"missing"', '"found"', "expected committees"),
        ("../summary.json", "{", "[", "expected JSON"),
    ],
)
def test_damaged_evidence(kept, name, old, new, words):
    path = kept / "net1-seed0" / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(mlpcore.InputError, match=re.escape(words)) as caught:
        evidence.read_evidence(kept)
    assert "kept/" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_readme_gets_its_table(kept, capsys):
    Path("README.md").write_text(f"# Ours\n{readme.BEGIN}\nold\n{readme.END}\nend\n")
    Path("other.md").write_text("# Other\n")
    shutil.copytree(kept, evidence.FOLDER)
    assert "other.md: expected the lines" in refusal(capsys, "--readme", "other.md")
    assert main(["--readme"]) == 0
    table = readme.readme_table(kept)
    text = Path("README.md").read_text()
    assert text == f"# Ours\n{readme.BEGIN}\n{table}\n{readme.END}\nend\n"


# ---- once more -----------------------------------------------------------------------------


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_row_is_computed_again_to_the_bit(kept, capsys, data, threads):
    argv = ["--rerun", "kept/net1-seed0", "--data", data, "--threads", threads]
    assert main(argv) == 0
    assert "the same as kept/net1-seed0, to the bit" in capsys.readouterr().out
    expected = evidence.read_run_evidence(kept / "net1-seed0")
    again = run_state("runs/rerun/net1-seed0")
    assert weights_sha256(again.best) == expected.best.sha256
    assert weights_sha256(again.network) == expected.last.sha256


@pytest.mark.parametrize("ours, noted", [("a" * 40, True), ("b" * 40, False), ("", False)])
def test_a_row_of_another_revision(kept, capsys, data, monkeypatch, ours, noted):
    """Its bits cannot be promised, which is said before they are computed."""
    path = kept / "net1-seed0" / "result.json"
    result = json.loads(path.read_text())
    for weights in (result["best"], result["last"]):
        weights["revision"] = "b" * 40
    result["revisions"] = [[1, "b" * 40]]
    path.write_text(json.dumps(result))
    monkeypatch.setattr("mlpcore.provenance.revision", lambda: ours)
    assert main(["--rerun", "kept/net1-seed0", "--data", data, "--threads", "1"]) == 0
    note = f"note: computed by revision {'b' * 40}, this is {ours}: the bits differ if"
    assert (note in capsys.readouterr().out.replace("\n", " ")) == noted


def test_a_row_of_several_revisions(data, capsys, monkeypatch):
    """All are named, though both networks are of the last one."""
    argv = ["--nets", "1", "--epochs", "4", "--threads", "1", "--data", data]
    run_epoch = Trainer._run_epoch

    def run_one(self):
        run_epoch(self)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("mlpcore.provenance.revision", lambda: "a" * 40)
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_run_epoch", run_one)
        assert main(argv) == 128 + signal.SIGTERM
    monkeypatch.setattr("mlpcore.provenance.revision", lambda: "c" * 40)
    assert main(argv) == main(["--evidence", "kept"]) == 0
    result = json.loads(Path("kept/net1-seed0/result.json").read_text())
    assert result["best"]["revision"] == result["last"]["revision"] == "c" * 40
    assert result["revisions"] == [[1, "a" * 40], [2, "c" * 40]]
    capsys.readouterr()
    assert main(["--rerun", "kept/net1-seed0", "--data", data]) == 0
    note = f"note: computed by revision {'a' * 40}, then by {'c' * 40}, this is {'c' * 40}: the"
    assert note in capsys.readouterr().out.replace("\n", " ")


def test_the_committed_evidence_can_be_read():
    results = Path(__file__).parents[1] / "benchmarks" / "results"
    for folder in (results / "table1", results / "hold-out"):
        for each in evidence.read_evidence(folder).runs:
            other_revisions(each)


def test_held_out_images_are_evidence_too(data, capsys):
    """Also of settings that are not the paper's, and computed again to the bit."""
    train = load_tool("train")
    argv = ["--data", data, "--hold-out", "40", "--arch", "8", "--epochs", "2", "--sigma", "5"]
    assert train.main([*argv, "--threads", "1", "--out", "runs/own/held-out"]) == 0
    assert main(["--evidence", "own", "--out", "runs/own"]) == 0
    text = Path("own", "README.md").read_text()
    assert text.startswith("# Runs tested on held-out images")
    rates = "learning rate 0.001 to 0.00099655 in 2 epochs"
    assert f"Settings of held-out: {rates}, sigma 5, alpha 36, beta 15, gamma 15, " in text
    assert "40 training images held out and tested on." in text
    header = [cell.strip() for cell in text.splitlines()[2].split("|")]
    assert header[5:7] == ["held-out error at best validation", "best held-out error"]
    assert "selected by the held-out images" in text and "test images" not in text
    capsys.readouterr()
    assert main(["--rerun", "own/held-out", "--data", data]) == 0
    assert "the same as own/held-out, to the bit" in capsys.readouterr().out


def test_evidence_of_the_embedded_digits_needs_no_folder(capsys):
    train = load_tool("train")
    argv = ["--dataset", "digits", "--hold-out", "300", "--arch", "8", "--epochs", "1"]
    assert train.main([*argv, "--threads", "1", "--out", "runs/own/digits"]) == 0
    assert main(["--evidence", "own", "--out", "runs/own"]) == 0
    capsys.readouterr()
    assert main(["--rerun", "own/digits", "--threads", "1"]) == 0
    assert "the same as own/digits, to the bit" in capsys.readouterr().out
    assert "together with data set 'digits'" in refusal(
        capsys, "--rerun", "own/digits", "--data", "own", "--out", "again"
    )


def test_evidence_of_another_run_is_not_overwritten(kept, data, capsys):
    assert main(["--nets", "1", "--epochs", "2", "--data", data, "--out", "shorter"]) == 0
    before = contents(kept)
    text = refusal(capsys, "--evidence", str(kept), "--out", "shorter")
    assert "net1-seed0 has other settings or data than the run net1-seed0" in text
    assert contents(kept) == before


def test_a_rerun_may_be_interrupted(kept, capsys, data, monkeypatch):
    argv = ["--rerun", "kept/net1-seed0", "--data", data, "--threads", "1"]
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_on_samples", lambda *args: os.kill(os.getpid(), signal.SIGTERM))
        assert main(argv) == 128 + signal.SIGTERM
    command = capsys.readouterr().out.splitlines()[-1]
    assert main(shlex.split(command)[2:]) == 0


def test_differences_are_found(kept, capsys, data):
    argv = ["--rerun", "kept/net1-seed0", "--data", data, "--threads", "1"]
    path = kept / "net1-seed0" / "result.json"
    result = json.loads(path.read_text())
    result["best"]["sha256"] = "0" * 64
    path.write_text(json.dumps(result))
    assert main(argv) == 1
    out = capsys.readouterr().out
    assert f"{BEST}: weights of SHA-256" in out
    assert "to the bit" not in out
    other = ["--evidence", "kept", "--out", "other"]
    settings = ["--nets", "1", "--epochs", "3", "--seeds", "1", "--data", data, "--out", "other"]
    assert main(settings) == main(other) == 0
    found = evidence.read_run_evidence(kept / "net1-seed1").record.history
    expected = run_state("out/net1-seed0").history
    assert first_difference(found, expected) == 1
    assert first_difference(expected, expected) is None
    assert first_difference(expected[:2], expected) == 3


def test_a_rerun_of_other_data_or_settings_is_refused(kept, capsys, data, tmp_path):
    other = str(write_idx(tmp_path / "other", n_train=231))
    argv = ["--rerun", "kept/net1-seed0"]
    assert "data of kept/net1-seed0 are not MNIST: expected --data" in refusal(capsys, *argv)
    assert "are not those of kept/net1-seed0" in refusal(capsys, *argv, "--data", other)
    assert sorted(os.listdir()) == ["kept", "out"]
    settings = ["--nets", "1", "--epochs", "2", "--data", data, "--out", "runs/rerun"]
    assert main(settings) == 0
    assert "has other settings than" in refusal(capsys, *argv, "--data", data)


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
