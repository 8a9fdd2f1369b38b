"""Files of networks and runs: weights, a run's folder, exports to other programs.

Reports and pictures for people belong in `mlpcore.report`.
"""
