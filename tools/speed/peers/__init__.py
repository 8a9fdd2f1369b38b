"""Other libraries on the same work, which is checked before it is timed."""

from functools import partial

from speed.peers.base import Peer
from speed.peers.jax_scan import OnLine, jax_gpu
from speed.peers.pytorch import ByHand, torch_gpu

#: PyTorch tries one thread as well: with so little work at a time more are often slower.
PEERS = (
    Peer("JAX scan", "step", "jax", OnLine, lambda n: {n}),
    Peer("PyTorch by hand", "step", "torch", ByHand, lambda n: {1, n}),
    Peer("PyTorch by hand, rectifiers", "step-sparse", "torch", ByHand, lambda n: {1, n}),
    Peer("JAX scan, GPU", "step", "jax", partial(OnLine, device="gpu"), lambda n: {1}, jax_gpu),
    Peer("PyTorch by hand, GPU", "step", "torch", partial(ByHand, device="cuda"), lambda n: {1},
         torch_gpu),
)  # fmt: skip
