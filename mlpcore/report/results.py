"""Results in words and tables: a run beside the paper's, its errors, its settings."""

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import structs

from mlpcore.data.dataset import MNIST, test_images_text
from mlpcore.data.summary import DataSummary
from mlpcore.errors import printable, printable_lines, shown
from mlpcore.evaluation.evaluation import Evaluation
from mlpcore.network.architecture import count_parameters, format_hidden_layers
from mlpcore.report.tables import Rows, duration, escape, kind_of_test, markdown_table, weights_text
from mlpcore.training.config import TrainingConfig
from mlpcore.training.state import TrainingState

#: The paper's Table 1: test error in percent for best validation, best test error, hours, millions
#: of weights.
TABLE_1 = {
    "net1": (0.49, 0.44, 23.4, 1.34),
    "net2": (0.46, 0.40, 44.2, 3.26),
    "net3": (0.41, 0.39, 66.7, 6.69),
    "net4": (0.35, 0.32, 114.5, 12.11),
    "net5": (0.44, 0.43, 107.7, 8.86),
}

#: The most characters of a class's name in a column of its own, and elsewhere.
MAX_COLUMN, MAX_CELL = 12, 40


def result_table(config: TrainingConfig, data: DataSummary, state: TrainingState) -> Rows:
    """A run with at least one epoch, beside the paper's for the same network on MNIST.

    The least test error is selected by the test images. It is there because the paper shows it.
    """
    name = format_hidden_layers(config.hidden_layers)
    n_weights = count_parameters(data.layer_sizes(config.hidden_layers))
    best, best_test = state.best_metrics, state.best_test_metrics
    assert best is not None and best_test is not None
    head = "network", f"{kind_of_test(data.held_out)} error for best validation"
    ours = f"{name}, {state.epoch} epoch{'s' * (state.epoch != 1)}", f"{best.test_error:.2f} %"
    cost = duration(state.seconds), weights_text(n_weights)
    if name not in TABLE_1 or data.name != MNIST or data.held_out:
        return [(*head, "time", "weights"), (*ours, *cost)]
    error, best_error, hours, millions = TABLE_1[name]
    cells = f"{error:.2f} %", f"{best_error:.2f} %", f"{hours} h", f"{millions:.2f} M"
    return [
        (*head, "best test error", "time", "weights"),
        (*ours, f"{best_test.test_error:.2f} %", *cost),
        (f"{name} in the paper", *cells),
    ]


def describe_error(evaluation: Evaluation) -> str:
    """The error rate with its count and its interval."""
    low, high = evaluation.interval
    return (
        f"{evaluation.errors:,} of {evaluation.n:,} images, {evaluation.error_rate:.2f} % "
        f"(95 % interval {low:.2f} to {high:.2f} %)"
    )


def describe_second(evaluation: Evaluation) -> str:
    """A sentence on how often the second guess is right where the first is wrong."""
    if not evaluation.errors:
        return "No second guess was needed."
    return f"The second guess is right for {evaluation.second_right:,} of {evaluation.errors:,}."


def evaluation_table(results: Iterable[tuple[str, str, Evaluation]]) -> Rows:
    """A row for each network: its name, its layers and its evaluation."""
    rows: Rows = [("network", "layers", "errors", "error", "95 % interval", "second guess right")]
    rows += [
        (
            name,
            layers,
            f"{found.errors:,} of {found.n:,}",
            f"{found.error_rate:.2f} %",
            "{:.2f} to {:.2f} %".format(*found.interval),
            f"{found.second_right:,} of {found.errors:,}",
        )
        for name, layers, found in results
    ]
    return rows


def confusion_table(evaluation: Evaluation, classes: Sequence[object] = ()) -> Rows:
    """The confusion matrix: rows are labels, columns first guesses; zeros are dots.

    `classes` are the names of the labels, by default the labels themselves.
    """
    names = _names(evaluation, classes, MAX_COLUMN)
    rows = zip(names, evaluation.confusion.tolist())
    return [("label", *names), *((name, *(str(n or ".") for n in row)) for name, row in rows)]


def _names(evaluation: Evaluation, classes: Sequence[object], most: int) -> list[str]:
    """The names of the classes, of at most so many characters."""
    return [printable(str(each), most) for each in classes or range(evaluation.n_classes)]


def misclassified_table(
    evaluation: Evaluation, limit: int | None = None, classes: Sequence[object] = ()
) -> Rows:
    """The misclassified samples, at most `limit` of them; `classes` as for `confusion_table`."""
    names = _names(evaluation, classes, MAX_CELL)
    wrong = evaluation.misclassified
    columns = (wrong.indices, wrong.labels, wrong.guesses, wrong.outputs)
    rows: Rows = [("sample", "label", "first guess", "output", "second guess", "output")]
    for index, label, guesses, outputs in zip(*(column[:limit].tolist() for column in columns)):
        pairs = zip((names[k] for k in guesses), (f"{output:.3f}" for output in outputs))
        rows.append((str(index), names[label], *itertools.chain.from_iterable(pairs)))
    return rows


def report(
    config: TrainingConfig,
    data: DataSummary,
    state: TrainingState,
    backend: str,
    evaluation: Evaluation,
    figures: Sequence[str] = (),
) -> str:
    """A finished run in Markdown: its result, and the settings that repeat it.

    The evaluation is that of its best network; `figures` are files in the report's folder.
    """
    best = state.best_metrics
    assert best is not None
    height, width = data.pixels.image_shape
    images = test_images_text(data.n_test, data.held_out)
    names = ", ".join(escape(printable(str(each), MAX_CELL)) for each in data.classes or ())
    classes = f": {names}" if names else ""
    return printable_lines(f"""# {format_hidden_layers(config.hidden_layers)} on {escape(data.name)}

{markdown_table(result_table(config, data, state))}

The best validation error, on the whole undeformed training set, is
{best.validation_error:.2f} %, after epoch {best.epoch} of {config.epochs}.

## Test

The network of that epoch, on {images}. Misclassified: {describe_error(evaluation)}.
{describe_second(evaluation)}
{figure_section(figures)}
## Settings

{chr(10).join(setting_lines(config, backend))}

## Data

- {escape(f"{data.name} ({shown(data.source)})")}
- {data.n_train:,} training and {images} of {height} x {width} pixels
- {data.n_classes} classes{classes}
- SHA-256 of the arrays: {data.sha256}
""")


def setting_lines(config: TrainingConfig, backend: str) -> list[str]:
    """A line for each setting that has a meaning beside the others."""
    settings = structs.asdict(config)
    settings |= structs.asdict(settings.pop("deformation"))
    if config.loss == "cross-entropy":
        del settings["target"]
    if not config.ones_and_sevens:
        del settings["ones_and_sevens"]
    if config.decay != "factor":
        del settings["learning_rate_end"]
    earlier = ", ".join(f"{each.epochs} until epoch {each.until}" for each in config.earlier)
    settings["epochs"] = f"{config.epochs} ({earlier})" if earlier else config.epochs
    del settings["earlier"]
    settings["hidden_layers"] = ", ".join(map(str, config.hidden_layers))
    settings["similar_labels"] = ", ".join(map(str, config.deformation.similar_labels)) or "none"
    settings["backend"] = backend
    return [f"- {name.replace('_', ' ')}: {value}" for name, value in settings.items()]


def figure_section(figures: Sequence[str]) -> str:
    """The section of a report that shows these files, if there are any."""
    if not figures:
        return ""
    images = (f"![{Path(file).stem.replace('-', ' ')}]({file})" for file in figures)
    return "\n## Figures\n\n" + "\n\n".join(images) + "\n"
