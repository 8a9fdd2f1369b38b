"""Evidence of runs: complete, never replaced by another run's, and computed again to the bit."""

import json
import os
import re
import shlex
import shutil
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlpcore import commands
from mlpcore.errors import InputError
from mlpcore.store.run_folder import BEST, CONFIG, METRICS
from small_runs import write_idx
from table1 import evidence
from table1.command import main
from table1_runs import contents, refusal, run_state, stop_before

COLLECT = ["--evidence", "kept", "--out", "out"]


def forge_weights(folder):
    """Makes evidence say that the best network was another."""
    content = json.loads((folder / "result.json").read_text())
    content["best"]["sha256"] = "0" * 64
    (folder / "result.json").write_text(json.dumps(content))


def test_evidence_holds_all_but_weights_and_paths(half_done):
    path, kept = Path("out/net1-seed0", CONFIG), Path("kept")
    ours = json.loads(path.read_text())
    assert main(COLLECT) == 0
    assert sorted(os.listdir(kept)) == ["README.md", "net1-seed0", "summary.json"]
    files = [CONFIG, METRICS, "misclassified.png", "result.json"]
    assert sorted(os.listdir(kept / "net1-seed0")) == files
    ours["data"]["source"] = "a folder of IDX files"
    assert json.loads((kept / "net1-seed0" / CONFIG).read_text()) == ours
    for path, content in contents(kept).items():
        assert path.suffix == ".png" or not re.search(rb"(^|[\s\"'(\[])/\w", content), path
    record, result = evidence.read_evidence(kept / "net1-seed0")
    assert list(record.history) == run_state("out/net1-seed0").history
    assert record.test.errors == record.best_metrics.test_errors
    assert result.best.machine != "" and len(result.best.sha256) == 64


@pytest.mark.parametrize("change", ["weights", "settings", "epochs", "damaged", "summary"])
def test_evidence_is_never_replaced_by_another_run(kept, data, capsys, change):
    out = "out"
    if change == "weights":
        forge_weights(kept / "net1-seed0")
    elif change in ("damaged", "summary"):
        (kept / ("summary.json" if change == "summary" else f"net1-seed0/{METRICS}")).write_text("")
    else:  # Fewer epochs of the same run, or others.
        out = "other"
        epochs = "2" if change == "settings" else "3"
        argv = ["--nets", "1", "--epochs", epochs, "--data", data, "--out", out]
        with pytest.MonkeyPatch.context() as patch:
            if change == "epochs":
                stop_before(patch, 2, signal.SIGTERM)
            main(argv)
    before = contents(kept)
    refusal(capsys, "--evidence", "kept", "--out", out, "--unfinished")
    assert contents(kept) == before


def test_a_collection_that_is_killed_can_be_done_again(half_done, monkeypatch):
    write = evidence.atomic_write
    for last in (METRICS, "result.json", "summary.json"):

        def killed(path, *parts, last=last):
            write(path, *parts)
            if path.name == last:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(evidence, "atomic_write", killed)
            assert main(COLLECT) == 128 + signal.SIGINT
        assert Path("kept/net1-seed0", CONFIG).exists() == (last == "summary.json")
    assert main(COLLECT) == 0
    assert evidence.read_collection(Path("kept"))[0][0].finished


def test_runs_that_cannot_be_kept_are_noted_and_nothing_is_lost(kept, capsys):
    """Data are gone. Committees and missing runs of before stay."""
    counts = {"n": 10, "errors": 2, "second_right": 1}
    committee = {"members": ["net3-seed7", "net4-seed7"], "counts": counts}
    missing = ["net1-seed0 (2 of 3 epochs)", "net3 (copy) (120 of 2,000 epochs)", "net4-seed7"]
    summary = {"committees": [committee], "missing": missing}
    (kept / "summary.json").write_text(json.dumps(summary))
    shutil.copytree("out/net1-seed0", "out/net1-copy")
    config = Path("out/net1-copy", CONFIG)
    settings = json.loads(config.read_text())
    settings["data"] |= {"source": "/gone", "sha256": "9"}
    config.write_text(json.dumps(settings))
    assert main(COLLECT) == 0
    assert "note: net1-copy is left out: it could not be tested" in capsys.readouterr().out
    summary = json.loads((kept / "summary.json").read_text())
    assert summary["committees"] == [committee]
    assert summary["missing"] == ["net1-copy (3 of 3 epochs)", *missing[1:]]


def test_a_larger_committee_replaces_its_parts(data, no_figures):
    argv = ["--nets", "1", "--epochs", "2", "--threads", "1", "--data", data, "--out", "out"]
    for seeds, n in (("0,1", 2), ("2", 3)):
        assert main([*argv, "--seeds", seeds]) == main(COLLECT) == 0
        (committee,) = evidence.read_collection(Path("kept"))[1].committees
        assert len(committee.members) == n


