"""Results for other people: ``report/`` makes the page with its files, ``publish/`` tables and text for an article.

Takes results; gives files. Nothing is computed here. Read first: :mod:`~unmeasured.output.report.write` and
:mod:`~unmeasured.output.publish.publication`.
"""
