"""The cores that are ours where others compute beside us."""

import multiprocessing
import os

import pytest
from joblib import Parallel, delayed

from mlpcore import cpu
from mlpcore.cpu import available_cores, cores_beside_others


@pytest.mark.parametrize("value, cores", [("3", 3), ("4,2", 4), (" 99 ", 8), ("0", 8), ("²", 8)])
def test_the_environment_says_how_many(monkeypatch, value, cores):
    monkeypatch.setattr("mlpcore.cpu.available_cores", lambda: 8)
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert cores_beside_others() == cores


@pytest.mark.parametrize(
    ("membership", "files"),
    [
        ("0::/user/session/run",
         {"user/cpu.max": "250000 100000", "user/session/run/cpu.max": "max 100000",
          "user/session/memory.max": "5000", "memory.max": "max"}),
        ("0::/outside/of/this", {"cpu.max": "250000 100000", "memory.max": "5000"}),
        ("4:memory:/a/b\n3:cpuacct,cpu:/a\n2:name=systemd:/x",
         {"cpu/a/cpu.cfs_quota_us": "250000", "cpu/a/cpu.cfs_period_us": "100000",
          "cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000",
          "memory/a/memory.limit_in_bytes": "5000", "memory/memory.limit_in_bytes": str(2**63)}),
    ],
    ids=["version 2", "a container", "version 1"],
)  # fmt: skip
def test_control_groups_around_this_process(tmp_path, monkeypatch, membership, files):
    monkeypatch.setattr(cpu, "MEMBERSHIP", tmp_path / "cgroup")
    monkeypatch.setattr(cpu, "GROUPS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(64))
    total = cpu.total_memory.__wrapped__
    assert cpu.available_cores() == 64 and total() > 5000  # where there are no such groups
    (tmp_path / "cgroup").write_text(f"{membership}\n")
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{content}\n")
    assert (cpu.available_cores(), total()) == (3, 5000)


def test_other_processes_and_threads_take_their_share(monkeypatch):
    """A process of joblib its part, any other child process and a thread of joblib one core."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    whole = cores_beside_others()
    assert whole == available_cores() <= len(os.sched_getaffinity(0))
    for options, cores in (
        ({"n_jobs": 2}, max(1, whole // 2)),
        ({"n_jobs": 2, "backend": "threading"}, 1),
        ({"n_jobs": 1, "backend": "threading"}, whole),
    ):
        assert Parallel(**options)(delayed(cores_beside_others)() for _ in range(4)) == [cores] * 4
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(cores_beside_others) == 1
