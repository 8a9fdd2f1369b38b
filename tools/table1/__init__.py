"""The paper's experiment, its Table 1, from one command: `tools/reproduce.py`.

A run is a folder. `experiment` plans and trains the runs, `records` reads and tests them, `tables`
and `report` show the results. `evidence` keeps them in the repository, and `rerun` trains a run
again from its evidence.
"""
