"""The paper's tables and figures, measured again on this implementation.

``catalogue`` lists the experiments, ``runner`` runs their parts, ``results`` writes what was found.
Nothing here prints: the command ``tcc experiments`` does.
"""
