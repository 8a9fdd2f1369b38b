"""The CUDA backend: kernels of ``cuda/``, launched by PyCUDA on a device.

Here belongs what knows of grids, device memory and kernels. The kernels themselves are in
``cuda/``; their emulation is for tests.
"""
