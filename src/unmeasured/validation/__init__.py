"""Is it found again? Stability in replicates, confirmation in other rows, searches with other penalties.

Takes a search or its result, and rows; gives tables and agreements. ``replicates/`` holds
:func:`~unmeasured.validation.replicates.run.stability`, ``confirmation`` estimates in other rows what was found in
some, ``penalty_path`` searches with several penalties.
"""
