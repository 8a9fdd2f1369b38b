"""The paper's experiment, its Table 1, from one command: `tools/reproduce.py`.

`experiment` says which runs it is made of, `data` finds what they learn from, `work` trains
them, `progress` says how far they are, `records` what has come of them, `measure` what their
outputs on the test set are worth, `tables` and `report` show it, `collect` keeps it in the
repository as `evidence`, whose table `readme` puts into a page, and `rerun` computes a run of
that again.
"""