@pytest.mark.parametrize("name", ["result.json", METRICS, CONFIG, "../summary.json"])
@given(place=st.floats(0, 1), junk=st.binary(max_size=3), cut=st.integers(0, 9))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_evidence_is_refused_or_reads(kept, name, place, junk, cut):
    path = kept / "net1-seed0" / name
    content = path.read_bytes()
    at = int(place * len(content))
    try:
        path.write_bytes(content[:at] + junk + content[at + cut :])
        evidence.read_collection(kept)
    except InputError as error:
        assert "kept/" in str(error) and "\n" not in str(error)
    finally:
        path.write_bytes(content)


def test_the_documentation_gets_its_table(kept, capsys):
    text, page = (
        "# Ours\n<!-- table1 begin -->\n{}<!-- table1 end -->\nend\n",
        Path("docs/table-1.md"),
    )
    page.parent.mkdir()
    page.write_text(text.format("old\n"))
    Path("other.md").write_text("# Other\n")
    shutil.copytree(kept, evidence.FOLDER)
    refusal(capsys, "--readme", "other.md")
    assert main(["--readme"]) == 0
    table = re.escape("| net1-seed0 ")
    assert re.search(text.format(r"(\|.*\n)+" + table + r"(.*\n)+"), page.read_text())


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_run_is_computed_again_to_the_bit(kept, capsys, data, monkeypatch, threads):
    argv = ["--rerun", "kept/net1-seed0", "--data", data, "--threads", threads]
    with monkeypatch.context() as patch:
        stop_before(patch, 1, signal.SIGTERM)
        assert main(argv) == 128 + signal.SIGTERM
    command = capsys.readouterr().out.splitlines()[-1]
    assert main(shlex.split(command)[2:]) == 0
    assert "the same as kept/net1-seed0, to the bit" in capsys.readouterr().out
    forge_weights(kept / "net1-seed0")
    assert main(argv) == 1
    out = capsys.readouterr().out
    assert "computed by revision" in out and f"{BEST}: SHA-256" in out and "to the bit" not in out


def test_an_unfinished_run_is_computed_again_up_to_its_end(kept, half_done, data, capsys):
    with pytest.MonkeyPatch.context() as patch:
        stop_before(patch, 2, signal.SIGTERM)
        assert main([*half_done, "--nets", "2"]) == 128 + signal.SIGTERM
    assert main(COLLECT) == 0
    assert "note: net2-seed0 is left out: 2 of 3 epochs" in capsys.readouterr().out
    assert "Started, but not in the table: net2-seed0" in (kept / "README.md").read_text()
    assert main([*COLLECT, "--unfinished"]) == 0
    assert "| net2-seed0 (unfinished) |" in (kept / "README.md").read_text()
    argv = ["--rerun", "kept/net2-seed0", "--data", data, "--threads", "1"]
    for _ in range(2):
        assert main(argv) == 0
        assert run_state("runs/rerun/net2-seed0").epoch == 2
    assert "the same as kept/net2-seed0 in its 2 epochs, to the bit" in capsys.readouterr().out
    assert main(half_done) == 0
    refusal(capsys, *argv, "--out", "out")  # which has more epochs
    assert main(COLLECT) == 0
    assert evidence.read_evidence(kept / "net2-seed0")[0].finished


@pytest.mark.parametrize("options", [["--hold-out", "40"], ["--dataset", "digits"]])
def test_other_data_are_evidence_too(data, no_figures, capsys, options):
    data = ["--data", data] if "--dataset" not in options else []
    argv = [*data, *options, "--recipe", "paper", "--arch", "8", "--epochs", "1", "--threads", "1"]
    assert commands.main(["train", *argv, "--out", "runs/own/run"]) == 0
    assert main(["--evidence", "own", "--out", "runs/own"]) == 0
    held_out = "best held-out error" in Path("own", "README.md").read_text()
    assert held_out == ("--hold-out" in options)
    assert main(["--rerun", "own/run", *data]) == 0
    assert "the same as own/run, to the bit" in capsys.readouterr().out


def test_a_rerun_of_other_data_or_settings_is_refused(kept, capsys, data, tmp_path):
    other = str(write_idx(tmp_path / "other", n_train=231))
    argv = ["--rerun", "kept/net1-seed0"]
    refusal(capsys, *argv)
    refusal(capsys, *argv, "--data", other)
    assert sorted(os.listdir()) == ["kept", "out"]
    settings = ["--nets", "1", "--epochs", "2", "--data", data, "--out", "runs/rerun"]
    assert main(settings) == 0
    refusal(capsys, *argv, "--data", data)
