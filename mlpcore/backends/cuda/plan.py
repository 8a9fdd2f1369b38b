"""The plan of resident training: which multiprocessor keeps which weights, and where.

``cuda/resident.cu`` explains the partition and how the kernel uses it. This module chooses a
partition on the host, from the layer sizes of a network and what a device has.

A *boundary* lies between two layers: boundary 0 is the inputs, boundary k is the outputs of
layer k - 1. Blocks of the grid have coordinates (p, q) in P x Q. Odd boundaries are cut into P
slices, even boundaries into Q. Layer l has boundary l as columns and boundary l + 1 as rows. A
block owns the weights where its two slices meet.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from mlpcore.backends.cuda.launch import ceil_div
from mlpcore.backends.cuda.sources import constants

#: Registers of a thread that do not hold weights. The second choice is for networks that do not
#: fit otherwise: a few values may then have to wait in memory (spill).
SPARE_REGISTERS = (80, 64)

#: The most registers that a thread can have, and the unit in which they are allocated.
MAX_REGISTERS, REGISTER_UNIT = 255, 8

# Constants of `ResidentPlan.microseconds`, in cycles of a multiprocessor of 1.98 GHz. They are
# fitted to the times of 47 kernels (five networks, many grids and block sizes) measured on an H200,
# and predict these within 2.2 % (root mean square); see docs/resident.md.
EXCHANGE_CYCLES = 811  #: from the stores of one block to the end of another block's wait
WORD_CYCLES = (2.5, 1.5)  #: per word of a thread, at even boundaries (from far apart) and odd ones
TURN_CYCLES = 541  #: for more words than a thread waits for together
PASS_CYCLES = 342  #: forward or backward through a layer of any size
BARRIER_CYCLES = 16.6  #: per warp of a block, in a pass
PRODUCT_CYCLES = 5.4  #: for 128 weights, in a pass and in their update
KEPT_CYCLES = 11.7  #: extra for each weight of a thread in shared memory, likewise

CU = constants("resident.cu")
LINE_WORDS = CU.LINE  #: of a line of the cache
WORDS_AT_A_TIME = CU.WORDS_AT_A_TIME  #: that a thread waits for together


class DoesNotFit(Exception):
    """The reason why a network cannot be resident, in one line."""


@dataclass(frozen=True)
class DeviceLimits:
    """The limits of a device, to which a plan keeps."""

    multiprocessors: int  #: blocks that run at once, one in each
    shared_bytes: int  #: shared memory that one block can have
    registers: int = 65536  #: of 32 bits, of a multiprocessor
    capability: int = 90  #: compute capability as an architecture, 90 for 9.0
    threads: tuple[int, ...] = (128, 256, 512)  #: block sizes to choose from


@dataclass(frozen=True)
class LayerPlan:
    """One layer's part of every block: at most `rows` x `columns` weights.

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
class ResidentPlan:
    """A network's place on a device. The grid has odd_parts x even_parts blocks (P x Q)."""

    sizes: tuple[int, ...]  #: of the layers, inputs first
    even_parts: int  #: slices of each even boundary; the outputs of the network are not cut
    odd_parts: int
    threads: int  #: of a block
    layers: tuple[LayerPlan, ...]  #: a block's part of each
    hidden: int = 0  #: what hidden neurons compute, as in ``cuda/activation.cuh``
    output: int = 0  #: likewise, the outputs

    @property
    def n_layers(self) -> int:
        return len(self.layers)

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return self.even_parts * self.odd_parts

    # ---- memory ------------------------------------------------------------------------

    @property
    def shared_floats(self) -> int:
        """Floats of shared memory: vectors as the kernel lays them out, and weights."""
        first, *others = self.layers
        floats = 2 * first.padded_columns  # inputs of this sample and of the next
        floats += sum(layer.padded_columns for layer in others)  # states
        floats += sum(layer.padded_rows + layer.rows for layer in self.layers)  # deltas, biases
        floats += self.sizes[-1] + self.n_layers + 2  # outputs, learning rates, target, product
        floats += max(layer.scratch for layer in self.layers)
        return floats + self.threads * sum(layer.slots - layer.registers for layer in self.layers)

    @property
    def words(self) -> int:
        """Words of 4 bytes through which blocks exchange sums.

        There are two buffers. Each has, for every exchange, a row of whole lines for each block.
        Of a sample there are exchanges at each boundary forward, and at most backward.
        """
        row = ceil_div(max(layer.rows for layer in self.layers), LINE_WORDS) * LINE_WORDS
        return 2 * (2 * self.n_layers - 2) * self.blocks * row

    # ---- time --------------------------------------------------------------------------

    @property
    def microseconds(self) -> float:
        """Predicted time of a sample, to choose between plans.

        It adds up the exchanges between blocks, the passes through layers of any size, and the
        products and updates of weights.
        """
        exchanges = passes = weights = 0.0
        for boundary in range(1, self.n_layers + 1):
            # Blocks that own the same slice exchange their sums of it.
            members = self.even_parts if boundary % 2 else self.odd_parts
            # Nobody waits for the first boundary's forward.
            directions = (boundary > 1) + (boundary < self.n_layers - 1)
            elements = ceil_div(self.layers[boundary - 1].rows, self.threads)
            turns = elements * ceil_div(members, WORDS_AT_A_TIME)
            words = elements * members * WORD_CYCLES[boundary % 2]
            exchanges += directions * (EXCHANGE_CYCLES + TURN_CYCLES * (turns - 1) + words)
        for i, layer in enumerate(self.layers):
            directions = 1 + (i > 0)  # the inputs have no deltas
            passes += directions * (PASS_CYCLES + BARRIER_CYCLES * self.threads / 32)
            weights += directions * PRODUCT_CYCLES * layer.slots * self.threads / 128
            weights += directions * KEPT_CYCLES * (layer.slots - layer.registers)
        # Rounding decides between equal plans, and so the bits: this order of operations stays.
        us = 1e-3 / 1.98
        return us * exchanges + us * passes + us * weights

    # ---- for the kernel ----------------------------------------------------------------

    def header(self) -> str:
        """The plan as ``resident_plan.h``, which specialises ``cuda/resident.cu``."""
        layers = ", ".join(
            f"{{{layer.thread_rows}, {layer.thread_columns}, {layer.registers}}}"
            for layer in self.layers
        )
        return f"""\
// Written by mlpcore/backends/cuda/plan.py.
#pragma once

constexpr int HIDDEN = {self.hidden}, OUTPUT = {self.output};
constexpr int THREADS = {self.threads};
constexpr int SIZES[] = {{{", ".join(map(str, self.sizes))}}};
constexpr int EVEN_PARTS = {self.even_parts}, ODD_PARTS = {self.odd_parts};
struct layer_plan {{
    int thread_rows, thread_columns, registers;
}};
constexpr layer_plan LAYER_PLANS[] = {{{layers}}};
constexpr int PLANNED_SHARED_FLOATS = {self.shared_floats};
constexpr int PLANNED_WORDS = {self.words};
"""


