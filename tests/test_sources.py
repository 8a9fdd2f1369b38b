"""Files that say which source computed them are not wrong about what is compiled."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import mlpcore
from mlpcore import provenance
from mlpcore.sources import STAMP, is_stale, sources_sha256

ROOT = Path(__file__).resolve().parents[1]


SOURCES = ["setup.py", "cpu_simd/a.c", "cpu_simd/a.h", "cuda/a.cu", "cuda/a.cuh"]
SOURCES += ["cuda/compile_fatbin.py", "mlpcore/c.pyx", "mlpcore/b/c.pyx", "mlpcore/b/c.pxd"]


@pytest.fixture
def tree(tmp_path):
    """A source of each kind, and what is none, just built."""
    for name in (*SOURCES, "x.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / STAMP).parent.mkdir()
    (tmp_path / STAMP).write_text(sources_sha256(tmp_path) + "\n")
    return tmp_path


def test_what_is_built_is_not_stale(tree):
    assert not is_stale(tree)
    (tree / "x.py").write_text("is not compiled")
    (tree / "cpu_simd" / ".#a.c").symlink_to("an editor's lock")
    assert not is_stale(tree)


@pytest.mark.parametrize("name", SOURCES)
def test_a_changed_source_is_noticed(tree, name):
    (tree / name).write_text("other")
    assert is_stale(tree)


def test_sources_that_come_go_and_change_places_are_noticed(tree):
    (tree / "cpu_simd" / "b.h").touch()
    assert is_stale(tree)
    (tree / "cpu_simd" / "b.h").unlink()
    assert not is_stale(tree)
    (tree / "cpu_simd" / "a.h").rename(tree / "cpu_simd" / "c.h")
    assert is_stale(tree)


def test_a_build_that_says_nothing_is_taken_as_it_is(tree):
    (tree / STAMP).unlink()
    assert not is_stale(tree)


def test_a_damaged_stamp_is_that_of_other_sources(tree):
    (tree / STAMP).write_bytes(b"\xff")
    assert is_stale(tree)


def test_the_revision_says_so(monkeypatch, tree):
    if not shutil.which("git"):
        pytest.skip("no git")
    settings = ("user.name=a", "user.email=a@b", "commit.gpgsign=false")
    options = [word for each in settings for word in ("-c", each)]
    # A hook's environment may point to another repository.
    env = {name: value for name, value in os.environ.items() if name[:4] != "GIT_"}

    def git(*words):
        subprocess.run(["git", "-C", str(tree), *options, *words], check=True, env=env)

    git("init", "-q")
    (tree / ".gitignore").write_text("build/\n")
    git("add", ".")
    git("commit", "-qm", "all")
    monkeypatch.setattr(provenance, "ROOT", tree)
    revision = provenance.revision.__wrapped__
    commit = revision()
    assert len(commit) == 40
    (tree / "cpu_simd" / "a.c").write_text("other")
    assert revision() == f"{commit}+changes+stale"
    git("commit", "-qam", "other")
    assert len(revision()) == 46 and revision().endswith("+stale") and revision()[:40] != commit


def test_these_tests_are_of_these_sources():
    if Path(mlpcore.__file__).parents[1] != ROOT:
        pytest.skip("not built in place")
    assert (ROOT / STAMP).exists()
    assert not is_stale(ROOT), "sources have changed since the build: expected `make install` first"
