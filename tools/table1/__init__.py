"""The paper's experiment, its Table 1, from one command: `tools/reproduce.py`.

`command` trains the networks by `mlpcore train`, each in a folder of its own. `evidence` keeps what
has come of a run in the repository, and `tables` shows it.
"""
