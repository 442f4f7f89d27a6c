"""Factor scores: alignment, missing values, ordinal items, and what cannot be scored."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr, ndtri

import unmeasured as um
from graphs_zoo import latent_chain, two_group_chain
from unmeasured.models.fit import Fit
from unmeasured.models.scoring import _expectation_propagation

TEXT = "f =~ x1 + x2 + x3 + x4; g =~ x5 + x6 + x7 + x8; f ~~ g"


def drawn(n: int = 400, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows of two correlated factors, and the factors."""
    rng = np.random.default_rng(seed)
    latent = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], n)
    loadings = np.zeros((2, 8))
    loadings[0, :4] = 0.8, 0.7, 0.6, 0.7
    loadings[1, 4:] = 0.7, 0.8, 0.6, 0.7
    values = latent @ loadings + rng.normal(size=(n, 8)) * np.sqrt(1 - (loadings**2).sum(axis=0))
    return pd.DataFrame(values * 3.0 + 10.0, columns=[f"x{i}" for i in range(1, 9)]), latent


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return drawn()[0]


@pytest.fixture(scope="module")
def fit(rows: pd.DataFrame) -> Fit:
    return um.fit(TEXT, rows)


def test_scores_follow_their_rows_whatever_the_order_of_rows_and_columns(fit: Fit, rows: pd.DataFrame) -> None:
    whole = fit.scores(rows)
    shuffled = rows.sample(frac=1.0, random_state=1).iloc[:, ::-1].assign(name="someone")
    shuffled.index = [f"person {i}" for i in shuffled.index]
    again = fit.scores(shuffled, standard_errors=True)
    assert list(again.index) == list(shuffled.index)
    for i in (0, 17, 399):
        assert again.loc[f"person {i}", ["f", "g"]].to_numpy(dtype=float) == pytest.approx(whole.loc[i].to_numpy())


def test_a_missing_value_is_what_the_rest_of_the_row_expects(fit: Fit, rows: pd.DataFrame) -> None:
    holed = rows.copy()
    holed.loc[3, ["x1", "x6"]] = np.nan
    holed.loc[5] = np.nan
    scores = fit.scores(holed, standard_errors=True)
    whole = fit.scores(rows, standard_errors=True)
    assert scores.drop([3, 5]).equals(whole.drop([3, 5]))
    assert scores.loc[5].isna().all()
    assert (scores.loc[3, ["f_se", "g_se"]] > whole.loc[3, ["f_se", "g_se"]]).all()
    # The same by filling the holes with their expectation given the others, under the model.
    S, names = fit.implied_cov, list(fit.sample.names)
    out, kept = [names.index("x1"), names.index("x6")], [k for k, x in enumerate(names) if x not in ("x1", "x6")]
    mean = fit.sample.mean
    filled = holed.loc[[3]].copy()
    seen = holed.loc[3].to_numpy()[kept] - mean[kept]
    filled.loc[3, ["x1", "x6"]] = mean[out] + S[np.ix_(out, kept)] @ np.linalg.solve(S[np.ix_(kept, kept)], seen)
    assert fit.scores(filled).loc[3].to_numpy() == pytest.approx(scores.loc[3, ["f", "g"]].to_numpy(dtype=float))


def test_determinacy_is_the_correlation_with_the_latent() -> None:
    rows, latent = drawn(20_000, 3)
    fit = um.fit(TEXT, rows)
    for method in ("regression", "bartlett"):
        scores, expected = fit.scores(rows, method), fit.determinacy(method)
        for k, name in enumerate(("f", "g")):
            seen = np.corrcoef(scores[name], latent[:, k])[0, 1]
            assert expected.loc[name, "determinacy"] == pytest.approx(seen, abs=0.01)
            assert expected.loc[name, "se"] == pytest.approx(np.std(scores[name] - latent[:, k]), abs=0.02)


