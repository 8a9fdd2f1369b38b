"""The paper's routines timed: each backend, the machine's limits, and what others use instead.

`tools/speedup.py` is the command line. The parts:

problem     images and a network of an architecture, and what the oracle makes of them
routines    what is timed, and checked before, on a backend
peers       the same work by other libraries
checks      that a result is the oracle's, before it is timed
timing      interleaved repeats, medians, spread
machine     what the machine is
limits      what it can do: bandwidths, multiply-adds; device_limits, those of a GPU
floors      what a routine costs at least on such a machine
run         all of that together: a plan, and the report on it
results     ratios, rates and fractions from times
claims      the paper's figures beside ours
medians     of several runs, from their JSON documents
tables      the report's rows; output: for a terminal, as Markdown, as JSON; plot: as a chart
command     the options
"""
