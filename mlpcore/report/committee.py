"""The gain of a committee: its errors and those of its members, as text and as figures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from mlpcore.data.dataset import Dataset, test_images_text
from mlpcore.errors import printable_lines, shown
from mlpcore.evaluation.committee import compare, shared_errors
from mlpcore.evaluation.evaluation import Evaluation
from mlpcore.report.figures import draw_matrix, evaluation_figures
from mlpcore.report.layout import BLUE, GREY, LIGHT, RED, new_page, text_width
from mlpcore.report.results import figure_section, setting_lines
from mlpcore.report.tables import NONE, Rows, escape, kind_of_test, markdown_table
from mlpcore.store.committee import CommitteeFolder
from mlpcore.typing import Figure


@dataclass(frozen=True)
class JudgedCommittee:
    """Members on their data, and after them their committee.

    There are evaluations of each on the undeformed training images and on the test images.
    """

    names: Sequence[str]
    validations: Sequence[Evaluation]
    tests: Sequence[Evaluation]
    data: Dataset

    @property
    def title(self) -> str:
        """The heading of the report."""
        return f"Committee of {len(self.names) - 1} networks on {self.data.name}"

    @property
    def kind(self) -> str:
        """The kind of its test images: "test" or "held-out"."""
        return kind_of_test(self.data.held_out)

    def mean_rate(self, evaluations: Sequence[Evaluation]) -> float:
        """The mean error of the members, in percent."""
        return fmean(each.error_rate for each in evaluations[:-1])

    def table(self) -> Rows:
        """A row for each member, one for their mean and one for the committee."""
        rows: Rows = []
        for name, *both in zip(self.names, self.validations, self.tests):
            ends = ["{:.2f} to {:.2f} %".format(*each.interval) for each in both]
            rates = [f"{each.error_rate:.3f} %" for each in both]
            rows.append((name, rates[0], ends[0], rates[1], ends[1], "1"))
        whole = *rows.pop()[:-1], str(len(rows))
        rates = [f"{self.mean_rate(each):.3f} %" for each in (self.validations, self.tests)]
        mean = "mean of the members", rates[0], NONE, rates[1], NONE, "1"
        return [("network", "validation", "95 %", self.kind, "95 %", "passes"), *rows, mean, whole]

    def comparison(self) -> str:
        """The committee beside the member that errs least on these test images, in a sentence."""
        *members, whole = self.tests
        best = min(members, key=lambda each: each.errors)
        whole_only, best_only, p_value = compare(whole, best)
        return (
            f"The committee and its best member on the {self.kind} images, "
            f"{self.names[members.index(best)]}: "
            f"{best_only} images are wrong only for the member, {whole_only} only for the "
            f"committee (McNemar's exact test: p = {p_value:.2g})."
        )


def committee_report(
    committee: CommitteeFolder, judged: JudgedCommittee, backend: str, figures: Sequence[str] = ()
) -> str:
    """A trained committee in Markdown; `figures` are files, relative to the report's folder."""
    data, first = committee.data, committee.members[0].config
    seeds = ", ".join(f"{m.name} {m.config.seed}" for m in committee.members)
    own = ("- seed", "- hidden layers")  # each member has its own
    settings = [line for line in setting_lines(first, backend) if not line.startswith(own)]
    return printable_lines(f"""# {escape(judged.title)}

{markdown_table(judged.table())}

{judged.comparison()}

Validation errors are those on the {data.n_train:,} undeformed training images, the others those
on {test_images_text(data.n_test, data.held_out)}. The last column has the passes of a prediction.
{figure_section(figures)}
## Settings

- seeds: {seeds}
{chr(10).join(settings)}

## Data

- {escape(f"{data.name} ({shown(data.source)})")}
- SHA-256 of the arrays: {data.sha256}
""")


def committee_figures(judged: JudgedCommittee) -> Iterator[tuple[str, Figure]]:
    """Yields the names and the figures of a committee."""
    yield "members", members_figure(judged)
    yield "agreement", agreement(judged)
    yield from evaluation_figures(judged.data.test_set, judged.tests[-1], judged.title)


def members_figure(judged: JudgedCommittee) -> Figure:
    """The errors of the members and of the committee, with their intervals."""
    kind, mean, n = judged.kind, judged.mean_rate(judged.tests), len(judged.names)
    lines = [f"Dots: {kind} errors. Bars: 95 % intervals. Line: mean of the members, {mean:.3f} %."]
    names = judged.names
    height, left = 0.24 * n + 0.8, text_width(names, 8)
    figure = new_page(judged.title, lines, height, left, bottom=0.5)
    axes = figure.subplots()
    for y, each in enumerate(judged.tests):
        colour = BLUE if y < n - 1 else RED
        axes.plot(each.interval, (y, y), color=colour, linewidth=2, alpha=0.5)
        axes.plot(each.error_rate, y, "o", color=colour, markersize=5)
    axes.axvline(mean, color=GREY, linewidth=0.8)
    axes.set(ylim=(n - 0.5, -0.5), xlim=(0, None))
    axes.set_yticks(range(n), names, parse_math=False)
    axes.set_xlabel(f"{kind} error (%)", size=9)
    axes.tick_params(labelsize=8)
    axes.grid(color=LIGHT, axis="x")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def agreement(judged: JudgedCommittee) -> Figure:
    """The number of test images that two members both get wrong, for every pair."""
    shared = shared_errors(judged.tests[:-1])
    lines = [
        f"How many {judged.kind} images two members both get wrong. Diagonal: errors of each.",
        "The darker, the larger the share of the errors of the member of the row.",
    ]
    names = judged.names[:-1]
    width, side = text_width(names, 8), min(0.9 * len(shared), 5.0)
    figure = new_page(judged.title, lines, side + width + 0.2, width, bottom=width + 0.2)
    axes = figure.subplots()
    share = shared / np.maximum(1, shared.diagonal())[:, None]
    draw_matrix(axes, share, shared, names, side)
    axes.tick_params(axis="x", rotation=90)
    return figure