def test_weights_give_the_scores_of_complete_rows(fit: Fit, rows: pd.DataFrame) -> None:
    weights = fit.score_weights()
    by_hand = (rows - rows.mean())[list(weights.index)] @ weights
    assert np.allclose(by_hand, fit.scores(rows))


def test_expectation_propagation_is_the_expectation() -> None:
    # One latent and three items: integrate by brute force over a grid.
    loadings, thresholds = np.array([0.8, 0.6, -0.5]), np.array([-0.7, 0.2, 1.4])
    noise = 1 - loadings**2
    ends = np.concatenate([[-40.0], thresholds, [40.0]])
    codes = np.array([[0, 1, 3], [3, 3, 0], [2, 0, 1], [1, 2, 2]])
    low, high = ends[codes], ends[codes + 1]
    low[3, 1], high[3, 1] = -40.0, 40.0  # missing
    low[2, 2] = high[2, 2] = 0.3  # a continuous value
    mean, cov = _expectation_propagation(np.eye(1), loadings[:, None], noise, low, high)
    grid = np.linspace(-8, 8, 8001)
    for i in range(len(codes)):
        density = np.exp(-0.5 * grid**2)
        for j in range(3):
            sd = np.sqrt(noise[j])
            if low[i, j] == high[i, j]:
                density = density * np.exp(-0.5 * ((low[i, j] - loadings[j] * grid) / sd) ** 2)
            else:
                density = density * (
                    ndtr((high[i, j] - loadings[j] * grid) / sd) - ndtr((low[i, j] - loadings[j] * grid) / sd)
                )
        density /= density.sum()
        expected = (grid * density).sum()
        assert mean[i, 0] == pytest.approx(expected, abs=0.01)
        assert np.sqrt(cov[i, 0, 0]) == pytest.approx(np.sqrt((grid**2 * density).sum() - expected**2), abs=0.01)


def test_ordinal_items_score_closer_to_the_truth_than_their_codes() -> None:
    rows, latent = drawn(1500, 5)
    cuts = 10.0 + 3.0 * ndtri([0.55, 0.75, 0.87, 0.95])
    coarse = rows.apply(lambda column: np.digitize(column, cuts).astype(float) + 1.0)
    fit = um.fit(TEXT, um.as_sample(coarse, cor="polychoric"))
    scores = fit.scores(coarse, standard_errors=True)
    codes = ((coarse - coarse.mean()) / coarse.std()) @ fit.score_weights()
    for k, name in enumerate(("f", "g")):
        ours, theirs = (np.sqrt(np.mean((x[name] - latent[:, k]) ** 2)) for x in (scores, codes))
        assert ours < 0.95 * theirs
        assert np.sqrt((scores[f"{name}_se"] ** 2).mean()) == pytest.approx(ours, abs=0.03)
        assert fit.determinacy().loc[name, "determinacy"] == pytest.approx(
            np.corrcoef(scores[name], latent[:, k])[0, 1], abs=0.03
        )
    holed = coarse.copy()
    holed.loc[0, "x1"] = np.nan
    assert fit.scores(holed, standard_errors=True).loc[0, "f_se"] > scores.loc[0, "f_se"]
    with pytest.raises(um.UnmeasuredError, match="Bartlett scores are not defined for ordinal items"):
        fit.scores(coarse, "bartlett")
    strange = coarse.copy()
    strange.loc[7, "x2"] = 9.0
    with pytest.raises(um.DataError, match=r"Variable 'x2' has the value 9, which the rows the model was"):
        fit.scores(strange)


def test_scores_of_ranks_do_not_depend_on_the_units_of_a_variable() -> None:
    rows, latent = drawn(450, 9)
    plain = um.fit(TEXT, um.as_sample(rows, cor="spearman-normal"))
    bent = np.exp(rows / 3.0)
    other = um.fit(TEXT, um.as_sample(bent, cor="spearman-normal"))
    assert np.allclose(plain.scores(rows), other.scores(bent), atol=1e-6)
    assert np.corrcoef(other.scores(bent)["f"], latent[:, 0])[0, 1] > 0.85


