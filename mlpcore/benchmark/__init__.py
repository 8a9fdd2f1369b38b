"""The paper's routines timed: each backend, the machine's limits, and what others use instead.

`tools/speedup.py` is the command line. The parts:

problem     random data of an architecture, and what the oracle makes of it
routines    what is timed, and checked before, on a backend
peers       the same work by other libraries
timing      interleaved repeats, medians, spread
machine     what the machine is
limits      what it can do: bandwidths, multiply-adds
floors      what a routine costs at least on such a machine
results     ratios, rates and fractions from times
claims      the paper's figures beside ours
report      tables for a terminal, for Markdown, and the JSON document
"""
