"""`mlpcore committee`: its runs and its result, how it stops and goes on, what it refuses."""

import json
import re
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import mlpcore
from mlpcore import dataset
from mlpcore.__main__ import main
from mlpcore.commands import committee as command
from mlpcore.commands import runs
from mlpcore.store.committee import DOCUMENT, CommitteeFolder, plan
from mlpcore.store.run_folder import BEST, CONFIG, LAST
from mlpcore.store.weights import weights_sha256
from mlpcore.training.trainer import Trainer
from small_runs import (
    assert_same_result,
    load_run,
    make_config,
    make_pixels,
    write_arrays,
    write_idx,
)
from test_golden_bits import EXPECTED

OPTIONS = "--arch", "8,6", "--epochs", "3", "--recipe", "paper", "--lr", "0.01", "--threads", "1"
ARCHS = "--arch", "8,6", "7,5", "12"
DRAWN = Path(mlpcore.__file__).parents[1] / "docs/images/drawn.png"

#: Two roundings in float32 of sums as in `tests/store/test_exported_files.py`, and the mean's.
TOLERANCE = 1e-5


@pytest.fixture
def argv(data):
    """The command of a committee of three in the folder ``c``."""
    return ["committee", "--data", data, *OPTIONS, *ARCHS, "--out", "c"]


def test_members_have_their_architectures_and_seeds():
    configs = [make_config(seed=7, hidden_layers=each) for each in ((1000, 500), (9, 6))]
    found = [(m.name, m.config.hidden_layers, m.config.seed) for m in plan(configs, 2)]
    names = "net1-1", "net1-2", "9-6-1", "9-6-2"
    layers = [(1000, 500)] * 2 + [(9, 6)] * 2
    assert found == list(zip(names, layers, (7, 8, 9, 10), strict=True))


@pytest.mark.figures
def test_the_result(call, argv, data, monkeypatch):
    """Errors, their mean, and the comparison are those of the mean of the members' outputs."""
    monkeypatch.setattr(runs, "draw", lambda *args: [])  # the figures of the members
    lines = call(*argv).splitlines()
    rows = {row[0]: row[1:] for row in (re.split(r"\s{2,}", line) for line in lines)}
    given, wrong = dataset.load(data), []
    for member in CommitteeFolder.open("c").members:
        state = load_run(Path("c", member.name))
        best = state.best_metrics
        shown = rows[member.name]
        assert shown[0] == f"{best.validation_error:.3f} %"
        assert shown[2] == f"{best.test_error:.3f} %" and shown[-1] == "1"
        seen = given.test_images.reshape(60, -1)
        wrong.append(command.backends.get("reference").predict(state.best, seen))
    errors = np.mean(wrong, axis=0).argmax(axis=1) != given.test_labels
    singly = [each.argmax(axis=1) != given.test_labels for each in wrong]
    assert rows["committee of 3"][2] == f"{100 * errors.mean():.3f} %"
    assert rows["committee of 3"][-1] == "3"
    assert rows["mean of the members"][2] == f"{100 * np.mean(singly):.3f} %"
    best = min(singly, key=np.sum)
    alone = np.count_nonzero(best & ~errors), np.count_nonzero(errors & ~best)
    said = "{} images are wrong only for the member, {} only for the committee".format(*alone)
    assert said in lines[-2]
    text = Path("c", runs.REPORT).read_text()
    assert said in text and "- epochs: 3" in text and "12 2" in text
    figures = re.findall(r"!\[[a-z]+\]\((.*)\)", text)
    assert sorted(Path("c", each) for each in figures) == sorted(Path("c/figures").iterdir())
    assert len(figures) == 4


