"""The classifier and the deformer in scikit-learn's manner.

Here belongs what scikit-learn's conventions ask for. The training itself belongs in
`mlpcore.training`.
"""
