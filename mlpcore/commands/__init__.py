"""The `mlpcore` command: options, signals, printing and exit statuses.

Each subcommand is a module of this package, imported only when it is called. It turns options into
calls, and results into lines, JSON and an exit status. Computing belongs in the packages below, and
the list of the subcommands in `mlpcore.__main__`.
"""
