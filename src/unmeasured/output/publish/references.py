"""Works that a publication of a run cites: as the style of the American Psychological Association lists them, and "
"as BibTeX.

Only what a run really used is cited (:func:`cited`), so that neither list has to be thinned out by hand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from unmeasured.output.publish.tables import effects_of
from unmeasured.output.report.run import Run


@dataclass(frozen=True)
class Reference:
    """A work: its key, kind and fields as BibTeX has them, and how text cites and lists it."""

    key: str
    kind: str
    cited_as: str  # within a sentence: "Schwarz, 1978"
    listed_as: str
    fields: dict[str, str] = field(default_factory=dict)

    def to_bibtex(self) -> str:
        """The entry for a .bib file."""
        lines = [f"  {name} = {{{value}}}," for name, value in self.fields.items()]
        return "\n".join([f"@{self.kind}{{{self.key},", *lines, "}"])


def _article(
    key: str,
    cited: str,
    authors: str,
    names: str,
    year: int,
    title: str,
    journal: str,
    volume: str,
    pages: str,
    doi: str,
) -> Reference:
    listed = f"{names} ({year}). {title}. {journal}, {volume}, {pages}. https://doi.org/{doi}"
    number = volume.partition("(")
    fields = {"author": authors, "year": str(year), "title": f"{{{title}}}", "journal": journal, "volume": number[0]}
    if number[1]:
        fields["number"] = number[2].rstrip(")")
    fields |= {"pages": pages.replace("–", "--"), "doi": doi}
    return Reference(key, "article", cited, listed, fields)


LGES = Reference(
    "dong2026lges",
    "inproceedings",
    "Dong et al., 2026",
    "Dong, X., Ng, I., Dai, H., Sun, J., Song, X., Spirtes, P., & Zhang, K. (2026). Score-based greedy search for "
    "structure identification of partially observed causal models. International Conference on Learning "
    "Representations.",
    {
        "author": "Dong, Xinshuai and Ng, Ignavier and Dai, Haoyue and Sun, Jiaqi and Song, Xiangchen and Spirtes, "
        "Peter "
        "and Zhang, Kun",
        "year": "2026",
        "title": "{Score-based Greedy Search for Structure Identification of Partially Observed Causal Models}",
        "booktitle": "International Conference on Learning Representations",
    },
)
BIC = _article(
    "schwarz1978",
    "Schwarz, 1978",
    "Schwarz, Gideon",
    "Schwarz, G.",
    1978,
    "Estimating the dimension of a model",
    "The Annals of Statistics",
    "6(2)",
    "461–464",
    "10.1214/aos/1176344136",
)
EXTENDED_BIC = _article(
    "chen2008",
    "Chen & Chen, 2008",
    "Chen, Jiahua and Chen, Zehua",
    "Chen, J., & Chen, Z.",
    2008,
    "Extended Bayesian information criteria for model selection with large model spaces",
    "Biometrika",
    "95(3)",
    "759–771",
    "10.1093/biomet/asn034",
)
ADVENTITIOUS = _article(
    "wu2015",
    "Wu & Browne, 2015",
    "Wu, Hao and Browne, Michael W.",
    "Wu, H., & Browne, M. W.",
    2015,
    "Quantifying adventitious error in a covariance structure as a random effect",
    "Psychometrika",
    "80(3)",
    "571–600",
    "10.1007/s11336-015-9451-3",
)
CUTOFFS = _article(
    "hu1999",
    "Hu & Bentler, 1999",
    "Hu, Li-tze and Bentler, Peter M.",
    "Hu, L., & Bentler, P. M.",
    1999,
    "Cutoff criteria for fit indexes in covariance structure analysis: Conventional criteria versus new alternatives",
    "Structural Equation Modeling",
    "6(1)",
    "1–55",
    "10.1080/10705519909540118",
)
POLYCHORIC = _article(
    "olsson1979",
    "Olsson, 1979",
    "Olsson, Ulf",
    "Olsson, U.",
    1979,
    "Maximum likelihood estimation of the polychoric correlation coefficient",
    "Psychometrika",
    "44(4)",
    "443–460",
    "10.1007/BF02296207",
)
EM = _article(
    "dempster1977",
    "Dempster et al., 1977",
    "Dempster, A. P. and Laird, N. M. and Rubin, D. B.",
    "Dempster, A. P., Laird, N. M., & Rubin, D. B.",
    1977,
    "Maximum likelihood from incomplete data via the EM algorithm",
    "Journal of the Royal Statistical Society: Series B",
    "39(1)",
    "1–22",
    "10.1111/j.2517-6161.1977.tb01600.x",
)
ROBUST = _article(
    "yuan2000",
    "Yuan & Bentler, 2000",
    "Yuan, Ke-Hai and Bentler, Peter M.",
    "Yuan, K.-H., & Bentler, P. M.",
    2000,
    "Three likelihood-based methods for mean and covariance structure analysis with nonnormal missing data",
    "Sociological Methodology",
    "30(1)",
    "165–200",
    "10.1111/0081-1750.00078",
)
EFFECTS = _article(
    "maathuis2009",
    "Maathuis et al., 2009",
    'Maathuis, Marloes H. and Kalisch, Markus and B{\\"u}hlmann, Peter',
    "Maathuis, M. H., Kalisch, M., & Bühlmann, P.",
    2009,
    "Estimating high-dimensional intervention effects from observational data",
    "The Annals of Statistics",
    "37(6A)",
    "3133–3164",
    "10.1214/09-AOS685",
)
NESTING = _article(
    "bentler2010",
    "Bentler & Satorra, 2010",
    "Bentler, Peter M. and Satorra, Albert",
    "Bentler, P. M., & Satorra, A.",
    2010,
    "Testing model nesting and equivalence",
    "Psychological Methods",
    "15(2)",
    "111–123",
    "10.1037/a0019625",
)
INVARIANCE = _article(
    "chen2007",
    "Chen, 2007",
    "Chen, Fang Fang",
    "Chen, F. F.",
    2007,
    "Sensitivity of goodness of fit indexes to lack of measurement invariance",
    "Structural Equation Modeling",
    "14(3)",
    "464–504",
    "10.1080/10705510701301834",
)
LAVAAN = _article(
    "rosseel2012",
    "Rosseel, 2012",
    "Rosseel, Yves",
    "Rosseel, Y.",
    2012,
    "lavaan: An R package for structural equation modeling",
    "Journal of Statistical Software",
    "48(2)",
    "1–36",
    "10.18637/jss.v048.i02",
)


def software(run: Run) -> Reference:
    """The package itself, in the version that made the run."""
    version, year = run.about.versions.get("unmeasured", ""), run.about.made[:4] or "n.d."
    return Reference(
        "unmeasured",
        "software",
        f"The unmeasured developers, {year}",
        f"The unmeasured developers ({year}). unmeasured (Version {version}) [Computer software].",
        {
            "author": "{The unmeasured developers}",
            "year": year,
            "title": "{unmeasured: latent variables, their indicators and how they cause one another}",
            "version": version,
        },
    )


def tolerated(run: Run) -> float:
    """The misfit that was tolerated, as an RMSEA; missing where the run does not say."""
    if run.about.tolerance is not None:
        return run.about.tolerance
    given = run.result.options.get("tolerance", 0.0)
    return float(given) if isinstance(given, int | float) else math.nan


def cited(run: Run) -> tuple[Reference, ...]:
    """The works that a text on this run cites, in the order of their authors."""
    result, method = run.result, run.result.method
    sample, options = result.sem.sample, result.options
    found = [software(run), CUTOFFS]
    if method.startswith("LGES"):
        found.append(LGES)
        if options.get("criterion", "bic") == "bic":
            found += [BIC, EXTENDED_BIC]
        if tolerated(run) > 0:
            found.append(ADVENTITIOUS)
    elif method.startswith("ExactSearch"):
        found += [LGES, BIC]
    if "ordinal" in sample.kinds:
        found.append(POLYCHORIC)
    if has_missing(run) and by_em(run):
        found.append(EM)
    if result.fit.robust is not None and result.fit.robust.estimator == "MLR":
        found.append(ROBUST)
    if effects_of(result) is not None and not math.isinf(sample.n):
        found.append(EFFECTS)
    if run.comparison is not None:
        found.append(NESTING)
    if run.shared is not None:
        found.append(INVARIANCE)
    return tuple(sorted(found, key=lambda work: work.listed_as.casefold()))


def has_missing(run: Run) -> bool:
    """Whether some values of the rows were missing."""
    return bool(run.about.missing)


def by_em(run: Run) -> bool:
    """Whether the moments of rows with missing values were estimated by maximum likelihood."""
    return run.result.options.get("missing", "ml") == "ml" and "ordinal" not in run.result.sem.sample.kinds


def bibliography(run: Run) -> str:
    """The works as the text of a .bib file."""
    return "\n\n".join(work.to_bibtex() for work in cited(run)) + "\n"
