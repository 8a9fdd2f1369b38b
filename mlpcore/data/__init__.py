"""Images and labels: finding, downloading, reading and scaling them.

Here belongs every format that images come in. Deformation belongs in `mlpcore.deformation`, files
of networks and runs in `mlpcore.store`.
"""
