"""The CUDA backend: launches the kernels of ``cuda/`` on an NVIDIA device.

Code that knows about grids, device memory and kernels belongs here.

- `backend`: the operations; `deformation`: the displacement fields of many images.
- `network`: a network on the device, with two schedules of training, `streaming` and `resident`.
- `availability`: whether this process has a device.
- `driver`: the driver of real devices; `memory`: arrays on a device.
- `launch`: launches of kernels; `plan`: which multiprocessor keeps which weights.
- `sources`: the sources of the kernels, and what the host reads there; `nvcc`: the compiler, and
  compiled kernels.
"""
