"""The paper's figures on speed, and ours beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlpcore.report.tables import short_time
from speed.results import BASE, Result, Row
from speed.routines import EPOCH


@dataclass(frozen=True)
class Claim:
    """A figure of the paper and ours.

    `ratio` is how many times better ours is: faster, more, or for the gain of SSE and the
    share of an epoch simply ours over the paper's. None where ours was not measured.
    """

    what: str
    paper: str
    ours: str
    ratio: float | None


#: The paper's figures (Results, Appendix, "Forward Propagation").
PROPAGATION_GAIN = 40
DEFORMATION_GAIN = 10
SSE_GAIN = 4
FORWARD_BANDWIDTH = 115e9
UPDATES = 5e9
DEFORMATION_SECONDS = {"standard": 93, "fast": 9}
FIELD_SECONDS = {"standard": 87, "fast": 3}
SHARE = (0.05, 0.15)

NOT_MEASURED = "not measured"


def _name(result: Result) -> str:
    threads = result.line.threads
    return f"{result.line.name}, {threads} thread{'s' if threads > 1 else ''}"


def _gain(row: Row | None, what: str, paper: float) -> Claim:
    """Our fastest over the standard processor."""
    best = row.best() if row else None
    if best is None or best.ratio is None:
        return Claim(what, f"{paper}x", NOT_MEASURED, None)
    return Claim(what, f"{paper}x", f"{best.ratio:.1f}x ({_name(best)})", best.ratio / paper)


def _epoch_seconds(row: Row | None, what: str, paper: Mapping[str, float]) -> list[Claim]:
    """Seconds for all images of an epoch, of the standard processor and of our fastest."""
    claims = []
    for kind, label in (("standard", "standard processor"), ("fast", "fastest")):
        result = None
        if row:
            result = row.find(BASE, 1) if kind == "standard" else row.best()
        name, figure = f"{what} for {EPOCH:,} images, {label}", f"{paper[kind]} s"
        if result is None:
            claims.append(Claim(name, figure, NOT_MEASURED, None))
            continue
        whole = result.line.seconds * EPOCH
        ours = f"{short_time(whole)} ({_name(result)})"
        claims.append(Claim(name, figure, ours, paper[kind] / whole))
    return claims


def _sse(row: Row | None) -> Claim:
    what, paper = "SSE in single precision, forward, one thread", f"at most {SSE_GAIN}x"
    result = row.find("sse2", 1) if row else None
    if result is None or result.ratio is None:
        return Claim(what, paper, NOT_MEASURED, None)
    return Claim(what, paper, f"{result.ratio:.1f}x", result.ratio / SSE_GAIN)


def _rate(row: Row | None, what: str, paper: float, attribute: str, unit: str) -> Claim:
    best = row.best() if row else None
    ours = getattr(best, attribute) if best else None
    figure = f"{paper / 1e9:g} {unit}"
    if best is None or ours is None:
        return Claim(what, figure, NOT_MEASURED, None)
    return Claim(what, figure, f"{ours / 1e9:.1f} {unit} ({_name(best)})", ours / paper)


def _share(deformation: Row | None, epoch: Row | None) -> Claim:
    """Of the backend that is fastest at an epoch."""
    what = "Deformation's share of an epoch"
    paper = f"{SHARE[0]:.0%} to {SHARE[1]:.0%}"
    whole = epoch.best() if epoch else None
    part = whole and deformation and deformation.find(whole.line.name, whole.line.threads)
    if not (whole and part):
        return Claim(what, paper, NOT_MEASURED, None)
    share = part.line.seconds * EPOCH / whole.line.seconds
    # Beside the middle of the paper's range.
    return Claim(what, paper, f"{share:.1%} ({_name(whole)})", share / (sum(SHARE) / 2))


def compare(rows: Sequence[Row]) -> list[Claim]:
    """All claims, for the results of an architecture."""
    row = {r.key: r for r in rows}.get
    return [
        _gain(row("forward"), "Forward, over a standard processor", PROPAGATION_GAIN),
        _gain(row("backward"), "Backward, over a standard processor", PROPAGATION_GAIN),
        _gain(row("deformation"), "Deformation, over a standard processor", DEFORMATION_GAIN),
        _sse(row("forward")),
        _rate(row("forward"), "Bandwidth of forward", FORWARD_BANDWIDTH, "bandwidth", "GB/s"),
        _rate(row("step"), "Weight updates in training", UPDATES, "updates", "G/s"),
        *_epoch_seconds(row("deformation"), "Deformation", DEFORMATION_SECONDS),
        *_epoch_seconds(row("field"), "Displacement field", FIELD_SECONDS),
        _share(row("deformation"), row("epoch")),
    ]