def test_stopped_anywhere_the_same_command_goes_on_to_the_same_bits(
    call, argv, data, signal_in, capsys
):
    """Members are ordinary runs, of the bits that they have without a committee."""
    for member, epoch in ((1, 1), (2, 2)):  # in two members, in the middle of an epoch
        with signal_in(signal.SIGINT, epoch, seed=member):
            assert main(argv) == 128 + signal.SIGINT
        assert " committee " in capsys.readouterr().out.splitlines()[-1]
    lines = call(*argv).splitlines()
    assert "member 1 of 3: 8-6, seed 0, is trained" in lines
    committee = CommitteeFolder.open("c")
    for member in committee.members:
        backend = command.backends.get(member.config.backend, 1)
        trainer = Trainer(member.config, dataset.load(data), backend)
        assert trainer.run()
        assert_same_result(load_run(committee.run_folder(member)), trainer.state)
        call("train", "--resume", committee.run_folder(member))
    assert call(*argv).splitlines()[-8:] == lines[-8:]  # a finished one shows its result again


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--sigma 5", "c holds a committee with sigma 6.0 for the member 8-6: expected"),
        ("--lr 0.02", "learning rate 0.01"),
        ("--seed 1", "with seed 0"),
        ("--arch 8,6 12", "members 8-6, 7-5, 12: expected the same command"),
        ("--members 2", "members 8-6, 7-5, 12: expected the same command"),
        ("--hold-out 30", "are not those that the committee in c began with"),
        ("--data ../other", "other are not those that the committee in c began with"),
        ("--out .", ". already holds"),
        ("--arch net1 1000,500 --out new", "--arch net1 net1: expected each once"),
        ("--arch net1 two", "architecture 'two': 'two' is not a width"),
        ("--members 0 --out new", "members 0: expected a whole number from 1 to 1,000"),
        ("--minutes 2", "unrecognized arguments: --minutes 2"),
        ("--workers 0", "--workers 0: expected a whole number from 1 to 1,000"),
        ("--workers 2 --scheduler x", "--scheduler: not allowed with argument --workers"),
        ("--scheduler=", "no address of a Dask scheduler: expected"),
        ("--scheduler nowhere", "no Dask scheduler at nowhere: "),
    ],
)
def test_what_does_not_fit_is_refused(call, refusal, argv, options, words, monkeypatch):
    monkeypatch.setattr(command, "train_here", lambda *a: 1)
    assert main(argv) == 1
    write_idx(Path("../other"), n_train=231)
    Path(CONFIG).touch()  # the working folder is a run
    assert words in refusal(*argv, *options.split())


def test_of_two_committees_begun_at_once_in_one_folder_one_is_refused(
    call, refusal, argv, monkeypatch
):
    """Whichever writes its document first; the other neither replaces it nor waits."""
    load_data, inner = command.train.load_data, [argv]

    def begin_another(options):
        while inner:
            call(*inner.pop())
        return load_data(options)

    monkeypatch.setattr(command.train, "load_data", begin_another)
    assert main([*argv, "--sigma", "5"]) == 2
    with CommitteeFolder.open("c").locked():
        assert "c is in use by another process" in refusal(*argv)
    assert "member 1 of 3: 8-6, seed 0, is trained" in call(*argv)


def test_a_link_is_not_written_through(call, refusal, argv):
    call("train", *argv[1:3], *OPTIONS, "--out", "other")
    Path("c").mkdir()
    for target in ("../other", "../nowhere"):
        Path("c/8-6").symlink_to(target)
        assert main(argv) == 2
        assert "cannot write c/8-6, a link" in refusal(*argv)
        Path("c/8-6").unlink()


