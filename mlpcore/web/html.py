"""One page of HTML with everything in it: networks, style sheet, program.

A content-security policy in the page forbids every request, and every program but the page's own,
which it knows by its SHA-256. Names from files are text in the page's data, where nothing is
markup.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from graphlib import TopologicalSorter
from html import escape
from importlib import resources
from string import Template
from typing import Any

import numpy as np

from mlpcore.checks import check_choice
from mlpcore.data.dataset import EMBEDDED, Dataset
from mlpcore.deformation.parameters import DeformationParameters
from mlpcore.errors import InputError, shown
from mlpcore.evaluation.evaluation import Evaluation
from mlpcore.inference import rejector
from mlpcore.inference.classifier import TrainedClassifier
from mlpcore.inference.inputs import check_takes_digits
from mlpcore.network.architecture import format_layer_sizes
from mlpcore.report.layout import title_of
from mlpcore.store.run_folder import BEST
from mlpcore.store.trained import TrainedNetwork
from mlpcore.store.weights import DTYPES, in_float16
from mlpcore.typing import AnyArray

#: The longest page that a browser on a phone can be expected to open.
MAX_BYTES = 2**28

#: Misread test digits that are shown.
MAX_WRONG = 60


def to_page(
    classifier: TrainedClassifier,
    test: Dataset | None = None,
    precision: str = "float32",
    deformation: DeformationParameters | None = None,
) -> bytes:
    """The page for one network or a committee.

    Parameters
    ----------
    classifier
        The networks.
    test
        The data whose test images that are misread are shown.
    precision
        Of the weights in the page, "float32" or "float16", to which they are rounded first.
    deformation
        How strongly training deforms digits; the sliders begin there.

    Raises
    ------
    InputError
        When a network takes images of another size than 29 x 29, to which the page scales a
        drawing, the page would be too large for a browser, or an output is not finite.
    """
    check_choice("precision", precision, DTYPES)
    for each in classifier.networks:
        check_takes_digits(each.pixels, shown(each.path))
    n_weights = sum(each.network.n_parameters for each in classifier.networks)
    n_bytes = n_weights * np.dtype(precision).itemsize
    size = 4 * n_bytes // 3  # in base64
    if size > MAX_BYTES:
        half = "" if precision == "float16" else "; --precision float16 halves it"
        raise InputError(
            f"a page of {size / 1e6:,.0f} MB: expected at most {MAX_BYTES / 1e6:,.0f} MB, which "
            f"a browser opens{half}"
        )
    if precision == "float16":
        rounded = [replace(n, network=in_float16(n.network)) for n in classifier.networks]
        classifier = TrainedClassifier(rounded, classifier.backend)
    result = classifier.evaluate(test.test_set, test.test_labels)[0] if test else None
    scale = {"scale": (1, 0), "threshold": rejector.threshold()}
    judge = _network(rejector.network(), "float16") | scale
    content = {
        "classes": [str(each) for each in classifier.classes],
        "precision": precision,
        "networks": [
            _network(each, precision) | {"scale": each.pixels.rescaling(classifier.pixels)}
            for each in classifier.networks
        ],
        "rejector": judge if classifier.reads_digits else None,
        "deformation": (deformation or DeformationParameters()).get_params(),
        "wrong": _wrong(test, result) if test and result else None,
    }
    style, script = _file("page.css"), program()
    policy = (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; "
        f"script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )
    values = {
        "policy": policy,
        "style": style,
        "script": script,
        "description": escape(_description(classifier, result)),
        "footer": f"{n_weights:,} weights in {precision}, {n_bytes / 1e6:.1f} MB. Made by mlpcore.",
        "data": json.dumps(content).replace("<", "\\u003c"),  # no name can end the element
    }
    return Template(_file("page.html")).substitute(values).encode(errors="replace")


def program() -> str:
    """The JavaScript modules as one, in the order of imports: a page from a disk has none."""
    files = sorted(each.name for each in (resources.files("mlpcore.web") / "files").iterdir())
    texts = {name: _file(name) for name in files if name.endswith(".js")}
    imported = {name: re.findall(r' from "\./(.+)"', text) for name, text in texts.items()}
    text = "\n".join(texts[name] for name in TopologicalSorter(imported).static_order())
    text = re.sub(r"^import [^;]+;\n", "", text, flags=re.MULTILINE)
    return re.sub(r"^export ", "", text, flags=re.MULTILINE)


def _file(name: str) -> str:
    return (resources.files("mlpcore.web") / "files" / name).read_text("utf-8")


def _hash(text: str) -> str:
    """The name of an element with this text in a content-security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _base64(array: AnyArray, dtype: str) -> str:
    little_endian = np.dtype(dtype).newbyteorder("<")
    return base64.b64encode(np.ascontiguousarray(array, little_endian).data).decode()


def _network(trained: TrainedNetwork, precision: str) -> dict[str, Any]:
    network = trained.network
    # No folder above: the page may be sent to others.
    name = trained.path.parent.name if trained.path.name == BEST else trained.path.stem
    parts = [part.ravel() for pair in zip(network.weights, network.biases) for part in pair]
    return {
        "name": f"{name}: {format_layer_sizes(network.layer_sizes)}",
        "sizes": network.layer_sizes,
        "activation": network.activation,
        "loss": network.loss,
        "unit": trained.pixels.input_range == "unit",
        "weights": _base64(np.concatenate(parts), precision),
    }


def _wrong(test: Dataset, result: Evaluation) -> dict[str, Any]:
    """The first misread test images, with the number of all."""
    wrong = result.misclassified
    first = wrong.indices[:MAX_WRONG]
    return {
        "images": _base64(test.test_set[first], "float32"),
        "numbers": first.tolist(),
        "labels": wrong.labels[:MAX_WRONG].tolist(),
        "guesses": wrong.guesses[:MAX_WRONG, 0].tolist(),
        "errors": result.errors,
        "n": result.n,
    }


def _description(classifier: TrainedClassifier, result: Evaluation | None) -> str:
    """The networks in a line, and how good they are."""
    networks = classifier.networks
    data = networks[0].data_name
    text = title_of(networks[0].network, data)
    if len(networks) > 1:
        text = f"A committee of {len(networks)} networks" + (f" on {data}" if data else "")
    if result:
        text += f". It misreads {result.error_rate:.2f} % of {result.n:,} test digits"
    if data == EMBEDDED:
        text += ", and many more of other origin: it was trained on few digits, of 8x8 pixels"
    return f"{text}. Everything runs in this page, and nothing is sent anywhere."
