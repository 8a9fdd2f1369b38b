"""The deformation as a transform of other libraries' pipelines.

`mlpcore.transforms.torchvision` and `mlpcore.transforms.albumentations` need these libraries, and
are imported only where they are used. Thin classes belong here: what a library calls images, masks,
keypoints and random numbers. The deformation itself belongs in `mlpcore.deformation`.
"""
