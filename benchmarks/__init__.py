"""Studies and records beside the package: ``python -m benchmarks NAME``, from the root of the repository.

``golden`` compares complete answers of about 200 runs with those that are stored (:mod:`benchmarks.golden`); every
other name is a study behind published numbers: ``python -m benchmarks --help``. ``records/`` holds what studies
found, ``experiments/`` what they ran. Read first: :mod:`~benchmarks.experiment`, then :mod:`~benchmarks.runner`.
"""
