"""From files, tables and matrices to a :class:`~unmeasured.data.sample.Sample`.

A sample holds what every analysis starts from: names, covariance or correlations, N, types of variables, groups of
people, covariates and outcomes, and remarks on the data. Input is validated here and nowhere else.

Read first: :mod:`~unmeasured.data.sample`. Then :mod:`~unmeasured.data.files` (reading files),
:mod:`~unmeasured.data.moments` (correlations of ordinal variables and of rows with missing values),
:mod:`~unmeasured.data.columns` (which columns are suspect), :mod:`~unmeasured.data.datasets` (bundled data sets).
"""
