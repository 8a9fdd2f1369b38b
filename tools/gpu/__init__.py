"""The parts of `tools/gpu_check.py` that import mlpcore or look at the machine."""
