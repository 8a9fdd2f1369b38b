"""The paper's figures on speed (Results; Appendix, "Forward Propagation"), and ours beside them."""

from __future__ import annotations

from collections.abc import Sequence

from speed.results import BASE, Claim, Result, Row
from speed.routines import EPOCH
from speed.units import short_time

#: The least and the greatest share of an epoch that deformation takes.
SHARE = 0.05, 0.15


def _claim(what: str, paper: str, result: Result | None, ours: str, ratio: float | None) -> Claim:
    """Without a result or a ratio it was not measured."""
    if result is None or not ratio:
        return Claim(what, paper, "not measured", None)
    by = f"{result.name}, {result.threads} thread{'s' * (result.threads > 1)}"
    return Claim(what, paper, f"{ours} ({by})", ratio)


def _gain(what: str, result: Result | None, paper: int, limit: str = "") -> Claim:
    """How many times as fast as the standard processor."""
    ours = (result and result.ratio) or 0.0
    return _claim(what, f"{limit}{paper}x", result, f"{ours:.1f}x", ours / paper)


def _rate(what: str, result: Result | None, ours: float | None, paper: int, unit: str) -> Claim:
    """Thousand millions a second."""
    ours = (ours or 0.0) / 1e9
    return _claim(what, f"{paper} {unit}", result, f"{ours:.1f} {unit}", ours / paper)


def _seconds(what: str, result: Result | None, paper: int) -> Claim:
    """The time that all images of an epoch take."""
    ours = result.seconds * EPOCH if result else float("inf")
    return _claim(what, f"{paper} s", result, short_time(ours) if result else "", paper / ours)


def _share(deformation: Row | None, epoch: Result | None) -> Claim:
    """By the backend that is fastest at an epoch, beside the middle of the paper's range."""
    part = deformation.find(epoch.name, epoch.threads) if deformation and epoch else None
    share = part.seconds * EPOCH / epoch.seconds if part and epoch else 0.0
    paper, middle = "{:.0%} to {:.0%}".format(*SHARE), sum(SHARE) / 2
    what = "Deformation's share of an epoch"
    return _claim(what, paper, epoch, f"{share:.1%}", share / middle)


def compare(rows: Sequence[Row]) -> tuple[Claim, ...]:
    """All claims, for the results of an architecture."""
    row = {row.key: row for row in rows}.get
    best = {row.key: row.best() for row in rows}.get
    single = {row.key: row.find(BASE, 1) for row in rows}.get
    sse2 = {row.key: row.find("sse2", 1) for row in rows}.get
    bandwidth = {row.key: r.bandwidth for row in rows if (r := row.best())}.get
    updates = {row.key: r.updates for row in rows if (r := row.best())}.get
    images = f"for {EPOCH:,} images"
    return (
        _gain("Forward, over a standard processor", best("forward"), 40),
        _gain("Backward, over a standard processor", best("backward"), 40),
        _gain("Deformation, over a standard processor", best("deformation"), 10),
        _gain("SSE in single precision, forward", sse2("forward"), 4, "at most "),
        _rate("Bandwidth of forward", best("forward"), bandwidth("forward"), 115, "GB/s"),
        _rate("Weight updates in training", best("step"), updates("step"), 5, "G/s"),
        _seconds(f"Deformation {images}, standard processor", single("deformation"), 93),
        _seconds(f"Deformation {images}, fastest", best("deformation"), 9),
        _seconds(f"Displacement field {images}, standard processor", single("field"), 87),
        _seconds(f"Displacement field {images}, fastest", best("field"), 3),
        _share(row("deformation"), best("epoch")),
    )
