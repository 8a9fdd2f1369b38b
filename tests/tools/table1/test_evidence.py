"""Evidence of runs: whole, of no other run, and nothing in it is lost by more."""

import contextlib
import dataclasses
import hashlib
import json
import os
import pkgutil
import re
import shutil
import signal
from pathlib import Path

import pytest

import mlpcore
from mlpcore.store.run_folder import BEST, CONFIG, METRICS, Run, history_lines
from mlpcore.training.trainer import Trainer
from small_runs import load_tool
from table1 import collect, evidence, readme
from table1.command import main
from table1.rerun import other_revisions
from table1_runs import contents, refusal, run_state


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
        as_it_was(folder)
    before = contents(folder)

    def gone(*args, **kwargs):
        raise mlpcore.InputError("the data are gone")

    monkeypatch.setattr("table1.measure.find_data", gone)
    assert main(["--evidence", "kept", "--out", "out"]) == 0
    assert "without second guesses: the data are gone" in capsys.readouterr().out
    assert (contents(folder) == before) != gone_on
    after = json.loads((folder / "result.json").read_text())
    assert (after["epochs"], after["test"]) == (3, result["test"])
    assert committees(kept) == written


@pytest.mark.parametrize("module", ["collect", "measure"])
def test_a_network_of_another_epoch_does_not_count(half_done, capsys, monkeypatch, module):
    """As while another process saves: the metrics are there before the network, or after it."""
    place = f"table1.{module}.read_network"
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

    monkeypatch.setattr("mlpcore.report.figures.misclassified", fail)
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


def test_the_committed_evidence_can_be_read():
    results = Path(__file__).parents[3] / "benchmarks" / "results"
    for folder in (results / "table1", results / "hold-out"):
        for each in evidence.read_evidence(folder).runs:
            other_revisions(each)


def test_evidence_of_another_run_is_not_overwritten(kept, data, capsys):
    assert main(["--nets", "1", "--epochs", "2", "--data", data, "--out", "shorter"]) == 0
    before = contents(kept)
    text = refusal(capsys, "--evidence", str(kept), "--out", "shorter")
    assert "net1-seed0 has other settings or data than the run net1-seed0" in text
    assert contents(kept) == before
