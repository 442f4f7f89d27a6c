"""Studies and records beside the package: ``python -m benchmarks NAME``, from the root of the repository.

``golden``   complete answers of about 200 runs, to compare before and after a change (:mod:`benchmarks.golden`)
"""
