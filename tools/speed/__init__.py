"""The paper's routines timed on each backend, beside other libraries. `tools/speedup.py` is the
command line.

timing         interleaved repeats, medians, spread
problem        images and a network of an architecture, and errors beside the oracle's results
routines       the rows: what is checked and timed on a backend
peers          the same work by JAX and PyTorch; who learns for `--to-error`, by mini-batches
measure        carries out a plan: all of the above, in order
tables         Markdown; the paper's figures beside ours
to_error       one budget of epochs after another, and the least time to each error
command        the options
"""
