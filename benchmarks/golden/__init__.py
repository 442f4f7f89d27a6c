"""The golden record: complete answers of about 200 runs, to show what a change of the code changes.

::

    cases/        named runs, each a small function that returns what the package gave
    describe.py   what the package gave, in the neutral terms of the record: the only file that reads attributes
    counts.py     numbers of searches, fits and iterations
    run.py        one case, or all of them in two processes
    record.py     the stored form: a JSON file for each family of cases below record/
    compare.py    differences by kind: structure, numbers, slower; sentences, trace, counts
    changelog.py  the reason of accepted differences, in the changelog
    __main__.py   python -m benchmarks golden

Structure is compared exactly, numbers to the tolerances in :mod:`benchmarks.golden.compare`, and counts may not grow by
more than is said there: these gate. Sentences, the trace and other counts are shown where they differ. The record says
what the code gave when an entry was accepted; it is no proof that this was right. Begin with ``cases/`` and
``compare.py``.
"""
