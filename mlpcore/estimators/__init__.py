"""A classifier and a transformer that follow scikit-learn's conventions.

Code that translates between scikit-learn's conventions and this package belongs here: checks of
parameters and samples, labels, fitted attributes. Training belongs in `mlpcore.training`,
deformation in `mlpcore.deformation`.
"""
