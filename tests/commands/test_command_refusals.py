"""Bad arguments, data and files: each command refuses them in one line and writes nothing."""

import os
import shutil
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from mlpcore import Network, Trainer, dataset
from mlpcore.__main__ import main
from mlpcore.commands import committee, train
from mlpcore.store.committee import DOCUMENT, CommitteeFolder
from mlpcore.store.run_folder import BEST, CONFIG, METRICS
from mlpcore.web import html
from small_runs import write_idx, write_weights

#: A committee of three in the folder ``c``, which is there.
C = (
    "committee --data letters --arch 8,6 7,5 12 --epochs 3 --recipe paper --lr 0.01 --threads 1 "
    "--backend scalar --out c"
)

REFUSED = [
    ("trian", "--help or --version; did you mean train?"),
    ("\x1b]0;title\x07", r"'\x1b]0;title\x07': expected"),
    ("trian --epochs 9", "'trian' before '--epochs': expected train, committee"),
    # train
    ("train --lr fast", "'fast', expected a number"),
    ("train --resume none", "none does not exist: expected the folder of a run"),
    ("train --arch 3\n4", "3\\n4"),
    (f"train --arch {'1,' * 100}1", "101 hidden layers: expected at most 100"),
    ("train --seed 1_0", "'1_0', expected a whole number"),
    ("train --out=--", "argument --out: '--', expected a value"),
    ("train --target 1.5", "--target 1.5 with the loss cross-entropy"),
    ("train --minutes 0", "--minutes: 0, expected more than 0"),
    ("train --no-deform --sigma 5", "--no-deform together with --sigma"),
    ("train --backend mmx", "'mmx': expected auto, cpu, reference, scalar"),
    ("train --epoch 9", "unrecognized arguments: --epoch 9; did you mean --epochs?"),
    ("train --lr 0", "learning rate 0.0: expected a number above 0"),
    ("train --out /proc/run", "/proc/run"),
    ("train --out c", "c holds a committee"),
    ("train --data=", "argument --data: '', expected a value\n"),
    ("train --dataset mnist", "MNIST was not found"),
    ("train --dataset digits --arch 999999,999999", "GiB"),
    ("train --resume none --hold-out 5", "--hold-out together with --resume: expected only --ep"),
    ("train --resume run --epochs 2", "epochs 2: expected at least 3"),
    ("train --resume run --data letters2", "are not those that the run in run began with"),
    # committee
    (f"{C} --sigma 5", "c holds a committee with sigma 6.0 for the member 8-6: expected"),
    (f"{C} --arch 8,6 12", "members 8-6, 7-5, 12: expected the same command"),
    (f"{C} --out .", ": expected a new or an empty folder"),
    ("committee --arch net1 1000,500 --out new", "--arch net1 net1: expected each once"),
    ("committee --members 0 --out new", "members 0: expected a whole number from 1 to 1,000"),
    ("committee --workers 0 --out new", "--workers 0: expected a whole number from 1 to 1,000"),
    (f"{C} --scheduler nowhere", "no Dask scheduler at nowhere: "),
    (f"{C} --scheduler tcp://127.0.0.1:65536", "port 65536: expected a whole number from 1 to"),
    # info and evaluate
    ("evaluate c", "c/8-6"),
    ("evaluate net --json pipe", "cannot write pipe: expected a file or a new name"),
    ("evaluate net --figures link", "cannot write link, a link"),
    ("evaluate run --strength 1", "--strength without --copies: expected both or none"),
    ("evaluate run --dataset digits", "of 8 x 8 and 10 classes: expected images of 7 x 5 and 3"),
    ("evaluate run --data named.npz", "and 3 classes (none of class 2): expected"),
    ("evaluate net letters", "; mlpcore evaluate takes data as --data letters"),
    ("info .", "expected a run of at least one epoch, such as half\n"),
    ("evaluate sixteen --data letters", "from 0 to 255: expected 0 to 16, as in training"),
    ("evaluate half --figures f", METRICS),
    # predict and read
    ("predict net a.png --show --json", "--show together with --json"),
    ("predict none.png", "error: none.png does not exist: expected a picture"),  # and no note
    ("predict pretrained", "error: pretrained is a network: expected pictures, too"),
    ("predict oblong.safetensors file", "a network for images of 29 x 31"),
    ("predict net a.png --save-normalised file", "file exists: expected a new folder"),
    ("predict pretrained empty", "the folder empty holds no pictures"),
    ("read a.png --columns 0", "columns 0: expected"),
    ("read file --csv out.txt", "--csv out.txt: expected a name that ends in .csv"),
    ("read file b.png --show found.png", "--show with 2 pictures: expected a folder"),
    ("read file --new-fields old.json", "old.json exists: expected a new file"),
    # preview, draw and export
    ("preview --out a.jpg", "--out a.jpg: expected a name that ends in .png"),
    ("preview --dataset digits --rows 0", "rows 0: expected a whole number from 1 to 100"),
    ("preview --dataset digits --columns 1", "columns 1: expected a whole number from 2"),
    ("preview --dataset digits --epoch 0", "epoch 0: expected"),
    ("draw ", "draw: '', expected a value"),
    ("draw oblong.safetensors", "expected one for 29 x 29"),
    ("export net", "nothing to write"),
    ("export run other --safetensors w.safetensors", "2 networks as safetensors: expected one"),
    ("export net --safetensors link.safetensors", "is the network itself"),
    (f"export net --safetensors run/{BEST.upper()}", "belongs to a run"),
    ("export net --onnx a.onnx --precision float16", "or --html"),
    ("export net --html a.html", "float16 halves it"),
]


