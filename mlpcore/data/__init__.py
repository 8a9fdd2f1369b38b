"""Images and their labels: finding, downloading, reading and scaling them.

Every file format of images belongs here. Deformation belongs in `mlpcore.deformation`, and files of
networks and runs belong in `mlpcore.store`.
"""
