"""The paper's routines timed on each backend, beside the machine's limits and other libraries.

`tools/speedup.py` is the command line. The parts, from the ground up:

timing         interleaved repeats, medians, spread
machine        the CPU, its caches, the GPU, the versions, and the bandwidth of each level of memory
problem        images and a network of an architecture, and errors beside the oracle's results
routines       the rows: what is checked and timed on a backend, and the least time it can take
peers          the same work by JAX, PyTorch and SciPy; who learns for `--to-error`, by mini-batches
measure        carries out a plan: all of the above, in order
results        times and what follows from them: what a JSON document holds
tables         text or Markdown; the paper's figures beside ours
chart          bars of the times, from the JSON documents of several runs
to_error       one budget of epochs after another, and the least time to each error
command        the options
"""
