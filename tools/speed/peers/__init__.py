"""Other libraries on the same work, each checked before it is timed.

A peer that does the same on-line step gets the same images, order and initial weights, and
after some samples its weights have to be the float64 oracle's. One that computes something
else is compared with an oracle of what it does compute, where there is one, and says so.
"""

from collections.abc import Callable

from speed.peers import deformers, fann, jax_trainer, numpy_trainers, torch_trainers
from speed.peers.base import Peer, Trainer, not_installed, ready_trainer
from speed.peers.deformers import Deformer, ready_elastic
from speed.problem import Problem

_torch, _gpu = not_installed("torch"), torch_trainers.no_gpu


def _trainer(
    name: str,
    missing: Callable[[], str | None],
    make: Callable[[Problem, int], Trainer],
    other: str = "",
    alone: bool = False,
    on_device: bool = False,
) -> Peer:
    return Peer(name, "step", missing, ready_trainer(make), other, alone, on_device)


def _elastic(
    name: str, modules: tuple[str, ...], make: Callable[[Problem, int], Deformer], other: str
) -> Peer:
    return Peer(name, "deformation", not_installed(*modules), ready_elastic(make), other)


PEERS = (
    _trainer("JAX scan", not_installed("jax"), jax_trainer.JaxTrainer),
    _trainer("PyTorch by hand", _torch, torch_trainers.TorchTrainer, alone=True),
    _trainer("PyTorch autograd", _torch, torch_trainers.AutogradTrainer, alone=True),
    _trainer("NumPy", not_installed("numpy"), numpy_trainers.NumpyTrainer, alone=True),
    _trainer(
        "FANN",
        fann.missing,
        fann.FannTrainer,
        "tanh without the factor 1.7159, derivative clipped",
    ),
    _trainer(
        "scikit-learn",
        not_installed("sklearn"),
        numpy_trainers.SklearnTrainer,
        "plain tanh, softmax and cross-entropy",
    ),
    _trainer("JAX scan, GPU", jax_trainer.no_gpu, jax_trainer.GpuJaxTrainer, on_device=True),
    _trainer("PyTorch by hand, GPU", _gpu, torch_trainers.GpuTorchTrainer, on_device=True),
    _trainer("PyTorch autograd, GPU", _gpu, torch_trainers.GpuAutogradTrainer, on_device=True),
    _trainer("PyTorch CUDA graph", _gpu, torch_trainers.GraphTrainer, on_device=True),
    _trainer(
        "PyTorch compile, CUDA graph", _gpu, torch_trainers.CompiledGraphTrainer, on_device=True
    ),
    Peer("SciPy", "deformation", not_installed("scipy"), deformers.ready_scipy),
    _elastic(
        "torchvision",
        ("torchvision", "torch"),
        deformers.make_torchvision,
        "elastic part alone, 49 taps, smoothed within an image",
    ),
    _elastic(
        "albumentations",
        ("albumentations", "cv2"),
        deformers.make_albumentations,
        "elastic part alone, smoothed within an image",
    ),
    _elastic(
        "kornia",
        ("kornia", "torch"),
        deformers.make_kornia,
        "elastic part alone, smoothed within an image",
    ),
)
