"""Other libraries on the same work, each checked before it is timed."""

from functools import partial

from speed.peers.base import Peer
from speed.peers.jax_scan import check_jax, jax_gpu
from speed.peers.pytorch import check_autograd, check_by_hand, check_graph, few_or_all, torch_gpu
from speed.peers.scipy_deformation import check_scipy


def _one(_: int) -> list[int]:
    return [1]


PEERS = (
    Peer("JAX scan", "step", "jax", check_jax),
    Peer("PyTorch by hand", "step", "torch", check_by_hand, few_or_all),
    Peer("PyTorch autograd", "step", "torch", check_autograd, few_or_all),
    Peer("JAX scan, GPU", "step", "jax", partial(check_jax, device="gpu"), gpu=jax_gpu),
    *(
        Peer(name, "step", "torch", check, gpu=torch_gpu)
        for name, check in (
            ("PyTorch by hand, GPU", partial(check_by_hand, device="cuda")),
            ("PyTorch autograd, GPU", partial(check_autograd, device="cuda")),
            ("PyTorch CUDA graph", check_graph),
            ("PyTorch compile, CUDA graph", partial(check_graph, compiled=True)),
        )
    ),
    Peer("SciPy", "deformation", "scipy", check_scipy, _one),
)
