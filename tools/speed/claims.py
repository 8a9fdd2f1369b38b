"""The paper's figures on speed (Results; Appendix, "Forward Propagation"), and ours beside them."""

from __future__ import annotations

from collections.abc import Sequence

from mlpcore.report.tables import short_time
from speed.results import BASE, Claim, Result, Row
from speed.routines import EPOCH

#: The least and the greatest share of an epoch that deformation takes.
SHARE = 0.05, 0.15


def _claim(
    what: str, paper: str, result: Result | None, text: str = "", ratio: float | None = None
) -> Claim:
    """A claim beside a result of ours in words; without a ratio we have not measured it."""
    if result is None or ratio is None:
        return Claim(what, paper, "not measured", None)
    by = f"{result.name}, {result.threads} thread{'s' * (result.threads > 1)}"
    return Claim(what, paper, f"{text} ({by})", ratio)


def _gain(what: str, result: Result | None, paper: int, limit: str = "") -> Claim:
    """How many times as fast as the standard processor."""
    ours = (result.ratio if result else None) or 0.0
    return _claim(what, f"{limit}{paper}x", result, f"{ours:.1f}x", ours / paper or None)


def _rate(what: str, result: Result | None, field: str, paper: int, unit: str) -> Claim:
    """Thousand millions a second."""
    ours = (getattr(result, field) if result else None) or 0.0
    text = f"{ours / 1e9:.1f} {unit}"
    return _claim(what, f"{paper} {unit}", result, text, ours / 1e9 / paper or None)


def _seconds(what: str, result: Result | None, paper: int) -> Claim:
    """The time that all images of an epoch take."""
    if result is None:
        return _claim(what, f"{paper} s", result)
    seconds = result.seconds * EPOCH
    return _claim(what, f"{paper} s", result, short_time(seconds), paper / seconds)


def _share(deformation: Row | None, epoch: Result | None) -> Claim:
    """By the backend that is fastest at an epoch, beside the middle of the paper's range."""
    what, paper = "Deformation's share of an epoch", "{:.0%} to {:.0%}".format(*SHARE)
    part = deformation.find(epoch.name, epoch.threads) if deformation and epoch else None
    if epoch is None or part is None:
        return _claim(what, paper, None)
    share = part.seconds * EPOCH / epoch.seconds
    return _claim(what, paper, epoch, f"{share:.1%}", share / (sum(SHARE) / 2))


def compare(rows: Sequence[Row]) -> tuple[Claim, ...]:
    """All claims, for the results of an architecture."""
    row = {row.key: row for row in rows}.get
    best = {row.key: row.best() for row in rows}.get
    single = {row.key: row.find(BASE, 1) for row in rows}.get
    forward = row("forward")
    images = f"for {EPOCH:,} images"
    return (
        _gain("Forward, over a standard processor", best("forward"), 40),
        _gain("Backward, over a standard processor", best("backward"), 40),
        _gain("Deformation, over a standard processor", best("deformation"), 10),
        _gain(
            "SSE in single precision, forward", forward and forward.find("sse2", 1), 4, "at most "
        ),
        _rate("Bandwidth of forward", best("forward"), "bandwidth", 115, "GB/s"),
        _rate("Weight updates in training", best("step"), "updates", 5, "G/s"),
        _seconds(f"Deformation {images}, standard processor", single("deformation"), 93),
        _seconds(f"Deformation {images}, fastest", best("deformation"), 9),
        _seconds(f"Displacement field {images}, standard processor", single("field"), 87),
        _seconds(f"Displacement field {images}, fastest", best("field"), 3),
        _share(row("deformation"), best("epoch")),
    )
