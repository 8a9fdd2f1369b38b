"""What people look at: progress on a terminal, tables, reports, figures, previews.

Here belongs every text and picture of a result. The figures of merit themselves belong in
`mlpcore.evaluation`, options and exit statuses in `mlpcore.commands`.
"""
