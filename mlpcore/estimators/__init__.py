"""A classifier and a transformer in scikit-learn's manner, and a classifier in River's.

Code that translates between these conventions and this package belongs here: checks of
parameters and samples, labels, fitted attributes. Training belongs in `mlpcore.training`,
deformation in `mlpcore.deformation`.
"""
