"""Sentences of the library as the page says them: what stands on its controls, not arguments of Python."""

from __future__ import annotations

import re

from unmeasured.remarks import Remark, severity_of

_IN_THE_PAGE = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"LGES\(tolerance=0\) reports", "With 0 as the misfit that is tolerated (in Search) the answer has"),
        (r"um\.stability shows", "Stability (in Result) shows"),
        (r"LGES\(tolerance=([\d.]+)\)", r"a search that tolerates a misfit of \1 (in Search)"),
        (r"Other partitions in result_\.partitions:", "Other partitions (in Partitions):"),
        (r"\(result_\.local_dependence\)", "(in Fit)"),
        (r"\bcor=.pearson.", "“all continuous”"),
        (r"\bcor=.polychoric.", "“all ordinal”"),
        (r"\bcor=.spearman-normal.", "“ranks”"),
        (r"\bcor=.auto.", "“looked at”"),
        (r"\bmissing=.listwise.", "“drop the row”"),
        (r"\bmissing=.pairwise.", "“pair by pair”"),
        (r"\bmissing=.ml.", "“maximum likelihood”"),
        (r"\bn_samples must\b", "The number of persons must"),
        (r"\bn_samples\b", "the number of persons"),
        (r"\bn_latents\b", "the number of latents"),
        (r"\bmax_group_size\b", "the largest group of latents"),
        (r"\btime_limit\b", "“seconds at most”"),
        (r"Turn them into numbers with pandas\.to_numeric", "Write them as numbers in the file"),
        (r", or say that they have one \(pandas: cat\.as_ordered\(\)\)", ""),
        (r"replace it by NaN first", "name it as a missing code"),
        (r"(?<=[.,] )Select the numeric columns first", "Leave these out"),
        (r"Name its encoding, such as encoding='latin-1' for older files", "Save it in UTF-8"),
        (r", such as encoding='utf-16'", "; save it in UTF-8"),
        (r", or ask for the nearest matrix that is \(repair=True\)", ""),
        (r" Other files: read them with pandas and pass the data frame\.", " Save it as one of these."),
        (r" \(fit_cov of a search\)", ""),
    )
)


def in_the_page(text: str) -> str:
    """A sentence of the library as the page says it.

    >>> in_the_page("What is smaller is not reported. LGES(tolerance=0) reports all that the exact criterion pays for.")
    'What is smaller is not reported. With 0 as the misfit that is tolerated (in Search) the answer has all that the
    exact criterion pays for.'
    """
    for pattern, words in _IN_THE_PAGE:
        text = pattern.sub(words, text)
    return text


def remark_in_the_page(remark: str) -> Remark:
    """A remark as the page says it, as severe as it was."""
    return Remark(in_the_page(remark), severity_of(remark))