def test_a_missing_package_is_named_before_anything_is_written(refusal, argv, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    for name in [name for name in sys.modules if name.startswith("mlpcore.cluster")]:
        monkeypatch.delitem(sys.modules, name)
    assert "extra 'cluster'" in refusal(*argv, "--workers", "2")
    assert "extra 'cluster'" in refusal(*argv, "--scheduler", "tcp://127.0.0.1:1")


def test_processes_of_this_machine_come_to_the_same_bits(call):
    pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")
    options = "--dataset", "digits", "--arch", "20", "--epochs", "2", "--backend", "scalar"
    argv = "committee", *options, "--members", "2", "--seed", "7", "--out", "c"
    out = call(*argv, "--workers", "2")
    assert out.startswith("dashboard: ") and "20-2: 2 of 2 epochs, test error " in out
    for name, sha256 in EXPECTED["trained committee"].items():
        assert weights_sha256(load_run(Path("c", name)).network) == sha256
    assert "dashboard" not in call(*argv, "--workers", "2")  # for which there is nothing to do


def test_a_stop_on_a_cluster_says_how_to_go_on(argv, capsys, monkeypatch):
    cluster = pytest.importorskip("mlpcore.cluster", reason="the extra 'cluster' is not installed")
    monkeypatch.setattr(cluster, "train_members", lambda *a, **options: signal.SIGINT)
    assert main([*argv, "--workers", "1", "--backend", "cuda"]) == 128 + signal.SIGINT
    assert capsys.readouterr().out.endswith("--out c --workers 1 --backend cuda\n")


DAMAGES = [
    (DOCUMENT, "}", "", f"c/{DOCUMENT} is damaged"),
    (DOCUMENT, '"7-5"', '"../x"', f"c/{DOCUMENT} is damaged: Expected `str` matching"),
    (DOCUMENT, '"7-5"', '"12"', f"c/{DOCUMENT} is damaged: expected members of differ"),
    (DOCUMENT, '"seed"', '"seeds"', f"c/{DOCUMENT} is damaged: Object contains unknown field"),
    (f"7-5/{LAST}", "seed", "", f"c/7-5/{LAST}"),
    (f"7-5/{CONFIG}", '"seed": 1', '"seed": 9', "c/7-5 is the run of other settings"),
]


def test_a_damaged_member_is_named(call, refusal, argv, monkeypatch):
    """The backend is that of the beginning; another machine may have another best one."""
    call(*argv, "--backend", "scalar")
    monkeypatch.setenv("MLPCORE_BACKEND", "reference")
    assert "3: 12, seed 2, is trained" in call(*argv)
    for name, old, new, words in DAMAGES:
        path = Path("c", name)
        content = path.read_bytes()
        path.write_bytes(content.replace(old.encode(), new.encode()))
        assert words in refusal(*argv)
        path.write_bytes(content)
    Path("c/7-5", BEST).unlink()
    assert f"c/7-5/{BEST}" in refusal(*argv)


# The folder in place of networks


@pytest.fixture
def pictures(call, tmp_path):
    """A committee of two on images of 28 x 28 pixels in the folder ``c``; pixels of such images."""
    parts = (make_pixels(60, 0, height=28, width=28), make_pixels(30, 1, height=28, width=28))
    folder = write_arrays(tmp_path / "squares", [array for part in parts for array in part])
    call("committee", "--data", folder, *OPTIONS, "--members", "2", "--out", "c")
    return parts[1][0]


def test_every_command_takes_the_folder_of_a_committee(call, pictures):
    committee = mlpcore.load("c")
    mean = committee.outputs(committee.to_images(pictures))
    row = call("evaluate", "c", "--json", "found.json").split("committee of 2")[1].split()
    wrong = np.count_nonzero(mean.argmax(axis=1) != np.arange(30) % 3)
    assert row[0] == str(wrong)
    found = json.loads(Path("found.json").read_text())
    assert [each["path"] for each in found["networks"]] == ["c/8-6-1", "c/8-6-2"]
    answer = json.loads(call("predict", "c", DRAWN, "--json"))["pictures"][0]
    outputs = committee.outputs_of_digits(committee.to_images(DRAWN))
    np.testing.assert_allclose(answer["outputs"], outputs[0], rtol=0, atol=5e-5)
    runtime = pytest.importorskip("onnxruntime")
    call("export", "c", "--onnx", "c.onnx")
    session = runtime.InferenceSession("c.onnx", providers=["CPUExecutionProvider"])
    (outputs,) = session.run(None, {"pixels": pictures})
    np.testing.assert_allclose(outputs, mean, rtol=0, atol=TOLERANCE)
    known = session.get_modelmeta().custom_metadata_map
    assert [each["seed"] for each in json.loads(known["members"])] == ["0", "1"]


def test_where_the_folder_of_a_committee_is_refused(refusal, pictures, data):
    assert "c holds a committee" in refusal("train", "--data", data, *OPTIONS, "--out", "c")
    assert "2 networks as safetensors: expected one" in refusal("export", "c", "--safetensors", "w")
    Path("c/8-6-2", BEST).write_bytes(b"x" * 99)
    for argv in "evaluate c", "predict c x.png", "export c --onnx c.onnx":
        assert f"c/8-6-2/{BEST}" in refusal(*argv.split())
