"""Files that say which source computed them are not wrong about what is compiled."""

import subprocess
from pathlib import Path

import pytest

from mlpcore import provenance
from mlpcore.sources import STAMP, is_stale, sources_sha256

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def tree(tmp_path):
    """A source of each kind, and what is none, just built."""
    for name in (
        "setup.py",
        "cpu_simd/a.c",
        "cpu_simd/a.h",
        "cuda/a.cu",
        "mlpcore/b/c.pyx",
        "x.py",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / STAMP).parent.mkdir()
    (tmp_path / STAMP).write_text(sources_sha256(tmp_path) + "\n")
    return tmp_path


def test_what_is_built_is_not_stale(tree):
    assert not is_stale(tree)
    (tree / "x.py").write_text("is not compiled")
    assert not is_stale(tree)


@pytest.mark.parametrize("name", ["setup.py", "cpu_simd/a.h", "cuda/a.cu", "mlpcore/b/c.pyx"])
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


def test_the_revision_says_so(monkeypatch, tree):
    git = ["git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=a@b"]
    try:
        subprocess.run([*git, "init", "-q"], check=True)
    except OSError:
        pytest.skip("no git")
    (tree / ".gitignore").write_text("build/\n")
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "all"], check=True)
    monkeypatch.setattr(provenance, "ROOT", tree)
    revision = provenance.revision.__wrapped__
    commit = revision()
    assert len(commit) == 40
    (tree / "cpu_simd" / "a.c").write_text("other")
    assert revision() == f"{commit}+changes+stale"
    subprocess.run([*git, "commit", "-qam", "other"], check=True)
    assert len(revision()) == 46 and revision().endswith("+stale") and revision()[:40] != commit


def test_these_tests_are_of_these_sources():
    assert not is_stale(ROOT), "sources have changed since the build: expected `make install` first"
