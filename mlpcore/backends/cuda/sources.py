"""The sources of the kernels, and what the host reads there: parameters, constants, structs."""

import functools
import re
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

#: Beside this file in an installed package, else in the checkout.
SOURCES = Path(__file__).resolve().with_name("kernels")
if not SOURCES.is_dir():
    SOURCES = SOURCES.parents[3] / "cuda"

#: The letters of the types in `struct`, PyCUDA and NumPy. That of a pointer is P.
LETTERS = {"int": "i", "unsigned": "I", "unsigned long long": "Q", "float": "f", "double": "d"}

_KERNEL = r'extern "C" __global__ void\s+(?:__launch_bounds__\(([^)]*)\)\s+)?(\w+)\(([^)]*)\)'


class Kernel(NamedTuple):
    """The parameters and the block of a kernel."""

    parameters: dict[str, str]  #: their letters by their names, in order
    block: list[str]  #: constants, one for each dimension of a block

    @property
    def format(self) -> str:
        """The letters of all parameters."""
        return "".join(self.parameters.values())


@functools.cache
def _text(source: str | Path) -> str:
    """A source and the sources that it includes."""
    texts: list[str] = []
    names = [source]
    for name in names:
        texts.append((SOURCES / name).read_text())
        included = re.findall(r'^#include "(\w+\.cuh?)"', texts[-1], re.MULTILINE)
        names += [each for each in included if each not in names]
    return "".join(texts)


def kernels(source: str | Path) -> dict[str, Kernel]:
    """The kernels of a source, by name."""
    return {
        name: Kernel(dict(map(_declared, parameters.split(","))), re.findall(r"\w+", bounds))
        for bounds, name, parameters in re.findall(_KERNEL, _text(source))
    }


def _declared(text: str) -> tuple[str, str]:
    """The name and the letter of ``"const unsigned *__restrict__ words"``."""
    kind, _, name = text.strip().replace("*", "* ").rpartition(" ")
    return name, "P" if "*" in kind else LETTERS[kind.strip()]


def constants(source: str | Path) -> SimpleNamespace:
    """The whole numbers of a source."""
    found = re.findall(r"(?:constexpr int|,) ([A-Z]\w+) = (\d+)", _text(source))
    return SimpleNamespace(**{name: int(value) for name, value in found})


def struct(source: str | Path, name: str, **lengths: int) -> np.dtype[np.void]:
    """A struct of a source; `lengths` are those of its arrays."""
    body = re.search(rf"struct {name} {{(.*?)}};", _text(source), re.DOTALL)
    assert body is not None, name
    fields = []
    for declaration in re.sub(r"//.*", "", body[1]).split(";")[:-1]:
        _, letter = _declared(declaration.split(",")[0])
        for field, length in re.findall(r"(\w+)(?:\[(\w+)\])?(?:,|$)", declaration):
            fields.append((field, letter, lengths[length] if length else ()))
    return np.dtype(fields, align=True)
