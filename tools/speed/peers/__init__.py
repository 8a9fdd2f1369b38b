"""Other libraries: on the same work, checked before it is timed, and on the way to an error."""

from functools import partial

from speed.lesson import Contestant
from speed.peers.base import Peer
from speed.peers.batches import train_batches
from speed.peers.jax_batches import train_jax
from speed.peers.jax_scan import check_jax, jax_gpu
from speed.peers.pytorch import (
    check_autograd,
    check_by_hand,
    check_graph,
    check_rectifiers,
    torch_gpu,
)
from speed.peers.scikit import train_scikit
from speed.peers.scipy_deformation import check_scipy
from speed.routines import SPARSE

_hand_gpu, _autograd_gpu, _jax_gpu = (
    partial(check, device=device)
    for check, device in ((check_by_hand, "cuda"), (check_autograd, "cuda"), (check_jax, "gpu"))
)
_compiled = partial(check_graph, compiled=True)

#: PyTorch tries one thread as well: with so little work at a time more are often slower.
PEERS = (
    Peer("JAX scan", "step", "jax", check_jax, lambda n: {n}),
    Peer("PyTorch by hand", "step", "torch", check_by_hand, lambda n: {1, n}),
    Peer("PyTorch by hand, rectifiers", SPARSE, "torch", check_rectifiers, lambda n: {1, n}),
    Peer("PyTorch autograd", "step", "torch", check_autograd, lambda n: {1, n}),
    Peer("JAX scan, GPU", "step", "jax", _jax_gpu, lambda n: {1}, jax_gpu),
    Peer("PyTorch by hand, GPU", "step", "torch", _hand_gpu, lambda n: {1}, torch_gpu),
    Peer("PyTorch autograd, GPU", "step", "torch", _autograd_gpu, lambda n: {1}, torch_gpu),
    Peer("PyTorch CUDA graph", "step", "torch", check_graph, lambda n: {1}, torch_gpu),
    Peer("PyTorch compile, CUDA graph", "step", "torch", _compiled, lambda n: {1}, torch_gpu),
    Peer("SciPy", "deformation", "scipy", check_scipy, lambda n: {1}),
)


def _batches(optimiser: str, batch: int, start: float) -> Contestant:
    """Mini-batches with PyTorch."""
    text = f"relu, cross-entropy, batch {batch}, one cycle"
    train = partial(train_batches, batch=batch, optimiser=optimiser)
    return Contestant(f"PyTorch {optimiser} {batch}", text, train, start, ("torch",))


def _jax(batch: int, start: float) -> Contestant:
    """Mini-batches with JAX."""
    text = f"relu, cross-entropy, batch {batch}, one cycle"
    train = partial(train_jax, batch=batch)
    return Contestant(f"JAX SGD {batch}", text, train, start, ("jax", "optax"))


#: With torchvision, which deforms image by image, only one: it takes most of the time.
LEARNERS = (
    _batches("AdamW", 64, 1e-3),
    _batches("AdamW", 256, 2e-3),
    _batches("SGD", 64, 0.1),
    _batches("SGD", 256, 0.2),
    _jax(64, 0.1),
    _jax(256, 0.2),
    Contestant(
        "PyTorch AdamW 64 torchvision",
        "relu, cross-entropy, batch 64, one cycle, deformed by torchvision",
        partial(train_batches, batch=64, optimiser="AdamW", torchvision=True),
        1e-3,
        ("torch", "torchvision"),
        settings="PyTorch AdamW 64",
    ),
    Contestant("scikit-learn", "relu, cross-entropy, Adam, batch 200, linear", train_scikit, 1e-3),
)
