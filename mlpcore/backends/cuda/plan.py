"""The plan of resident training: which weight lies in which multiprocessor, and where there.

``cuda/resident.cu`` explains the partition and what the kernel does with it. Here it is chosen,
on the host, from a network's layer sizes and what a device has; nothing here needs a device,
a compiler or anything beyond Python, because the build plans as well.

A *boundary* is what lies between layers: boundary 0 are the inputs, boundary k the outputs of
layer k - 1. Blocks of the grid have coordinates (p, q) in P x Q; odd boundaries are cut into P
slices, even ones into Q. Layer l has boundary l as columns and l + 1 as rows, and a block owns
the weights between its two slices.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise, product

#: Steps from the plainest kernel to the fastest; each contains those before it.
VERSIONS = ("barrier", "flags", "overlap", "ahead")

#: Registers of a thread that do not hold weights. With the second, a few other values may have to
#: wait in memory (spill): for what does not fit otherwise.
SPARE_REGISTERS = (80, 64)

#: Registers that a thread can have at most, and that are allocated at a time.
MAX_REGISTERS, REGISTER_UNIT = 255, 8

# Of the estimate (see `Plan.estimate`), in cycles of a multiprocessor: fitted to the times of 47
# kernels, five networks with grids and threads of many kinds, measured on an H200, which it gives
# within 2.2 % (root mean square). `benchmarks/resident.md` has them.
EXCHANGE_CYCLES = 811  #: from the stores of one block to the end of another's wait
WORD_CYCLES = (2.5, 1.5)  #: for each word of a thread, at even boundaries (from far apart) and odd
TURN_CYCLES = 541  #: for words beyond those that it waits for together
PASS_CYCLES = 342  #: forward or backward through a layer, whatever its size
BARRIER_CYCLES = 16.6  #: for each warp of a block that meets the others, in a pass
PRODUCT_CYCLES = 5.4  #: of 128 weights, in a pass and in their update
KEPT_CYCLES = 11.7  #: more of a thread's weight in shared memory, likewise

LINE_WORDS = 32  #: of a line of the cache
WORDS_AT_A_TIME = 16  #: that a thread waits for together


def ceil_div(n: int, size: int) -> int:
    """How many of `size` cover `n`."""
    return -(-n // size)


@dataclass(frozen=True)
class Device:
    """What a plan has to know of a device.

    Attributes
    ----------
    multiprocessors
        Blocks that run at once, one in each.
    shared_bytes
        Of shared memory that one block can have.
    registers
        32-bit registers of a multiprocessor.
    capability
        Compute capability as an architecture, 90 for 9.0.
    threads
        Sizes of a block to choose from.
    clock_ghz
        For the estimate.
    """

    multiprocessors: int
    shared_bytes: int
    registers: int = 65536
    capability: int = 90
    threads: tuple[int, ...] = (128, 256, 512)
    clock_ghz: float = 1.98


@dataclass(frozen=True)
class LayerPlan:
    """One layer's part of every block: `rows` x `columns` weights at most.

    Threads form a grid of `thread_rows` x `thread_columns`. Thread (i, j) owns rows i,
    i + thread_rows, ... and columns j, j + thread_columns, ..., a tile of `slots` weights. The
    first `registers` of them stay in registers, the rest in shared memory.
    """

    rows: int
    columns: int
    thread_rows: int
    thread_columns: int
    registers: int = 0

    @property
    def tile_rows(self) -> int:
        return ceil_div(self.rows, self.thread_rows)

    @property
    def tile_columns(self) -> int:
        return ceil_div(self.columns, self.thread_columns)

    @property
    def slots(self) -> int:
        return self.tile_rows * self.tile_columns

    @property
    def padded_rows(self) -> int:
        return self.tile_rows * self.thread_rows

    @property
    def padded_columns(self) -> int:
        return self.tile_columns * self.thread_columns

    @property
    def scratch(self) -> int:
        """Floats for the partial sums of a block's threads, in either direction."""
        forward = self.padded_rows * (self.thread_columns | 1)
        return max(forward, self.padded_columns * (self.thread_rows | 1))


