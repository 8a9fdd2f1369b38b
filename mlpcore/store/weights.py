"""Networks in safetensors files, written completely or not at all, and checked when read.

The tensors are ``layers.0.weight`` (n_out, n_in), ``layers.0.bias`` (n_out,) and so on up to the
output layer, float32 or float16, as in a PyTorch `Linear`. The metadata are text:

| name | content |
|---|---|
| ``format`` | ``mlpcore network`` |
| ``version`` | the version of this library |
| ``architecture`` | the layer sizes: ``841,1000,500,10`` |
| ``activation`` | of hidden neurons: ``tanh`` or ``relu`` |
| ``loss`` | that of `Network`: ``squared`` has scaled tanh outputs, ``cross-entropy`` a softmax |
| ``sha256`` | the SHA-256 of metadata and weights as float32, which a flipped bit changes |

Runs and exports add ``data``, the name of the data, and what a trained network needs, in JSON:

| name | content |
|---|---|
| ``pixels`` | how pixels become inputs: the fields of `mlpcore.data.pixels.PixelSpec` |
| ``target`` | of the output for the class in training, if the loss is squared; 1 if it is missing |
| ``classes`` | what the outputs stand for; the labels 0, 1 ... if it is missing |

`mlpcore.store.run_folder` adds the place in a run. Any library that reads safetensors reads the
weights. With a for the weights times the input plus the biases, the output of a layer is
1.7159 tanh(0.6666 a), or max(0, a) for ``relu``, or the softmax of a:

>>> from safetensors.numpy import load_file
>>> write_network("net.safetensors", Network((4, 3, 2), seed=1), {"made by": "me"})
>>> for name, tensor in sorted(load_file("net.safetensors").items()):
...     print(name, tensor.shape)
layers.0.bias (3,)
layers.0.weight (3, 4)
layers.1.bias (2,)
layers.1.weight (2, 3)
>>> network, metadata = read_network("net.safetensors")
>>> network, metadata["architecture"], metadata["loss"], metadata["made by"]
(Network((4, 3, 2)), '4,3,2', 'squared', 'me')
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from mlpcore.checks import check_choice
from mlpcore.errors import InputError, one_line, shown
from mlpcore.files import Lock, atomic_write, open_regular
from mlpcore.network import Network
from mlpcore.network.architecture import format_layer_sizes
from mlpcore.typing import Float32Array, StrPath
from mlpcore.version import __version__

FORMAT = "mlpcore network"

#: The types of weights in a file.
DTYPES = ("float32", "float16")


def write_network(
    path: StrPath, network: Network, metadata: dict[str, str], locked: Lock | None = None
) -> None:
    """Write a network with the caller's metadata by `mlpcore.files.atomic_write`, as float32."""
    atomic_write(path, to_safetensors(network, metadata), locked=locked)


def to_safetensors(network: Network, metadata: dict[str, str], dtype: str = "float32") -> bytes:
    """The content of a file of a network with the caller's metadata.

    The type is "float32", or "float16" for half the bytes: weights are rounded to 11 bits. An
    InputError when a weight is too large for that.
    """
    check_choice("dtype", dtype, DTYPES)
    if dtype == "float16":
        network = in_float16(network)
    metadata = metadata | {"format": FORMAT} | layer_metadata(network)
    metadata["sha256"] = weights_sha256(network, metadata)
    tensors = {name: np.ascontiguousarray(array, dtype) for name, array in _tensors(network)}
    content: bytes = save(tensors, metadata)
    return content


def layer_metadata(network: Network) -> dict[str, str]:
    """The metadata of the layers."""
    return {
        "version": __version__,
        "architecture": ",".join(map(str, network.layer_sizes)),
        "activation": network.activation,
        "loss": network.loss,
    }


def _tensors(network: Network) -> Iterator[tuple[str, Float32Array]]:
    """The arrays of a network, in the order of the checksum, with their names in a file."""
    for i, (weights, biases) in enumerate(zip(network.weights, network.biases)):
        yield f"layers.{i}.weight", weights
        yield f"layers.{i}.bias", biases


def in_float16(network: Network) -> Network:
    """A copy with every weight rounded to float16; an InputError if one is too large for that."""
    result = network.copy()
    with np.errstate(over="ignore"):
        for _, array in _tensors(result):
            array[...] = array.astype(np.float16)
    if not result.is_finite():
        raise InputError("a weight is too large for float16: expected at most 65,504")
    return result


class _Metadata(msgspec.Struct):
    """The metadata of every file. `Network` checks the values."""

    format: Literal["mlpcore network"]
    architecture: Annotated[str, Meta(pattern="^[0-9]{1,7}(,[0-9]{1,7})+$")]
    activation: str
    loss: str
    sha256: str


def read_network(path: StrPath) -> tuple[Network, dict[str, str]]:
    """Read a network and its metadata, without ``sha256``.

    A damaged file cannot make this take more memory than its weights as float32. Weights of float16
    become float32. An InputError when the file cannot be read, is truncated or damaged, or has an
    activation or a loss that is unknown here.
    """
    open_regular(path).close()  # it is neither a pipe, which would wait, nor a folder
    try:
        with safe_open(path, "numpy") as file:
            metadata = file.metadata() or {}
            known = msgspec.convert(metadata, _Metadata)
            sizes = tuple(map(int, known.architecture.split(",")))
            # Shapes first: these are as large as the file, and an architecture may be any.
            tensors = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            found = {name: each.get_shape() for name, each in tensors.items()}
            expected: dict[str, list[int]] = {}
            for i, (n_in, n_out) in enumerate(pairwise(sizes)):
                expected |= {f"layers.{i}.weight": [n_out, n_in], f"layers.{i}.bias": [n_out]}
            types = {each.get_dtype() for each in tensors.values()}
            if found != expected or not types <= {"F32", "F16"}:
                raise InputError(f"its tensors are not those of {format_layer_sizes(sizes)}")
            network = Network(sizes, activation=known.activation, loss=known.loss)
            for name, target in _tensors(network):
                target[...] = file.get_tensor(name)
        del metadata["sha256"]
        if known.sha256 != weights_sha256(network, metadata):
            raise InputError("its checksum does not match its content")
        if not network.is_finite():
            raise InputError("it holds weights that are not finite")
    except (ValueError, SafetensorError, OSError) as error:
        what = "the expected safetensors file of a network"
        raise InputError(f"{shown(path)} is not {what}: {one_line(error)}") from None
    return network, metadata


def weights_sha256(network: Network, metadata: dict[str, str] | None = None) -> str:
    """SHA-256 of weights (n_out, n_in) and biases (n_out,), layer by layer, as float32.

    The metadata come first, if there are any.
    """
    start = b"" if metadata is None else json.dumps(metadata, sort_keys=True).encode()
    digest = hashlib.sha256(start)
    for _, array in _tensors(network):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
