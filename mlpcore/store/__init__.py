"""Files of networks and of runs: weights, a run's folder, exports to other programs.

Here belongs every format that the library writes to be read again. Reports and pictures for people
belong in `mlpcore.report`.
"""
