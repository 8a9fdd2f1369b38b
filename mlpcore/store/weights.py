"""Networks in safetensors files, written completely or not at all and read with distrust.

The tensors are ``layers.0.weight`` (n_out, n_in), ``layers.0.bias`` (n_out,) and so on up to the
output layer, float32 or float16, as in a PyTorch `Linear`. The metadata are text:

| name | content |
|---|---|
| ``format`` | ``mlpcore network`` |
| ``version`` | the version of this library |
| ``architecture`` | the layer sizes: ``841,1000,500,10`` |
| ``activation`` | of hidden neurons: ``tanh`` or ``relu`` |
| ``loss`` | ``squared`` has scaled tanh outputs, ``cross-entropy`` softmax outputs |
| ``sha256`` | the SHA-256 of metadata and weights as float32: a flipped bit would stay unseen |

Runs and exported networks add what the inputs are (`mlpcore.store.inputs`):

| name | content |
|---|---|
| ``dataset`` | the name of the data that the network was trained on |
| ``image_shape`` | ``height,width`` of the images that are the inputs, row by row |
| ``pixel_shape`` | ``height,width`` of the data set's own images, which are scaled to that |
| ``input_range`` | what pixels become: ``signed`` is [-1, 1], ``unit`` is [0, 1] |
| ``width`` | to which the ink is brought (`mlpcore.data.width`); absent if it stays |
| ``target`` | of the output for the class in training, if the loss is squared and it is not 1 |

The first files lack ``activation``, ``loss`` and ``input_range``: their networks are ``tanh``,
``squared`` and ``signed``.

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
import os
import struct
from collections.abc import Iterator
from typing import IO, Any

import msgspec
import numpy as np
from safetensors import SafetensorError, deserialize
from safetensors.numpy import save

from mlpcore.checks import check_choice
from mlpcore.data.scaling import INPUT_RANGES
from mlpcore.errors import InputError, shown
from mlpcore.files import atomic_write, open_regular
from mlpcore.network import Network
from mlpcore.network.activation import ACTIVATIONS, LOSSES
from mlpcore.network.architecture import MAX_LAYERS, count_parameters, format_layer_sizes
from mlpcore.typing import Float32Array, StrPath
from mlpcore.version import __version__

FORMAT = "mlpcore network"

#: The metadata that are one of some names. The first is that of older files, which lack them.
CHOICES = {"activation": ACTIVATIONS, "loss": LOSSES, "input_range": INPUT_RANGES}

#: The types of weights in a file, and their names there.
DTYPES = {"float32": "F32", "float16": "F16"}

#: The header of any network that fits into memory is shorter.
MAX_HEADER = 2**24


def write_network(
    path: StrPath,
    network: Network,
    metadata: dict[str, str],
    dtype: str = "float32",
    locked: int | None = None,
) -> None:
    """Write a network with the caller's metadata, atomically.

    Parameters
    ----------
    dtype
        "float32", or "float16" for half the bytes: weights are rounded to 11 bits.
    locked
        As for `mlpcore.files.atomic_write`.

    Raises
    ------
    InputError
        When the file cannot be written, or a weight is too large for float16.
    """
    check_choice("dtype", dtype, tuple(DTYPES))
    if dtype == "float16":
        network = in_float16(network)
    metadata = metadata | {
        "format": FORMAT,
        "version": __version__,
        "architecture": ",".join(map(str, network.layer_sizes)),
        "activation": network.activation,
        "loss": network.loss,
    }
    metadata["sha256"] = _checksum(network, metadata)
    tensors = {name: np.ascontiguousarray(array, dtype) for name, array in _tensors(network)}
    atomic_write(path, save(tensors, metadata), locked=locked)


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


def read_network(
    path: StrPath, layer_sizes: tuple[int, ...] | None = None
) -> tuple[Network, dict[str, str]]:
    """Read a network and its metadata, without ``sha256`` and with all `CHOICES`.

    A damaged file cannot make this take more memory than three times the length of the file.
    Weights of float16 become float32.

    Parameters
    ----------
    layer_sizes
        The layer sizes that the network must have, if known.

    Raises
    ------
    InputError
        When the file cannot be read, is truncated or damaged, holds another architecture, or
        an activation, a loss or an input range that is unknown here.
    """
    name = shown(path)
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            header, length = _read_header(file, size, name)
            metadata = header.metadata
            sizes = _layer_sizes(name, metadata)
            if layer_sizes is not None and sizes != tuple(layer_sizes):
                raise InputError(
                    f"{name} holds a network of {format_layer_sizes(sizes)}, "
                    f"expected {format_layer_sizes(layer_sizes)}"
                )
            # The type of all tensors is that of the first.
            item_bytes = 2 if header.first.dtype == DTYPES["float16"] else 4
            expected = 8 + length + item_bytes * count_parameters(sizes)
            if size != expected:
                raise InputError(
                    f"{name} is damaged: {size:,} bytes, expected {expected:,} "
                    f"for a network of {format_layer_sizes(sizes)}"
                )
            choices = _choices(name, metadata)
            file.seek(0)
            tensors = dict(deserialize(file.read(size)))  # type: ignore[no-untyped-call]
        network = Network(sizes, activation=choices["activation"], loss=choices["loss"])
        for tensor_name, target in _tensors(network):
            _take_tensor(tensors.pop(tensor_name, None), tensor_name, target)
    except (SafetensorError, msgspec.MsgspecError, UnicodeError, OSError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{name} is not a readable safetensors file: {reason}") from None
    if metadata.pop("sha256", "") != _checksum(network, metadata):
        raise InputError(f"{name} is damaged: its checksum does not fit its content")
    if not network.is_finite():
        raise InputError(f"{name} holds weights that are not finite")
    return network, choices | metadata


def _read_header(file: IO[bytes], size: int, name: str) -> tuple[_Header, int]:
    """The header of a file of so many bytes, and the length of the header."""
    if size < 8:
        raise InputError(f"{name} holds {size} bytes: expected a safetensors file")
    (header_bytes,) = struct.unpack("<Q", file.read(8))
    limit = min(size - 8, MAX_HEADER)
    if header_bytes > limit:
        raise InputError(
            f"{name} is truncated or not a safetensors file: "
            f"expected a header of at most {limit:,} bytes, found {header_bytes:,}"
        )
    return msgspec.json.decode(file.read(header_bytes), type=_Header), header_bytes


class _Tensor(msgspec.Struct):
    """What a header says of a tensor."""

    dtype: str = ""


class _Header(msgspec.Struct):
    """The header of a file, apart from most tensors: `deserialize` checks it all."""

    metadata: dict[str, str] = msgspec.field(name="__metadata__", default_factory=dict)
    first: _Tensor = msgspec.field(name="layers.0.weight", default_factory=_Tensor)


def _layer_sizes(name: str, metadata: dict[str, str]) -> tuple[int, ...]:
    """The architecture in the metadata."""
    if metadata.get("format") != FORMAT:
        raise InputError(f"{name} is not a network of this library: its metadata do not say so")
    parts = metadata.get("architecture", "").split(",")
    if len(parts) < 2 or not all(p.isascii() and p.isdecimal() and len(p) < 8 for p in parts):
        raise InputError(f"{name} is damaged: its metadata give no layer sizes")
    if len(parts) - 2 > MAX_LAYERS:
        raise InputError(f"{name} has {len(parts):,} layers: expected at most {MAX_LAYERS} hidden")
    return tuple(map(int, parts))


def _choices(name: str, metadata: dict[str, str]) -> dict[str, str]:
    """The metadata of `CHOICES`."""
    found = {key: metadata.get(key, names[0]) for key, names in CHOICES.items()}
    for key, names in CHOICES.items():
        check_choice(f"{name}: {key}", found[key], names)
    return found


def _take_tensor(tensor: dict[str, Any] | None, name: str, target: Float32Array) -> None:
    """Copy a tensor into the weights or biases of a layer."""
    if tensor is None:
        raise SafetensorError(f"there is no {name}")
    dtype, shape = tensor["dtype"], tuple(tensor["shape"])
    if dtype not in DTYPES.values() or shape != target.shape:
        raise SafetensorError(f"{name} is {dtype} {shape}, expected F32 or F16 {target.shape}")
    numbers = np.dtype("<f2" if dtype == DTYPES["float16"] else "<f4")
    target[...] = np.frombuffer(tensor["data"], numbers).reshape(shape)


def weights_sha256(network: Network) -> str:
    """SHA-256 of weights (n_out, n_in) and biases (n_out,), layer by layer, as float32."""
    return _digest(network, b"")


def _checksum(network: Network, metadata: dict[str, str]) -> str:
    """SHA-256 of the metadata and of all weights and biases."""
    return _digest(network, json.dumps(metadata, sort_keys=True).encode())


def _digest(network: Network, start: bytes) -> str:
    digest = hashlib.sha256(start)
    for _, array in _tensors(network):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
