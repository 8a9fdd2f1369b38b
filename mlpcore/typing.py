"""The types of annotations; the docstrings beside them say what the shapes are.

- `Float32Array` and so on: NumPy arrays of these types; `AnyArray`: of any.
- `BackendArray`: an array where a backend computes, as its `put` gave it: NumPy's, or one on a
  device. It has `len` and `shape`; slices and `reshape` are views; `numpy.asarray` copies it back.
- `LoadedNetwork`: a network where a backend computes, as its `load` gave it.
- `ArrayLike`, `DTypeLike`: what `numpy.asarray` and `numpy.dtype` take.
- `StrPath`: what `open` takes.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NewType, TypeAlias

import numpy as np
import numpy.typing as npt

StrPath: TypeAlias = str | os.PathLike[str]

if TYPE_CHECKING:
    ArrayLike: TypeAlias = npt.ArrayLike
    DTypeLike: TypeAlias = npt.DTypeLike
    AnyArray: TypeAlias = npt.NDArray[Any]
    UInt8Array: TypeAlias = npt.NDArray[np.uint8]
    UInt32Array: TypeAlias = npt.NDArray[np.uint32]
    UInt64Array: TypeAlias = npt.NDArray[np.uint64]
    Int32Array: TypeAlias = npt.NDArray[np.int32]
    Float32Array: TypeAlias = npt.NDArray[np.float32]
    Float64Array: TypeAlias = npt.NDArray[np.float64]
    BackendArray: TypeAlias = Any
    LoadedNetwork: TypeAlias = Any
else:
    # So that help() and the reference show these names and not what they stand for.
    ArrayLike = NewType("ArrayLike", object)
    DTypeLike = NewType("DTypeLike", object)
    AnyArray = NewType("AnyArray", np.ndarray)
    UInt8Array = NewType("UInt8Array", np.ndarray)
    UInt32Array = NewType("UInt32Array", np.ndarray)
    UInt64Array = NewType("UInt64Array", np.ndarray)
    Int32Array = NewType("Int32Array", np.ndarray)
    Float32Array = NewType("Float32Array", np.ndarray)
    Float64Array = NewType("Float64Array", np.ndarray)
    BackendArray = NewType("BackendArray", object)
    LoadedNetwork = NewType("LoadedNetwork", object)
