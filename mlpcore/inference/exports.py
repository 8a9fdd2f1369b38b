"""Trained networks and estimators for other programs, as files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from mlpcore.errors import InputError, brief, shown
from mlpcore.files import atomic_write
from mlpcore.inference.classifier import SOURCES, TrainedClassifier, load
from mlpcore.inference.inputs import as_path
from mlpcore.store.export import EstimatorNetwork, estimator_to_onnx, to_onnx
from mlpcore.store.run_folder import check_result_file
from mlpcore.store.weights import to_safetensors
from mlpcore.typing import StrPath

#: The kinds of files, by the end of their names.
KINDS = (".onnx", ".safetensors")


def export(model: object, path: StrPath, *, precision: str = "float32") -> None:
    """Write a trained model for other programs, atomically: as ONNX or as safetensors.

    The ending of the path decides. `mlpcore.store.export` describes the names of inputs, outputs
    and metadata, including the names of the classes.

    - **An ONNX file** computes what the model answers. That of a run takes pixels as in the
      training data, and scales them itself. That of a committee gives the mean of its members. That
      of an estimator takes features as the estimator does, and gives ``label`` and
      ``probabilities``, or the ``variable`` of a regressor.
    - **A safetensors file** holds the weights of one network.

    Parameters
    ----------
    model : estimator, TrainedClassifier, str, os.PathLike or sequence of paths
        A fitted estimator, what `mlpcore.load` gives, or what it takes: the folder of a run or of
        a committee, a file of weights, or "pretrained".
    path : str or os.PathLike
        The file, which ends in ``.onnx`` or ``.safetensors``. It is replaced if it exists.
    precision : {"float32", "float16"}
        Of the weights in a safetensors file: "float16" halves it, and rounds them to 11 bits.

    Raises
    ------
    InputError
        When the model is none of these, is not fitted or averages over deformed copies; when
        several networks are to be one safetensors file; when the path has another ending, belongs
        to a run or to the model itself, or cannot be written; when the package `onnx` is missing.

    Examples
    --------
    >>> import mlpcore
    >>> mlpcore.export("pretrained", "net1.safetensors", precision="float16")
    >>> mlpcore.load("net1.safetensors", backend="scalar")
    TrainedClassifier(net1.safetensors: 841-1000-500-10; pictures of 28 x 28; scalar)
    """
    path = as_path(path, "a file that ends in .onnx or .safetensors")
    if isinstance(model, (str, os.PathLike, Sequence)):
        model = load(model)
    networks = [each.path for each in getattr(model, "networks", ())]
    check_target(path, networks, *KINDS)
    atomic_write(path, exported(model, path.suffix.lower(), precision))


def check_target(path: Path, networks: Sequence[Path], *kinds: str) -> None:
    """Raise InputError unless a file has a kind's name, and replaces nothing that is needed."""
    if path.suffix.lower() not in kinds:
        raise InputError(f"{shown(path)}: expected a name that ends in {' or '.join(kinds)}")
    check_result_file(path)
    for network in networks:
        if os.path.exists(path) and os.path.exists(network) and os.path.samefile(path, network):
            raise InputError(f"{shown(path)} is the network itself: expected another file")


def exported(model: object, kind: str, precision: str = "float32") -> bytes:
    """The content of a file of one of `KINDS` for a `TrainedClassifier` or an estimator."""
    if kind == ".onnx" and precision != "float32":
        raise InputError(f"precision {precision!r}: expected 'float32' for ONNX")
    if isinstance(model, TrainedClassifier):
        if model.copies is not None:
            raise InputError(
                f"copies {model.copies.n}: expected a classifier without, as files have none"
            )
        if kind == ".onnx":
            return to_onnx(*model.networks)
        if len(model.networks) > 1:
            raise InputError(
                f"{len(model.networks)} networks as safetensors: expected one, or ONNX"
            )
        (trained,) = model.networks
        return to_safetensors(trained.network, trained.known_metadata(), precision)
    if not hasattr(model, "_for_export"):
        expected = f"an estimator of mlpcore, what mlpcore.load gives, {SOURCES}"
        raise InputError(f"{brief(model)}: expected {expected}")
    estimator: EstimatorNetwork = model._for_export()
    if kind == ".onnx":
        return estimator_to_onnx(estimator)
    return to_safetensors(estimator.network, estimator.metadata(), precision)
