"""The paper's routines timed on each backend, beside the machine's limits and other libraries.

`tools/speedup.py` is the command line. The parts, from the ground up:

timing      interleaved repeats, medians, spread
machine     the CPU, its caches, the GPU, the versions
limits      bandwidths and multiply-adds of a CPU and of a GPU
floors      the least time that a routine can take within such limits
problem     images and a network of an architecture, and errors beside the oracle's results
trained     a network of rectifiers that has learnt, and its active inputs
routines    what is checked and timed on a backend
peers       the same work by JAX, PyTorch and SciPy
results     times with ratios, rates and fractions: what a JSON document holds
claims      the paper's figures beside ours
measure     carries out a plan: all of the above, in order
tables      the results as text or Markdown
medians     one table from the JSON documents of several runs
command     the options
"""