def test_a_result_read_from_a_file_scores_as_before(tmp_path) -> None:
    rows = um.simulate.sample(um.simulate.realistic_parameters(latent_chain, rng=3), 500, rng=5)
    for frame, cor in ((rows, "pearson"), (rows, "spearman-normal"), (rows.round(0).clip(-2, 2), "polychoric")):
        search = um.LGES(cor=cor).fit(frame)
        again = um.Result.from_json(search.result_.to_json())
        assert np.allclose(again.fit.scores(frame), search.result_.fit.scores(frame), atol=1e-9)
        assert np.allclose(search.transform(frame), search.result_.fit.scores(frame))


def test_a_rotated_group_is_scored_in_the_rotation_that_is_reported() -> None:
    rows = um.simulate.sample(um.simulate.paper_parameters(two_group_chain, rng=3), 500, rng=5)
    result = um.Result(two_group_chain.cpdag(), um.fit(two_group_chain, rows))
    scores = result.fit.scores(rows)
    assert list(scores) == list(two_group_chain.latents)
    assert np.isfinite(scores.to_numpy()).all()


# Mistakes ---------------------------------------------------------------------------------------------------


def test_mistakes_get_sentences(fit: Fit, rows: pd.DataFrame) -> None:
    with pytest.raises(um.DataError, match=r"do not have these variables of the model: 'x3', 'x5'\. They have 'x1'"):
        fit.scores(rows.drop(columns=["x3", "x5"]))
    with pytest.raises(um.DataError, match=r"8 observed variables .* got rows without names and 5 columns"):
        fit.scores(rows.to_numpy()[:, :5])
    with pytest.raises(um.DataError, match="Scores are of rows; none were given"):
        fit.scores(None)
    with pytest.raises(um.UnmeasuredError, match="method must be one of 'regression', 'bartlett'; got 'ebm'"):
        fit.scores(rows, "ebm")
    with pytest.raises(um.DataError, match="Columns 'x1' hold text, not numbers"):
        fit.scores(rows.assign(x1="often"))
    with pytest.raises(um.ModelError, match="no latent variables"):
        um.fit("x1 ~ x2", rows).scores(rows)
    second = um.fit("f =~ x1 + x2 + x3; g =~ x4 + x5 + x6; h =~ f + g; h ~~ x7; x7 ~~ x7", rows)
    with pytest.raises(um.ModelError, match="Bartlett scores need indicators, and 'h' has none"):
        second.scores(rows, "bartlett")


def test_a_model_of_a_matrix_needs_means(rows: pd.DataFrame, fit: Fit) -> None:
    matrix = um.fit(TEXT, cov=rows.cov(), n_samples=len(rows))
    with pytest.raises(um.DataError, match=r"fitted to a matrix, which has no means.*score_weights"):
        matrix.scores(rows)
    assert np.allclose(matrix.scores(rows, mean=rows.mean()), fit.scores(rows), atol=1e-6)
    with pytest.raises(um.DataError, match="mean lacks these variables of the model: 'x8'"):
        matrix.scores(rows, mean=rows.mean().drop("x8"))
    with pytest.raises(um.DataError, match="8 finite numbers"):
        matrix.scores(rows, mean=[1.0, 2.0])


def test_arrays_and_pipelines(rows: pd.DataFrame) -> None:
    search = um.LGES().set_output(transform="pandas").fit(rows)
    frame = rows.set_index(pd.Index([f"p{i}" for i in range(len(rows))]))
    table = search.transform(frame)
    assert list(table.index) == list(frame.index)
    assert list(table) == list(search.get_feature_names_out()) == list(search.graph_.latents)
    plain = um.LGES().fit(rows.to_numpy())
    assert np.allclose(plain.transform(rows.to_numpy()), table)
    with pytest.raises(um.DataError, match="expecting 8 features"):
        plain.transform(rows.to_numpy()[:, :3])
    with pytest.raises(um.DataError, match="feature names should match"):
        search.transform(rows.rename(columns={"x1": "y1"}))
