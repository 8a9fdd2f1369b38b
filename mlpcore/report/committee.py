"""The gain of a committee: its errors and those of its members, as text and as figures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

import numpy as np

from mlpcore.data.dataset import Dataset, test_images_text
from mlpcore.errors import printable_lines, shown
from mlpcore.evaluation.committee import compare, shared_errors
from mlpcore.evaluation.evaluation import Evaluation
from mlpcore.report.figures import draw_matrix, evaluation_figures
from mlpcore.report.layout import BLUE, GREY, LIGHT, RED, new_page
from mlpcore.report.results import figure_section, setting_lines
from mlpcore.report.tables import NONE, Rows, escape, kind_of_test, markdown_table
from mlpcore.store.committee import CommitteeFolder
from mlpcore.typing import Figure


class Judged(NamedTuple):
    """A member, or the committee, on the undeformed training images and on the test images."""

    name: str
    validation: Evaluation
    test: Evaluation
    passes: int = 1

    def row(self) -> tuple[str, ...]:
        """The cells of the table of a committee."""
        cells = [self.name]
        for each in (self.validation, self.test):
            cells += [f"{each.error_rate:.3f} %", "{:.2f} to {:.2f} %".format(*each.interval)]
        return (*cells, str(self.passes))


@dataclass(frozen=True)
class JudgedCommittee:
    """Members and their committee, on the same data."""

    members: Sequence[Judged]
    whole: Judged
    data: Dataset

    @property
    def title(self) -> str:
        """The heading of the report."""
        return f"Committee of {len(self.members)} networks on {self.data.name}"

    @property
    def kind(self) -> str:
        """The kind of its test images: "test" or "held-out"."""
        return kind_of_test(self.data.held_out)

    @property
    def mean_test_rate(self) -> float:
        """The mean error of the members on the test images, in percent."""
        return fmean(each.test.error_rate for each in self.members)

    def table(self) -> Rows:
        """A row for each member, one for their mean and one for the committee."""
        rows: Rows = [("network", "validation", "95 %", self.kind, "95 %", "passes")]
        rows += [each.row() for each in self.members]
        validation = fmean(each.validation.error_rate for each in self.members)
        means = f"{validation:.3f} %", NONE, f"{self.mean_test_rate:.3f} %", NONE
        return [*rows, ("mean of the members", *means, "1"), self.whole.row()]

    def comparison(self) -> str:
        """The committee beside the member that errs least on these test images, in a sentence."""
        best = min(self.members, key=lambda each: each.test.errors)
        whole_only, best_only, p_value = compare(self.whole.test, best.test)
        return (
            f"The committee and its best member on the {self.kind} images, {best.name}: "
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
    images, test = judged.data.test_set, judged.whole.test
    yield from evaluation_figures(images, test, judged.title)


def members_figure(judged: JudgedCommittee) -> Figure:
    """The errors of the members and of the committee, with their intervals."""
    shown, kind, mean = [*judged.members, judged.whole], judged.kind, judged.mean_test_rate
    lines = [f"Dots: {kind} errors. Bars: 95 % intervals. Line: mean of the members, {mean:.3f} %."]
    names = [each.name for each in shown]
    figure = new_page(judged.title, lines, 0.24 * len(shown) + 0.8)
    axes = figure.subplots()
    for y, each in enumerate(shown):
        colour = RED if each is judged.whole else BLUE
        axes.plot(each.test.interval, (y, y), color=colour, linewidth=2, alpha=0.5)
        axes.plot(each.test.error_rate, y, "o", color=colour, markersize=5)
    axes.axvline(mean, color=GREY, linewidth=0.8)
    axes.set(ylim=(len(shown) - 0.5, -0.5), xlim=(0, None))
    axes.set_yticks(range(len(shown)), names)
    axes.set_xlabel(f"{kind} error (%)", size=9)
    axes.tick_params(labelsize=8)
    axes.grid(color=LIGHT, axis="x")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def agreement(judged: JudgedCommittee) -> Figure:
    """The number of test images that two members both get wrong, for every pair."""
    shared = shared_errors([each.test for each in judged.members])
    lines = [
        f"How many {judged.kind} images two members both get wrong. Diagonal: errors of each.",
        "The darker, the larger the share of the errors of the member of the row.",
    ]
    names = [each.name for each in judged.members]
    side = min(0.9 * len(shared), 5.0)
    figure = new_page(judged.title, lines, side + 1)
    axes = figure.subplots()
    share = shared / np.maximum(1, shared.diagonal())[:, None]
    draw_matrix(axes, share, shared, names, side)
    axes.tick_params(axis="x", rotation=90)
    return figure
