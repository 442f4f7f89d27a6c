"""Tables of correlations as they are pasted from articles."""

from __future__ import annotations

import numpy as np
import pytest

import unmeasured as um

CORRELATIONS = [0.62, -0.41, -0.55, -0.29, -0.44, 0.58]
DEVIATIONS = [0.84, 0.91, 0.77, 1.10]
# What the table looks like, and whether it has standard deviations.
TABLES = {
    "APA style": (
        True,
        "Table 2\n"
        "Means, Standard Deviations, and Correlations of Study Variables\n"
        "\n"
        "Variable\tM\tSD\t1\t2\t3\t4\n"
        "1. Anxiety\t3.21\t0.84\t—\n"
        "2. Depression\t2.87\t0.91\t.62**\t—\n"
        "3. Self-esteem\t3.65\t0.77\t−.41**\t−.55**\t—\n"
        "4. Life satisfaction\t4.02\t1.10\t−.29*\t−.44**\t.58**\t—\n"
        "Note. N = 212. *p < .05. **p < .01.\n"
    ),
    "a title on the line of its number": (
        False,
        "Table 1. Correlations among variables\n"
        "\n"
        "                      1       2       3      4\n"
        "1. Anxiety            -\n"
        "2. Depression        .62***   -\n"
        "3. Self-esteem      -.41***  -.55*** -\n"
        "4. Life satisfaction -.29**  -.44***  .58*** -\n"
        "*p < .05, **p < .01, ***p < .001\n"
    ),
    "reliabilities in brackets": (
        True,
        "Table 3\n"
        "Correlations (Cronbach's alpha on the diagonal)\n"
        "\t1\t2\t3\t4\n"
        "1. Anxiety\t(.88)\t\t\t\n"
        "2. Depression\t.62**\t(.91)\t\t\n"
        "3. Self-esteem\t–.41**\t–.55**\t(.85)\t\n"
        "4. Satisfaction\t–.29**\t–.44**\t.58**\t(.90)\n"
        "M\t3.21\t2.87\t3.65\t4.02\n"
        "SD\t0.84\t0.91\t0.77\t1.10\n"
        "Note. N = 212. Alpha coefficients in parentheses. ** p < .01.\n"
    ),
    "upper triangle without a diagonal": (
        False,
        "Variable\t1\t2\t3\t4\n"
        "1. Anxiety\t\t.62\t-.41\t-.29\n"
        "2. Depression\t\t\t-.55\t-.44\n"
        "3. Esteem\t\t\t\t.58\n"
        "4. Satisfaction\t\t\t\t\n"
    ),
    "thin and em spaces": (
        True,
        "Variable\u2003M\u2003SD\u20031\u20032\u20033\u20034\n"
        "1.\u2009Anxiety\u20033.21\u20030.84\u2003–\n"
        "2.\u2009Depression\u20032.87\u20030.91\u2003.62\u2009**\u2003–\n"
        "3.\u2009Self-esteem\u20033.65\u20030.77\u2003−\u2009.41**\u2003−\u2009.55**\u2003–\n"
        "4.\u2009Satisfaction\u20034.02\u20031.10\u2003−.29*\u2003−.44**\u2003.58**\u2003–\n"
    ),
    "mean and deviation in one cell": (
        True,
        "Variable\tM (SD)\t1\t2\t3\t4\n"
        "1. Anxiety\t3.21 (0.84)\t(.88)\n"
        "2. Depression\t2.87 (0.91)\t.62**\t(.91)\n"
        "3. Self-esteem\t3.65 (0.77)\t-.41**\t-.55**\t(.85)\n"
        "4. Satisfaction\t4.02 (1.10)\t-.29*\t-.44**\t.58**\t(.90)\n"
    ),
    "superscripts and numbers without points": (
        True,
        "Variable\tM\tSD\tα\t1\t2\t3\t4\n"
        "1 Anxiety\t3.21\t0.84\t.88\t—\n"
        "2 Depression\t2.87\t0.91\t.91\t.62ᵃ\t—\n"
        "3 Self-esteem\t3.65\t0.77\t.85\t-.41**\t-.55**\t—\n"
        "4 Satisfaction\t4.02\t1.10\t.90\t-.29**\t-.44†\t.58**\t—\n"
        "Note. †p<.10 *p<.05\n"
    ),
    "confidence intervals on lines of their own": (
        True,
        "Variable\tM\tSD\t1\t2\t3\n"
        "1. Anxiety\t3.21\t0.84\t\t\t\n"
        "\t\t\t\t\t\n"
        "2. Depression\t2.87\t0.91\t.62**\t\t\n"
        "\t\t\t[.53, .70]\t\t\n"
        "\t\t\t\t\t\n"
        "3. Self-esteem\t3.65\t0.77\t-.41**\t-.55**\t\n"
        "\t\t\t[-.52, -.29]\t[-.64, -.45]\t\n"
        "\t\t\t\t\t\n"
        "4. Satisfaction\t4.02\t1.10\t-.29**\t-.44**\t.58**\n"
        "\t\t\t[-.41, -.16]\t[-.54, -.32]\t[.48, .66]\n"
        "\t\t\t\t\t\n"
        "Note. Values in square brackets indicate the 95% confidence interval for each correlation.\n"
    ),
    "Markdown": (
        False,
        "| Variable | 1 | 2 | 3 | 4 |\n"
        "|---|---|---|---|---|\n"
        "| 1. Anxiety | — | | | |\n"
        "| 2. Depression | .62** | — | | |\n"
        "| 3. Self-esteem | -.41** | -.55** | — | |\n"
        "| 4. Satisfaction | -.29** | -.44** | .58** | — |\n"
    ),
    "names that end in numbers": (
        False,
        "Scale          1      2      3     4\n"
        "Speed 1        -\n"
        "Speed 2        .62**  -\n"
        "Error 1       -.41** -.55**  -\n"
        "Error 2       -.29*  -.44**  .58**  -\n"
    ),
    "a column of ranges": (
        True,
        "Variable\tRange\tM\tSD\t1\t2\t3\t4\n"
        "1. Anxiety\t1–5\t3.21\t0.84\t—\n"
        "2. Depression\t1–5\t2.87\t0.91\t.62**\t—\n"
        "3. Self-esteem\t0–3\t3.65\t0.77\t−.41**\t−.55**\t—\n"
        "4. Satisfaction\t1–7\t4.02\t1.10\t−.29*\t−.44**\t.58**\t—\n"
    ),
    "means plus or minus deviations": (
        True,
        "Variable\tMean ± SD\t1\t2\t3\t4\n"
        "1. Anxiety\t3.21 ± 0.84\t—\n"
        "2. Depression\t2.87 ± 0.91\t.62**\t—\n"
        "3. Self-esteem\t3.65 ± 0.77\t−.41**\t−.55**\t—\n"
        "4. Satisfaction\t4.02 ± 1.10\t−.29*\t−.44**\t.58**\t—\n"
    ),
    "confidence intervals beside correlations": (
        False,
        "Variable\t1\t2\t3\t4\n"
        "1. Anxiety\t—\n"
        "2. Depression\t.62** [.53, .70]\t—\n"
        "3. Self-esteem\t−.41** [−.52, −.29]\t−.55** [-.64, -.45]\t—\n"
        "4. Satisfaction\t−.29* [-.41, -.16]\t−.44** [-.54, -.32]\t.58** [.48, .66]\t—\n"
    ),
    "statistics below and a footnote": (
        True,
        "Variable\t1\t2\t3\t4\n"
        "Anxiety\t1.00\t\t\t\n"
        "Depression\t0.62\t1.00\t\t\n"
        "Self-esteem\t-0.41\t-0.55\t1.00\t\n"
        "Satisfaction\t-0.29\t-0.44\t0.58\t1.00\n"
        "Mean\t3.21\t2.87\t3.65\t4.02\n"
        "SD\t0.84\t0.91\t0.77\t1.10\n"
        "Cronbach’s alpha\t.88\t.91\t.85\t.90\n"
        "a Measured at T1.\n"
    ),
    "statistics behind the correlations": (
        True,
        "Variable\t1\t2\t3\t4\tM\tSD\tα\n"
        "1. Anxiety\t—\t\t\t\t3.21\t0.84\t.88\n"
        "2. Depression\t.62\t—\t\t\t2.87\t0.91\t.91\n"
        "3. Esteem\t-.41\t-.55\t—\t\t3.65\t0.77\t.85\n"
        "4. Sat\t-.29\t-.44\t.58\t—\t4.02\t1.10\t.90\n"
    ),
    "numbers of persons": (
        True,
        "Variable n M SD 1 2 3 4\n"
        "1. Anxiety 212 3.21 0.84 —\n"
        "2. Depression 212 2.87 0.91 .62** —\n"
        "3. Esteem 210 3.65 0.77 -.41** -.55** —\n"
        "4. Satisfaction 209 4.02 1.10 -.29* -.44** .58** —\n"
    ),
    "output of R": (
        False,
        "         Anxiety   Dep   Est   Sat\n"
        "Anxiety     1.00    NA    NA    NA\n"
        "Dep         0.62  1.00    NA    NA\n"
        "Est        -0.41 -0.55  1.00    NA\n"
        "Sat        -0.29 -0.44  0.58  1.00\n"
    ),
    "output of SPSS": (
        False,
        "Correlations\n"
        "\t\tAnxiety\tDep\tEst\tSat\n"
        "Anxiety\tPearson Correlation\t1\t.620**\t-.410**\t-.290**\n"
        "\tSig. (2-tailed)\t\t.000\t.000\t.000\n"
        "\tN\t212\t212\t212\t212\n"
        "Dep\tPearson Correlation\t.620**\t1\t-.550**\t-.440**\n"
        "\tSig. (2-tailed)\t.000\t\t.000\t.000\n"
        "\tN\t212\t212\t212\t212\n"
        "Est\tPearson Correlation\t-.410**\t-.550**\t1\t.580**\n"
        "\tSig. (2-tailed)\t.000\t.000\t\t.000\n"
        "\tN\t212\t212\t212\t212\n"
        "Sat\tPearson Correlation\t-.290**\t-.440**\t.580**\t1\n"
        "\tSig. (2-tailed)\t.000\t.000\t.000\t\n"
        "\tN\t212\t212\t212\t212\n"
        "**. Correlation is significant at the 0.01 level (2-tailed).\n"
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", TABLES)
def test_tables_are_read_as_they_are_pasted(form):
    has_deviations, text = TABLES[form]
    matrix = um.read_matrix(text)
    sd = np.sqrt(np.diag(matrix))
    assert np.allclose(sd, DEVIATIONS if has_deviations else 1.0)
    assert np.allclose((matrix / np.outer(sd, sd)).to_numpy()[np.tril_indices(4, -1)], CORRELATIONS)
    assert np.allclose(matrix, matrix.T)
    numbered = form == "names that end in numbers"
    assert matrix.columns[0] == ("Speed 1" if numbered else "Anxiety")
    assert not any(str(name)[0].isdigit() for name in matrix.columns)


def test_columns_are_numbered_with_points_and_labels_explain_codes():
    text = "Variables 1. 2. 3.\n1. Age —\n2. Gender (1 = female) .02 —\n3. Self-esteem (RSES) -.12* .22** —\n"
    matrix = um.read_matrix(text)
    assert list(matrix.columns) == ["Age", "Gender (1 = female)", "Self-esteem (RSES)"]
    assert matrix.iloc[2].tolist() == [-0.12, 0.22, 1.0]


@pytest.mark.parametrize("text", ["PA NA\n1. PA —\n2. NA -.20 —", "1 PA —\n2 NA -.20 —", "PA 1\nNA -.20 1"])
def test_negative_affect_is_not_a_missing_value(text):
    matrix = um.read_matrix(text)
    assert list(matrix.columns) == ["PA", "NA"]
    assert matrix.loc["PA", "NA"] == -0.2


def test_two_samples_in_one_table_are_refused_with_a_hint():
    text = "Variable\t1\t2\t3\n1. a\t—\t.5\t.4\n2. b\t.6\t—\t.3\n3. c\t.2\t.1\t—\nNote. Women below, men above.\n"
    with pytest.raises(um.UnmeasuredError, match="keep one of the two triangles"):
        um.read_matrix(text)
