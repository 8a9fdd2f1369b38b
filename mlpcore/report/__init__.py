"""What people look at: progress on a terminal, tables, reports, figures, contact sheets.

Nothing here decides or computes a result: `mlpcore.evaluation` computes, `mlpcore.commands` reads
options and returns exit statuses.
"""
