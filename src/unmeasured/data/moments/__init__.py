"""Moments of rows that are not plain: ordinal variables, missing values, skewed variables, large tables.

``ordinal`` estimates polychoric and polyserial correlations from counts (``tally``, ``distinct``, ``margins``),
``missing`` the moments of rows with missing values, ``influence`` the effective sample size of ordinal rows,
``normality`` and ``transform`` the normal scores of skewed variables.
"""
