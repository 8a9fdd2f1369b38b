"""The paper's routines timed on each backend, beside the machine's limits and other libraries.

`tools/speedup.py` is the command line. The parts, from the ground up:

timing         interleaved repeats, medians, spread
machine        the CPU, its caches, the GPU, the versions
limits         bandwidths and multiply-adds of the CPU
problem        images and a network of an architecture, and errors beside the oracle's results
floors         the least time that a routine can take within such limits
routines       the rows: what is checked and timed on a backend
peers          the same work by JAX, PyTorch and SciPy; mini-batches of these and of scikit-learn
measure        carries out a plan: all of the above, in order
results        times and what follows from them: what a JSON document holds
tables         text or Markdown; report_tables and claims, the paper's figures, are made of it
medians        one table, by chart a figure, from the JSON documents of several runs
learners       who learns for `--to-error`, and what all are given
search         learning rates of peers, tried on held-out digits
to_error       one budget of epochs after another, and the least time to each error
command        the options
"""
