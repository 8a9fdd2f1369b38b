"""Files that the library reads again: weights, the folders of runs, exports to other programs.

Reports and pictures for people belong in `mlpcore.report`.
"""