@dataclass(frozen=True)
class Plan:
    """A network's place on a device. `parts` is (Q, P): of even and of odd boundaries."""

    sizes: tuple[int, ...]
    parts: tuple[int, int]
    threads: int
    layers: tuple[LayerPlan, ...]

    @property
    def n_layers(self) -> int:
        return len(self.layers)

    @property
    def blocks(self) -> int:
        """Of a grid for one network."""
        return self.parts[0] * self.parts[1]

    # ---- who owns what -----------------------------------------------------------------

    def coordinate(self, block: int, boundary: int) -> int:
        """The slice of a boundary that a block owns; all of the last one."""
        if boundary == self.n_layers:
            return 0
        return block // self.parts[0] if boundary % 2 else block % self.parts[0]

    def slice(self, boundary: int, part: int) -> tuple[int, int]:
        """First element of a part of a boundary, and one beyond its last."""
        n, parts = self.sizes[boundary], self.n_parts(boundary)
        return n * part // parts, n * (part + 1) // parts

    def n_parts(self, boundary: int) -> int:
        """Slices of a boundary; the outputs of the network are not cut."""
        return 1 if boundary == self.n_layers else self.parts[boundary % 2]

    def weights(self, block: int, layer: int) -> tuple[int, int, int, int]:
        """Rows and columns, begin and end of each, that a block keeps of a layer."""
        rows = self.slice(layer + 1, self.coordinate(block, layer + 1))
        return (*rows, *self.slice(layer, self.coordinate(block, layer)))

    # ---- memory ------------------------------------------------------------------------

    @property
    def weight_registers(self) -> int:
        """Registers of a thread that hold weights."""
        return sum(layer.registers for layer in self.layers)

    @property
    def vector_floats(self) -> int:
        """Of shared memory for everything but weights, as the kernel lays it out."""
        floats = 2 * self.layers[0].padded_columns  # this sample's inputs and the next
        for layer in self.layers[1:]:
            floats += layer.padded_columns  # states
        for layer in self.layers:
            floats += layer.padded_rows + layer.rows  # deltas and biases
        rows = self.layers[0].padded_rows + 1  # and the product of two samples' inputs
        ahead = rows * (self.layers[0].thread_columns | 1)
        floats += self.sizes[-1] + self.n_layers + 2  # outputs, learning rates, target, product
        return floats + max(ahead, *(layer.scratch for layer in self.layers))

    @property
    def shared_floats(self) -> int:
        """Of shared memory, all of it."""
        slots = sum(layer.slots - layer.registers for layer in self.layers)
        return slots * self.threads + self.vector_floats

    @property
    def words(self) -> int:
        """Of 4 bytes, through which blocks exchange sums: in two buffers for each exchange a row
        of whole lines for each block."""
        row = ceil_div(max(layer.rows for layer in self.layers), LINE_WORDS) * LINE_WORDS
        return 2 * (2 * self.n_layers - 2) * self.blocks * row

    # ---- time --------------------------------------------------------------------------

    def estimate(self, device: Device) -> dict[str, float]:
        """Predicted microseconds of a sample by their cause, for choosing between plans.

        Of the last version of the kernel.

        ``exchanges`` between blocks, ``passes`` through the layers, whatever their sizes, and
        ``weights``: products and updates.
        """
        exchanges = passes = weights = 0.0
        for boundary in range(1, self.n_layers + 1):
            members, rows = self.parts[(boundary + 1) % 2], self.layers[boundary - 1].rows
            directions = 1 + (boundary < self.n_layers - 1)
            elements = ceil_div(rows, self.threads)
            turns = elements * ceil_div(members, WORDS_AT_A_TIME)
            words = elements * members * WORD_CYCLES[boundary % 2]
            exchanges += directions * (EXCHANGE_CYCLES + TURN_CYCLES * (turns - 1) + words)
        for i, layer in enumerate(self.layers):
            directions = 1 + (i > 0)  # the inputs have no deltas
            passes += directions * (PASS_CYCLES + BARRIER_CYCLES * self.threads / 32)
            weights += directions * PRODUCT_CYCLES * layer.slots * self.threads / 128
            weights += directions * KEPT_CYCLES * (layer.slots - layer.registers)
        us = 1e-3 / device.clock_ghz
        return {"exchanges": us * exchanges, "passes": us * passes, "weights": us * weights}

    def microseconds(self, device: Device) -> float:
        """Predicted time of a sample."""
        return sum(self.estimate(device).values())

    # ---- for the kernel ----------------------------------------------------------------

    def header(self, version: str = VERSIONS[-1]) -> str:
        """The plan as ``resident_plan.h``, which specialises ``cuda/resident.cu``."""
        blocks = ", ".join(
            f"{{{layer.thread_rows}, {layer.thread_columns}, {layer.registers}}}"
            for layer in self.layers
        )
        return (
            "// Written by mlpcore/backends/cuda/plan.py.\n#pragma once\n\n"
            f"constexpr int VERSION = {VERSIONS.index(version)};\n"
            f"constexpr int THREADS = {self.threads};\n"
            f"constexpr int SIZES[] = {{{', '.join(map(str, self.sizes))}}};\n"
            f"constexpr int PARTS[] = {{{', '.join(map(str, self.parts))}}};\n"
            "struct layer_plan {\n    int thread_rows, thread_columns, registers;\n};\n"
            f"constexpr layer_plan LAYER_PLANS[] = {{{blocks}}};\n"
            f"constexpr int PLANNED_SHARED_FLOATS = {self.shared_floats};\n"
            f"constexpr int PLANNED_WORDS = {self.words};\n"
        )

    def digest(self, version: str = VERSIONS[-1]) -> str:
        """A name for the kernel that this plan specialises."""
        return hashlib.sha256(self.header(version).encode()).hexdigest()[:12]


