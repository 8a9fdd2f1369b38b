"""Compiles the resident kernels of all steps of `gpu_check` at once, before any is timed."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

from gpu_measure import EVERY_VERSION, MEMBERS, SHAPES, CheckError, Result, preset_sizes
from mlpcore.backends.cuda import build as resident_build
from mlpcore.backends.cuda.backend import CudaBackend
from mlpcore.backends.cuda.plan import VERSIONS, Device, DoesNotFit, Plan, make_plan
from mlpcore.network.architecture import PRESETS


def wanted(limits: Device) -> dict[str, tuple[Plan, str]]:
    """Plans and versions of the kernels, as far as networks fit, each once, by a name."""
    asked = [
        (preset, preset_sizes(preset), 1, version)
        for preset in PRESETS
        for version in (VERSIONS if preset in EVERY_VERSION else VERSIONS[-1:])
    ]
    asked += [(f"{n} of net1", preset_sizes("net1"), n, VERSIONS[-1]) for n in MEMBERS]
    asked += [(", ".join(map(str, sizes)), sizes, 1, VERSIONS[-1]) for sizes in SHAPES]
    result = {}
    for name, sizes, networks, version in asked:
        try:
            result[f"{name}: {version}"] = make_plan(sizes, limits, networks), version
        except DoesNotFit:
            continue
    return result


def kernels(backend: CudaBackend) -> Result:
    """What ptxas says of each kernel; as many are compiled at a time as there are cores."""
    limits = backend.driver.limits
    jobs = wanted(limits)

    def compile_one(job: tuple[Plan, str]) -> tuple[bool, str]:
        try:
            _, report = resident_build.find(*job, limits.capability)
        except DoesNotFit as reason:
            return False, str(reason)
        return True, report or "there already"

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        reports = dict(zip(jobs, pool.map(compile_one, jobs.values())))
    result = {"kernels": {name: report for name, (_, report) in reports.items()}}
    if refused := [f"{name} ({report})" for name, (ok, report) in reports.items() if not ok]:
        raise CheckError(f"no kernel for {'; '.join(refused)}", result)
    return result
