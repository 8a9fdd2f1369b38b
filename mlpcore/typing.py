"""The types in annotations. Shapes are in the docstrings next to them.

- `Float32Array` and the like are NumPy arrays of that type; `AnyArray` is one of any type.
- `BackendArray` is an array on the device of a backend, as its `put` returned it: a NumPy array,
  or one in the memory of a GPU. It has `len` and `shape`; slices and `reshape` are views;
  `numpy.asarray` copies it to the host.
- `LoadedNetwork` is a network on the device of a backend, as its `load` returned it.
- `ArrayLike` and `DTypeLike` are what `numpy.asarray` and `numpy.dtype` take.
- `StrPath` is what `open` takes.
- `Figure`, `Axes` and `AxesImage` are Matplotlib's, which takes half a second to import.
"""

import os
from typing import TYPE_CHECKING, Any, NewType, TypeAlias

import numpy as np
import numpy.typing as npt

StrPath: TypeAlias = str | os.PathLike[str]

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
    from matplotlib.image import AxesImage as AxesImage

    ArrayLike: TypeAlias = npt.ArrayLike
    DTypeLike: TypeAlias = npt.DTypeLike
    AnyArray: TypeAlias = npt.NDArray[Any]
    BoolArray: TypeAlias = npt.NDArray[np.bool_]
    UInt8Array: TypeAlias = npt.NDArray[np.uint8]
    UInt32Array: TypeAlias = npt.NDArray[np.uint32]
    UInt64Array: TypeAlias = npt.NDArray[np.uint64]
    Int32Array: TypeAlias = npt.NDArray[np.int32]
    Float32Array: TypeAlias = npt.NDArray[np.float32]
    Float64Array: TypeAlias = npt.NDArray[np.float64]
    BackendArray: TypeAlias = Any
    LoadedNetwork: TypeAlias = Any
else:  # help() and the reference show these names instead of what they stand for
    _matplotlib = "Axes", "AxesImage", "Figure"
    for _name in ("ArrayLike", "DTypeLike", "BackendArray", "LoadedNetwork", *_matplotlib):
        globals()[_name] = NewType(_name, object)
    for _name in ("Any", "Bool", "UInt8", "UInt32", "UInt64", "Int32", "Float32", "Float64"):
        globals()[f"{_name}Array"] = NewType(f"{_name}Array", np.ndarray)