#: From the possible grids of threads for each layer, choices of one for each.
Candidates = Callable[[list[list[LayerPlan]]], Iterator[list[LayerPlan]]]


class DoesNotFit(Exception):
    """Why a network cannot be resident, in one line."""


def weight_registers(device: Device, threads: int, spare: int = SPARE_REGISTERS[-1]) -> int:
    """Registers of each of so many threads that can hold weights."""
    each = device.registers // threads // REGISTER_UNIT * REGISTER_UNIT
    return max(0, min(each, MAX_REGISTERS) - spare)


def make_plan(sizes: tuple[int, ...], device: Device, networks: int = 1) -> Plan:
    """The plan with the least predicted time; what was found before, a refusal as well.

    Parameters
    ----------
    sizes
        Layer sizes, inputs first.
    networks
        Networks of these sizes that share the device, each on multiprocessors of its own.

    Raises
    ------
    DoesNotFit
        With how much a multiprocessor would have to hold, and how much it can.
    """
    found = _plan_or_reason(sizes, device, networks)
    if isinstance(found, str):
        raise DoesNotFit(found)
    return found


@functools.lru_cache(maxsize=64)
def _plan_or_reason(sizes: tuple[int, ...], device: Device, networks: int) -> Plan | str:
    """A cache keeps no exceptions, and a search in vain is the longest: seconds."""
    try:
        return search_plan(sizes, device, networks)
    except DoesNotFit as reason:
        return str(reason)


