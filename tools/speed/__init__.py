"""The paper's routines timed on each backend, beside the machine's limits and other libraries.

`tools/speedup.py` is the command line. The parts, from the ground up:

timing      interleaved repeats, medians, spread
machine     the CPU, its caches, the GPU, the versions
limits      bandwidths and multiply-adds of a CPU and of a GPU
floors      the least time that a routine can take within such limits
problem     images and a network of an architecture, and errors beside the oracle's results
trained     a network of rectifiers that has learnt, and its active inputs
routines    what is checked and timed on a backend
peers       the same work by JAX, PyTorch and SciPy; mini-batches of PyTorch and scikit-learn
results     times with ratios, rates and fractions: what a JSON document holds
claims      the paper's figures beside ours
measure     carries out a plan: all of the above, in order
tables      the results as text or Markdown
lesson      what is learnt until a test error is reached, and what a contestant gives back
ours        our recipes as contestants
search      learning rates of peers, tried on held-out digits
to_error    the contest: one budget of epochs after another, and the least time to each error
error_tables  its results as text or Markdown
contests    its options
medians     one table from the JSON documents of several runs
chart       a dot plot of them
command     the options
"""