@pytest.fixture(scope="module")
def committee_begun(made, tmp_path_factory):
    """The folder of a committee of which nothing is trained."""
    folder = tmp_path_factory.mktemp("begun")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(committee, "train_here", lambda *arguments: 1)
        shutil.copytree(made / "letters", "letters")
        assert main(C.split()) == 1
    return folder / "c"


@pytest.fixture
def everything(made_here, committee_begun, monkeypatch):
    """The files that the calls above name, in the working folder."""
    monkeypatch.setattr(html, "MAX_BYTES", 10_000)
    shutil.copytree(committee_begun, "c")
    write_idx(Path("letters2"), n_train=231)
    np.savez("named.npz", X=[np.eye(7, 5)] * 9, y=[*"01x" * 3])
    Path("file").touch()
    Path("old.json").touch()
    Path("empty").mkdir()
    os.mkfifo("pipe")
    os.symlink(".", "link")
    write_weights("net", Network((841, 10), 1), (29, 29), (28, 28))
    Path("link.safetensors").hardlink_to("net")
    write_weights("oblong.safetensors", Network((899, 10), 1), (29, 31), (29, 30))
    write_weights("sixteen", Network((35, 3), 1), value_range=(0, 16))
    shutil.copytree("run", "half")
    Path("half", METRICS).unlink()


@pytest.mark.parametrize(("argv", "words"), REFUSED, ids=lambda text: text[:40])
def test_a_command_refuses_in_one_line(everything, refusal, monkeypatch, argv, words):
    """Before data are read, unless these are what is wrong."""
    if "--data" not in argv:
        monkeypatch.setattr(dataset, "load", None)
    assert words in refusal(*argv.split(" "))


def test_a_folder_is_refused_before_anything_is_computed(made_here, refusal, monkeypatch):
    denied = mock.Mock(side_effect=PermissionError(13, "Permission denied"))
    monkeypatch.setattr(Trainer, "run", None)
    monkeypatch.setattr("mlpcore.files.tempfile.mkdtemp", denied)
    text = refusal("train", "--resume", "run", "--epochs", "4")
    assert text == "error: cannot write to run: Permission denied\n"


def test_a_package_that_is_missing_is_named(made_here, refusal, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("mlpcore.cluster")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("distributed", "onnx"):
        monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    for options in ("--workers 2", "--scheduler tcp://127.0.0.1:1"):
        assert "pip install 'mlpcore[cluster]'" in refusal(*f"{C} {options}".split())
    assert "pip install 'mlpcore[export]'" in refusal("export", "run", "--onnx", "a.onnx")


def test_of_two_committees_begun_in_a_folder_one_is_refused(made_here, call, refusal, monkeypatch):
    """Whichever writes its document first; the other neither replaces it nor waits."""
    load_data, inner = train.load_data, [C.split()]

    def begin_another(options):
        while inner:
            call(*inner.pop())
        return load_data(options)

    monkeypatch.setattr(train, "load_data", begin_another)
    assert main([*C.split(), "--sigma", "5"]) == 2
    with CommitteeFolder.open("c").locked():
        assert "c is in use by another process" in refusal(*C.split())
    assert "member 1 of 3: 8-6, seed 0, is trained" in call(*C.split())


def test_a_link_among_the_members_is_not_written_through(made_here, call, refusal):
    call(*C.split())
    shutil.rmtree("c/8-6")
    for target in ("../run", "../nowhere"):
        Path("c/8-6").symlink_to(target)
        assert "cannot write c/8-6, a link" in refusal(*C.split())
        Path("c/8-6").unlink()


DAMAGES = [
    (DOCUMENT, "}", "", f"c/{DOCUMENT} is damaged"),
    (DOCUMENT, '"7-5"', '"12"', f"c/{DOCUMENT} is damaged: expected members of differ"),
    (f"7-5/{CONFIG}", '"seed": 1', '"seed": 9', "c/7-5 is a run with different settings"),
    (f"7-5/{BEST}", "7,5", "5,7", f"c/7-5/{BEST}"),
]


def test_a_damaged_member_is_named(made_here, call, refusal):
    call(*C.split())
    for name, old, new, words in DAMAGES:
        path = Path("c", name)
        content = path.read_bytes()
        path.write_bytes(content.replace(old.encode(), new.encode()))
        assert words in refusal(*C.split())
        path.write_bytes(content)
    for argv in "evaluate c", "predict c x.png", "export c --onnx c.onnx":
        Path("c/7-5", BEST).write_bytes(b"x" * 99)
        assert f"c/7-5/{BEST}" in refusal(*argv.split())
