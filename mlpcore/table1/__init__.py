"""The paper's experiment, its Table 1, from one command: `tools/reproduce.py`.

`experiment` says which runs it is made of, `progress` how far they are, `records` what has come
of them, `measure` what their outputs on the test set say, `tables` and `report` show it,
`evidence` keeps it in the repository, and `rerun` computes it again.
"""