def search_plan(sizes: tuple[int, ...], device: Device, networks: int = 1) -> Plan:
    """`make_plan`, searched anew."""
    if len(sizes) < 3:
        raise DoesNotFit("a network without hidden layers has nothing to keep resident")
    available = device.multiprocessors // networks
    if available < 1:
        raise DoesNotFit(f"{networks} networks on {device.multiprocessors} multiprocessors")
    held = _capacity(device)
    weights = 4 * sum(a * b for a, b in pairwise(sizes[:-1])) / available
    if weights > held:
        raise DoesNotFit(_too_little(sizes, weights, available, held))
    best: Plan | None = None
    least: int | None = None
    for candidates, spare in product((_fastest, _smallest), SPARE_REGISTERS):
        for plan in _plans(sizes, available, device, spare, candidates):
            missing = plan.shared_floats - device.shared_bytes // 4
            least = missing if least is None else min(least, missing)
            if missing <= 0:
                best = min(best or plan, plan, key=lambda plan: plan.microseconds(device))
        if best is not None:
            return best
    raise DoesNotFit(_too_little(sizes, held + 4 * (least or 0), available, held))


def _too_little(sizes: tuple[int, ...], needed: float, available: int, held: float) -> str:
    return (
        f"layers {', '.join(map(str, sizes))} need {needed / 1024:,.0f} KiB in "
        f"each of {available} multiprocessors, which hold {held / 1024:,.0f}"
    )


def _plans(
    sizes: tuple[int, ...], available: int, device: Device, spare: int, candidates: Candidates
) -> Iterator[Plan]:
    """Plans for every grid that leaves at most a quarter of the multiprocessors idle."""
    for p in range(1, available + 1):
        for q in range(1, available // p + 1):
            if 4 * p * q < 3 * available:
                continue
            for threads in device.threads:
                registers = weight_registers(device, threads, spare)
                for layers in candidates(_shapes(sizes, (q, p), threads)):
                    yield Plan(sizes, (q, p), threads, _fill_registers(layers, registers))


def _capacity(device: Device) -> int:
    """Bytes of weights and vectors that a multiprocessor holds at most."""
    return 4 * max(t * weight_registers(device, t) for t in device.threads) + device.shared_bytes


def _shapes(sizes: tuple[int, ...], parts: tuple[int, int], threads: int) -> list[list[LayerPlan]]:
    """For each layer, its part of a block with each possible grid of threads."""
    top = len(sizes) - 2
    longest = [ceil_div(n, parts[k % 2]) for k, n in enumerate(sizes[:-1])] + [sizes[-1]]
    rows = [r for r in range(1, threads + 1) if threads % r == 0]
    return [
        [LayerPlan(longest[i + 1], longest[i], r, threads // r) for r in rows]
        for i in range(top + 1)
    ]


def _fastest(shapes: list[list[LayerPlan]]) -> Iterator[list[LayerPlan]]:
    """The grids of threads with the shortest passes over the weights and sums over threads."""

    def cycles(layer: LayerPlan) -> float:
        reduced = layer.rows * layer.thread_columns + layer.columns * layer.thread_rows
        threads = layer.thread_rows * layer.thread_columns
        return threads * layer.slots / 32 + reduced / 4

    yield [min(options, key=cycles) for options in shapes]


def _smallest(shapes: list[list[LayerPlan]]) -> Iterator[list[LayerPlan]]:
    """Those that waste the fewest slots, for each limit to the scratch that they share."""
    for limit in sorted({layer.scratch for options in shapes for layer in options}):
        allowed = [[layer for layer in options if layer.scratch <= limit] for options in shapes]
        if all(allowed):
            yield [min(options, key=lambda layer: layer.slots) for options in allowed]


def _fill_registers(layers: list[LayerPlan], available: int) -> tuple[LayerPlan, ...]:
    """Weights into registers from the top down: the first layer's are needed least urgently."""
    result = []
    for layer in reversed(layers):
        here = min(available, layer.slots)
        available -= here
        result.append(
            LayerPlan(layer.rows, layer.columns, layer.thread_rows, layer.thread_columns, here)
        )
    return tuple(reversed(result))
