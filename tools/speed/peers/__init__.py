"""Other libraries: on the same work, checked before it is timed, and on the way to an error."""

from functools import partial

from speed.peers.base import Learner, Peer
from speed.peers.jax_scan import OnLine, jax_gpu, train_jax
from speed.peers.pytorch import ByHand, torch_gpu, train_pytorch

#: PyTorch tries one thread as well: with so little work at a time more are often slower.
PEERS = (
    Peer("JAX scan", "step", "jax", OnLine, lambda n: {n}),
    Peer("PyTorch by hand", "step", "torch", ByHand, lambda n: {1, n}),
    Peer("PyTorch by hand, rectifiers", "step-sparse", "torch", ByHand, lambda n: {1, n}),
    Peer("JAX scan, GPU", "step", "jax", partial(OnLine, device="gpu"), lambda n: {1}, jax_gpu),
    Peer("PyTorch by hand, GPU", "step", "torch", partial(ByHand, device="cuda"), lambda n: {1},
         torch_gpu),
)  # fmt: skip


#: Numbers of epochs for which learning rates were searched, on held-out digits. About half and
#: twice as much is worse or no better (benchmarks/results/2026-11-25-epyc-2-cores/peer-rates.json).
SEARCHED = 1, 3, 10

ADAMW, SGD = (partial(train_pytorch, optimiser=name) for name in ("AdamW", "SGD"))

LEARNERS = tuple(
    Learner(
        f"{name} {batch}",
        f"relu, cross-entropy, batch {batch}, one cycle, rate {', '.join(map(str, rates))}",
        partial(train, batch=batch),
        dict(zip(SEARCHED, rates)),
        modules,
    )
    for name, train, modules, batch, rates in (
        ("PyTorch AdamW", ADAMW, ("torch",), 256, (0.005, 0.01, 0.005)),
        ("PyTorch SGD", SGD, ("torch",), 64, (0.1, 0.1, 0.1)),
        ("PyTorch SGD", SGD, ("torch",), 256, (0.5, 0.5, 0.2)),
        ("JAX SGD", train_jax, ("jax", "optax"), 64, (0.1, 0.05, 0.1)),
        ("JAX SGD", train_jax, ("jax", "optax"), 256, (0.2, 0.2, 0.2)),
    )
)