def weight_registers(device: DeviceLimits, threads: int, spare: int = SPARE_REGISTERS[-1]) -> int:
    """Registers of a thread that can hold weights, in blocks of `threads`."""
    registers = device.registers // threads // REGISTER_UNIT * REGISTER_UNIT
    return max(0, min(registers, MAX_REGISTERS) - spare)


@functools.lru_cache(maxsize=64)
def make_plan(sizes: tuple[int, ...], device: DeviceLimits) -> ResidentPlan:
    """The plan with the least predicted time for layers of these sizes, inputs first.

    DoesNotFit says how much a multiprocessor would have to hold, and how much it can hold.
    """
    if len(sizes) < 3:
        raise DoesNotFit("a network without hidden layers has nothing to keep resident")
    most = max(threads * weight_registers(device, threads) for threads in device.threads)
    held = 4 * most + device.shared_bytes
    needed = 4 * sum(a * b for a, b in pairwise(sizes[:-1])) / device.multiprocessors
    if needed <= held:
        for spare in SPARE_REGISTERS:
            plans = list(_plans(sizes, device, spare))
            if fitting := [plan for plan in plans if 4 * plan.shared_floats <= device.shared_bytes]:
                return min(fitting, key=lambda plan: plan.microseconds)
        needed = held + 4 * min(plan.shared_floats for plan in plans) - device.shared_bytes
    raise DoesNotFit(
        f"layers {', '.join(map(str, sizes))} need {needed / 1024:,.0f} KiB in "
        f"each of {device.multiprocessors} multiprocessors, which hold {held / 1024:,.0f}"
    )


def _plans(sizes: tuple[int, ...], device: DeviceLimits, spare: int) -> Iterator[ResidentPlan]:
    """A plan for every grid that leaves at most a quarter of the multiprocessors idle."""
    available = device.multiprocessors
    for odd in range(1, available + 1):
        for even in range(1, available // odd + 1):
            if 4 * odd * even < 3 * available:
                continue
            for threads in device.threads:
                registers = weight_registers(device, threads, spare)
                layers = _fill_registers(_layers(sizes, even, odd, threads), registers)
                yield ResidentPlan(sizes, even, odd, threads, layers)


def _layers(sizes: tuple[int, ...], even: int, odd: int, threads: int) -> list[LayerPlan]:
    """Each layer's part of a block, without registers.

    Of the possible grids of threads it has the one with the shortest passes over the weights and
    sums over threads.
    """

    def cycles(layer: LayerPlan) -> float:
        reduced = layer.rows * layer.thread_columns + layer.columns * layer.thread_rows
        return threads * layer.slots / 32 + reduced / 4

    longest = [ceil_div(n, odd if k % 2 else even) for k, n in enumerate(sizes[:-1])]
    longest.append(sizes[-1])
    divisors = [r for r in range(1, threads + 1) if threads % r == 0]
    return [
        min((LayerPlan(rows, columns, r, threads // r) for r in divisors), key=cycles)
        for columns, rows in pairwise(longest)
    ]


def _fill_registers(layers: list[LayerPlan], available: int) -> tuple[LayerPlan, ...]:
    """Puts weights into registers, the top layer's first: the first layer's can wait longest."""
    filled = []
    for layer in reversed(layers):
        registers = min(available, layer.slots)
        available -= registers
        filled.append(replace(layer, registers=registers))
    return tuple(reversed(filled))
