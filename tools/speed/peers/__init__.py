"""Other libraries: on the same work, checked before it is timed, and on the way to an error."""

from functools import partial

from speed.peers.base import Learner, Peer
from speed.peers.jax_scan import OnLine, jax_gpu, train_jax
from speed.peers.pytorch import ByHand, Graph, torch_gpu, train_pytorch
from speed.peers.scientific import SciPyBackend, train_scikit
from speed.routines import SPARSE

#: PyTorch tries one thread as well: with so little work at a time more are often slower.
PEERS = (
    Peer("JAX scan", "step", "jax", OnLine, lambda n: {n}),
    Peer("PyTorch by hand", "step", "torch", ByHand, lambda n: {1, n}),
    Peer("PyTorch by hand, rectifiers", SPARSE, "torch", ByHand, lambda n: {1, n}),
    Peer("JAX scan, GPU", "step", "jax", partial(OnLine, device="gpu"), lambda n: {1}, jax_gpu),
    Peer("PyTorch by hand, GPU", "step", "torch", partial(ByHand, device="cuda"), lambda n: {1},
         torch_gpu),
    Peer("PyTorch CUDA graph", "step", "torch", Graph, lambda n: {1}, torch_gpu),
    Peer("PyTorch compile, CUDA graph", "step", "torch", partial(Graph, compiled=True),
         lambda n: {1}, torch_gpu),
    Peer("SciPy", "deformation", "scipy", SciPyBackend, lambda n: {1}),
)  # fmt: skip


#: Numbers of epochs for which learning rates were searched, on held-out digits. About half and
#: twice as much is worse or no better (benchmarks/results/2026-11-25-epyc-2-cores/peer-rates.json).
SEARCHED = 1, 3, 10


#: Settings of PyTorch and of JAX, and of scikit-learn.
CYCLE = "relu, cross-entropy, batch {}, one cycle"
SCIKIT = "relu, cross-entropy, Adam, batch 200, linear"


def _pytorch(optimiser: str, batch: int, *rates: float) -> Learner:
    train = partial(train_pytorch, batch=batch, optimiser=optimiser)
    name, by_epochs = f"PyTorch {optimiser} {batch}", dict(zip(SEARCHED, rates))
    return Learner(name, CYCLE.format(batch), train, by_epochs, ("torch",))


def _jax(batch: int, *rates: float) -> Learner:
    train, by_epochs = partial(train_jax, batch=batch), dict(zip(SEARCHED, rates))
    return Learner(f"JAX SGD {batch}", CYCLE.format(batch), train, by_epochs, ("jax", "optax"))


LEARNERS = (
    _pytorch("AdamW", 64, 0.002, 0.002, 0.001),
    _pytorch("AdamW", 256, 0.005, 0.01, 0.005),
    _pytorch("SGD", 64, 0.1, 0.1, 0.1),
    _pytorch("SGD", 256, 0.5, 0.5, 0.2),
    _jax(64, 0.1, 0.05, 0.1),
    _jax(256, 0.2, 0.2, 0.2),
    Learner("scikit-learn", SCIKIT, train_scikit, {1: 0.002}),
)
