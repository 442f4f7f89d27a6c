"""Random structures, parameters and samples."""

from __future__ import annotations

import math
from importlib.resources import files

import numpy as np
import pytest

from unmeasured import simulate
from unmeasured.errors import GraphError, ModelError, UnmeasuredError
from unmeasured.graphs import DAG, is_gnfm, is_one_factor
from unmeasured.simulate import (
    Parameters,
    leaky_relu,
    paper_parameters,
    random_gnfm,
    random_one_factor,
    realistic_parameters,
    sample,
)

# shared_child:  L1 ──► L2       a, b measure L1; c, d measure L2; e measures both.
#                /│╲   /│╲
#               a b  e  c d
SHARED_CHILD = DAG.from_edges(
    [("L1", "L2"), ("L1", "a"), ("L1", "b"), ("L2", "c"), ("L2", "d"), ("L1", "e"), ("L2", "e")],
    latents=["L1", "L2"],
    names=["L1", "L2", "a", "b", "c", "d", "e"],
)


def parents_of_groups(dag: DAG) -> set[tuple[tuple[str, ...], tuple[str, ...]]]:
    return {(a, b) for a in dag.latent_groups for b in dag.latent_groups if (a[0], b[0]) in dag.edges}


def n_common(dag: DAG) -> int:
    groups = {frozenset(group) for group in dag.latent_groups}
    return sum(frozenset(dag.parents(x)) not in groups for x in dag.observed)


# ---------------------------------------------------------------------------------------------- structures


@pytest.mark.parametrize("seed", range(60))
def test_every_random_graph_is_a_gnfm(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_latents, common = int(rng.integers(2, 8)), int(rng.integers(0, 3))
    n_groups = int(rng.integers(-(-n_latents // 3), n_latents, endpoint=True))
    common = common if n_groups > 1 else 0
    n_observed = 2 * n_latents + common + int(rng.integers(0, 6))
    dag = random_gnfm(
        n_latents=n_latents,
        n_groups=n_groups,
        n_observed=n_observed,
        n_common_children=common,
        max_parent_groups=3,
        density=float(rng.random()),
        rng=rng,
    )
    assert is_gnfm(dag), str(is_gnfm(dag))
    assert (len(dag.latents), len(dag.latent_groups), len(dag.observed)) == (n_latents, n_groups, n_observed)
    assert max(len(group) for group in dag.latent_groups) <= 3
    assert n_common(dag) == common


def test_group_sizes_are_honoured_in_order() -> None:
    dag = random_gnfm(group_sizes=(2, 1, 3), n_observed=14, n_common_children=1, rng=3)
    assert dag.latent_groups == (("L1", "L2"), ("L3",), ("L4", "L5", "L6"))
    assert dag.observed == tuple(f"X{i}" for i in range(1, 15))


def test_defaults_are_five_latents_with_three_items_each() -> None:
    dag = random_gnfm(rng=0)
    assert (len(dag.latents), len(dag.observed)) == (5, 15)


def test_n_groups_alone_draws_every_size() -> None:
    sizes = {len(g) for seed in range(20) for g in random_gnfm(n_groups=3, rng=seed).latent_groups}
    assert sizes == {1, 2, 3}


@pytest.mark.parametrize(
    ("shape", "n_edges", "most_parents", "most_children"),
    [("chain", 3, 1, 1), ("fork", 3, 1, 3), ("collider", 3, 3, 1), ("dense", 6, 3, 3), ("empty", 0, 0, 0)],
)
def test_shapes(shape: simulate.Shape, n_edges: int, most_parents: int, most_children: int) -> None:
    dag = random_gnfm(group_sizes=(1, 2, 1, 1), shape=shape, rng=5)
    edges = parents_of_groups(dag)
    assert len(edges) == n_edges
    assert max(sum(b == g for _, b in edges) for g in dag.latent_groups) == most_parents
    assert max(sum(a == g for a, _ in edges) for g in dag.latent_groups) == most_children


def test_density_is_the_share_of_pairs_with_an_edge() -> None:
    counts = [len(parents_of_groups(random_gnfm(group_sizes=[1] * 6, density=0.3, rng=s))) for s in range(100)]
    n, p = 15 * 100, 0.3
    assert abs(sum(counts) - n * p) < 4 * math.sqrt(n * p * (1 - p))


def test_the_causal_order_of_the_groups_is_random() -> None:
    roots = {min(parents_of_groups(random_gnfm(group_sizes=(1, 1), shape="chain", rng=s))) for s in range(20)}
    assert len(roots) == 2


def test_one_factor_models() -> None:
    for seed in range(20):
        dag = random_one_factor(n_latents=4, n_observed=14, rng=seed)
        assert is_one_factor(dag)
        assert is_gnfm(dag)
        assert (len(dag.latents), len(dag.observed)) == (4, 14)
    assert len(random_one_factor(n_latents=3, rng=0).observed) == 12


def test_structures_repeat_by_seed() -> None:
    first, second, other = (random_gnfm(n_latents=6, n_common_children=2, rng=s) for s in (7, 7, 8))
    assert first == second
    assert first != other


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"n_latents": 5, "n_observed": 9},
            r"^5 latents need at least 10 pure children; you asked for 9 observed .*Ask for 10 or more,",
        ),
        (
            {"group_sizes": (1, 1), "n_observed": 5, "n_common_children": 2},
            r"2 latents need at least 4 pure children plus 2 common children; you asked for 5",
        ),
        ({"group_sizes": (1,), "n_observed": 1}, r"1 latent needs at least 2 pure children; you asked for 1"),
        ({"group_sizes": (2, 1), "n_latents": 4}, r"group_sizes \(2, 1\) sum to 3, but n_latents is 4"),
        ({"group_sizes": (2, 1), "n_groups": 3}, r"group_sizes \(2, 1\) are 2 groups, but n_groups is 3"),
        ({"group_sizes": (2, 0)}, r"one positive number for each group; got \(2, 0\)"),
        ({"group_sizes": ()}, r"one positive number for each group; got \(\)"),
        (
            {"n_latents": 7, "n_groups": 2},
            r"7 latents in groups of 1 to 3 make 3 to 7 groups; you asked for 2\.",
        ),
        (
            {"group_sizes": (3,), "n_common_children": 1},
            r"there is one group; n_common_children must be 0 here, got 1",
        ),
    ],
)
def test_impossible_structures_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        random_gnfm(**options, rng=0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"density": 1.5}, r"density is the probability of an edge, from 0 to 1; got 1\.5\."),
        ({"shape": "chian"}, r"shape is one of 'random', .*; got 'chian'; did you mean 'chain'\?$"),
        ({"n_latents": 0}, r"n_latents must be at least 1; got 0\."),
        ({"n_groups": 0}, r"n_groups must be at least 1; got 0\."),
        ({"max_group_size": 0}, r"max_group_size must be at least 1; got 0\."),
        ({"n_common_children": -1}, r"n_common_children must be at least 0; got -1\."),
        (
            {"group_sizes": (1, 1), "n_common_children": 1, "max_parent_groups": 1},
            r"max_parent_groups must be at least 2; got 1\.",
        ),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(UnmeasuredError, match=message):
        random_gnfm(**options, rng=0)  # type: ignore[arg-type]


def test_one_factor_needs_three_items_each() -> None:
    with pytest.raises(GraphError, match=r"3 latents need at least 9 pure children; you asked for 8"):
        random_one_factor(n_latents=3, n_observed=8, rng=0)


# ---------------------------------------------------------------------------------------------- parameters


def test_population_covariance_by_hand() -> None:
    # L1 = e1 (variance 2); L2 = 3 L1 + e2; a = L1 + ea, c = -L2 + ec; e = L1 + 2 L2 + ee; noise variance 1.
    F = np.zeros((7, 7))
    F[0, [1, 2, 3, 6]] = [3, 1, 1, 1]
    F[1, [4, 5, 6]] = [-1, 1, 2]
    model = Parameters(SHARED_CHILD, F, np.diag([2.0, 1, 1, 1, 1, 1, 1]))
    # Var L1 = 2, Cov(L1, L2) = 6, Var L2 = 19.
    assert model.observed == ("a", "b", "c", "d", "e")
    cov = dict(zip(model.observed, model.cov()))
    assert cov["a"].tolist() == pytest.approx([3, 2, -6, 6, 14])
    assert cov["c"].tolist() == pytest.approx([-6, -6, 20, -19, -44])
    assert cov["e"][4] == pytest.approx(2 + 4 * 6 + 4 * 19 + 1)
    assert model.full_cov()[:2, :2] == pytest.approx(np.array([[2, 6], [6, 19]]))


def test_parameters_are_frozen_copies() -> None:
    F = np.zeros((7, 7))
    model = Parameters(SHARED_CHILD, F, np.eye(7))
    F[0, 1] = 1
    assert model.F[0, 1] == 0
    with pytest.raises(ValueError, match="read-only"):
        model.F[0, 1] = 1


@pytest.mark.parametrize(
    ("where", "Omega", "message"),
    [
        ((2, 0), np.eye(7), r"F gives a → L1 the weight 0\.5, but the graph has no such edge"),
        ((0, 1), np.zeros((7, 7)), r"Omega must be symmetric and positive definite"),
        ((0, 1), np.eye(6), r"Omega must be a finite \(7, 7\) array.*got shape \(6, 6\)"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(where: tuple[int, int], Omega: np.ndarray, message: str) -> None:
    F = np.zeros((7, 7))
    F[where] = 0.5
    with pytest.raises(ModelError, match=message):
        Parameters(SHARED_CHILD, F, Omega)


def test_paper_parameters_are_uniform_over_their_ranges() -> None:
    dag = random_gnfm(n_latents=6, n_groups=6, n_observed=100, rng=0)
    drawn = [paper_parameters(dag, seed) for seed in range(20)]
    weights = np.concatenate([p.F[dag.adjacency == 1] for p in drawn])
    noise = np.concatenate([np.diag(p.Omega) for p in drawn])
    for values, low, high in ((weights, -5, 5), (noise, 0.1, 1.0)):
        assert low <= values.min() <= values.max() <= high
        error = (high - low) / math.sqrt(12 * len(values))
        assert abs(values.mean() - (low + high) / 2) < 4 * error
        assert values.var() == pytest.approx((high - low) ** 2 / 12, rel=0.1)


@pytest.mark.parametrize(("low", "high"), [(-5, 5), (-1, 4), (0.2, 3), (-3, -0.1)])
def test_min_abs_keeps_weights_away_from_zero_and_in_range(low: float, high: float) -> None:
    dag = random_gnfm(n_observed=200, rng=0)
    weights = paper_parameters(dag, 0, low=low, high=high, min_abs=0.5).F[dag.adjacency == 1]
    assert np.abs(weights).min() >= 0.5
    assert weights.min() >= low
    assert weights.max() <= high
    assert (weights.min() < 0) == (low < 0)
    assert (weights.max() > 0) == (high > 0)


def test_bad_ranges_are_refused() -> None:
    with pytest.raises(UnmeasuredError, match=r"No weight lies in \[-1, 1\] and at least 2 from zero"):
        paper_parameters(SHARED_CHILD, 0, low=-1, high=1, min_abs=2)
    with pytest.raises(UnmeasuredError, match=r"noise is a range of variances.*got \(0, 1\)"):
        paper_parameters(SHARED_CHILD, 0, noise=(0, 1))


def realistic_draws() -> list[Parameters]:
    graphs = [*simulate.realistic_suite(), *simulate.paper_suite()[:8]]
    graphs.append(random_gnfm(group_sizes=(3, 1, 2, 1), shape="dense", n_common_children=3, max_parent_groups=4, rng=0))
    return [realistic_parameters(dag, seed) for seed, dag in enumerate(graphs)]


@pytest.mark.parametrize("model", realistic_draws())
def test_realistic_parameters_are_standardised(model: Parameters) -> None:
    dag = model.dag
    assert np.diag(model.full_cov()) == pytest.approx(1)
    latent = np.isin(dag.names, dag.latents)
    noise = np.diag(model.Omega)
    communality = 1 - noise[~latent]
    assert 0.3 <= communality.min() <= communality.max() <= 0.75
    assert noise[latent].min() >= 0.1 - 1e-12
    assert ((model.F != 0) == (dag.adjacency == 1)).all()
    paths = np.abs(model.F[np.ix_(latent, latent)])
    assert paths.max(initial=0) <= 0.7
    full_strength = paths[:, noise[latent] > 0.1 + 1e-9]  # not shrunk
    assert full_strength[full_strength > 0].min(initial=0.2) >= 0.2


@pytest.mark.parametrize("size", [2, 3])
def test_a_realistic_group_is_of_its_rank(size: int) -> None:
    # Visibly so: the common part of the correlations of a group's pure children has no eigenvalue far below
    # the average of its `size` ones, and no two items are close to parallel.
    for seed in range(20):
        dag = random_gnfm(group_sizes=(size, 1, 1), n_observed=2 * size + 4, shape="dense", rng=seed)
        model = realistic_parameters(dag, seed)
        names, full = list(dag.names), model.full_cov()
        rows = [names.index(name) for name in dag.latent_groups[0]]
        items = [names.index(x) for x in dag.observed if dag.parents(x) == dag.latent_groups[0]]
        loadings = model.F[np.ix_(rows, items)]
        common = loadings.T @ full[np.ix_(rows, rows)] @ loadings
        eigenvalues = np.linalg.eigvalsh(common)[-size:]
        assert eigenvalues[0] > 0.25 * eigenvalues.mean()
        scale = np.sqrt(np.diag(common))
        cosines = np.abs(common / np.outer(scale, scale)) - np.eye(len(items))
        assert cosines.max() < 0.98


def test_realistic_parameters_want_a_gnfm() -> None:
    with pytest.raises(GraphError, match=r"factor models only(.|\n)*group \{L\} needs at least 2 pure"):
        realistic_parameters(DAG.from_edges([("L", "x")], latents=["L"]), 0)


# -------------------------------------------------------------------------------------------------- samples


def covariance_errors(cov: np.ndarray, n: int) -> np.ndarray:
    """Standard errors of a Gaussian sample covariance: Var(s_ij) = (s_ii s_jj + s_ij^2) / n."""
    variances = np.diag(cov)
    return np.sqrt((np.outer(variances, variances) + cov**2) / n)


@pytest.mark.parametrize("setting", ["paper", "realistic"])
@pytest.mark.parametrize("noise", ["gaussian", "uniform"])
def test_sample_covariance_converges(setting: str, noise: simulate.Noise) -> None:
    # Uniform noise has lighter tails than Gaussian noise, so Gaussian standard errors are an upper bound.
    # Five of them leave a chance of about 2e-5 that one of the 28 entries is outside.
    dag = random_gnfm(group_sizes=(1, 2), n_observed=7, n_common_children=1, shape="dense", rng=1)
    model = paper_parameters(dag, 1) if setting == "paper" else realistic_parameters(dag, 1)
    n = 100_000
    frame = sample(model, n, rng=2, noise=noise)
    cov = model.cov()
    assert tuple(frame.columns) == model.observed
    assert (np.abs(np.cov(frame.to_numpy().T) - cov) < 5 * covariance_errors(cov, n)).all()
    assert (np.abs(frame.mean().to_numpy()) < 5 * np.sqrt(np.diag(cov) / n)).all()


def test_uniform_noise_has_the_right_variance_and_range() -> None:
    dag = DAG.from_edges([], names=["x", "y"])
    frame = sample(Parameters(dag, np.zeros((2, 2)), np.diag([4.0, 0.25])), 50_000, rng=0, noise="uniform")
    for name, variance in (("x", 4.0), ("y", 0.25)):
        column = frame[name].to_numpy()
        assert np.abs(column).max() <= math.sqrt(3 * variance)
        # Var(s^2) = (kurtosis - 1) sigma^4 / n, with kurtosis 9/5 for the uniform distribution
        assert abs(column.var() - variance) < 4 * variance * math.sqrt(0.8 / len(column))


def test_correlated_noise_is_honoured() -> None:
    dag = DAG.from_edges([], names=["x", "y"])
    Omega = np.array([[1.0, 0.6], [0.6, 2.0]])
    frame = sample(Parameters(dag, np.zeros((2, 2)), Omega), 50_000, rng=0)
    assert (np.abs(np.cov(frame.to_numpy().T) - Omega) < 5 * covariance_errors(Omega, len(frame))).all()


def test_leaky_relu_by_hand() -> None:
    # The linear sample gives the noise away (e = V - V F); the nonlinear one is then rebuilt, cause by cause.
    F = np.zeros((7, 7))
    F[0, [1, 2, 3, 6]] = [3, 1, -1, 1]
    F[1, [4, 5, 6]] = [-1, 1, 2]
    model = Parameters(SHARED_CHILD, F, np.diag([2.0, 1, 1, 1, 1, 1, 0.5]))
    linear = sample(model, 200, rng=4, with_latents=True)
    bent = sample(model, 200, rng=4, with_latents=True, nonlinearity="leaky-relu", alpha=0.8)
    e = linear - linear.to_numpy() @ F

    def relu(x):
        return np.maximum(0.8 * x, x)

    L1 = relu(e["L1"])
    L2 = relu(3 * L1 + e["L2"])
    expected = {"L1": L1, "L2": L2, "a": relu(L1 + e["a"]), "b": relu(-L1 + e["b"])}
    expected |= {"c": relu(-L2 + e["c"]), "d": relu(L2 + e["d"]), "e": relu(L1 + 2 * L2 + e["e"])}
    for name, values in expected.items():
        assert bent[name].to_numpy() == pytest.approx(values.to_numpy()), name
    assert leaky_relu(np.array([-1.0, 2.0])).tolist() == [-0.8, 2.0]


def test_samples_repeat_by_seed_and_draw_parameters_for_a_bare_graph() -> None:
    dag = random_gnfm(n_latents=3, rng=0)
    first, second, other = (sample(dag, 5, rng=s) for s in (1, 1, 2))
    assert first.equals(second)
    assert not first.equals(other)
    assert first.equals(sample(dag, 5, rng=np.random.default_rng(1)))
    assert sample(dag, 2000, rng=1, parameters="realistic").var().max() < 1.5
    assert tuple(sample(dag, 5, rng=1, with_latents=True).columns) == dag.names
    assert sample(dag, 5, rng=1, with_latents=True)[list(dag.observed)].equals(first)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_samples": 0}, r"n_samples must be at least 1; got 0\."),
        ({"n_samples": 2.5}, r"n_samples must be a whole number; got 2\.5\."),
        (
            {"noise": "gausian"},
            r"noise is one of 'gaussian', 'uniform'; got 'gausian'; did you mean 'gaussian'\?",
        ),
        ({"nonlinearity": "relu"}, r"nonlinearity is one of 'linear', 'leaky-relu'; got 'relu'"),
        ({"parameters": "mine"}, r"parameters is one of 'paper', 'realistic'; got 'mine'\."),
        ({"alpha": 1.2}, r"alpha is the slope of the leaky ReLU below zero, from 0 to 1; got 1\.2\."),
    ],
)
def test_bad_sampling_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(UnmeasuredError, match=message):
        sample(SHARED_CHILD, **({"n_samples": 5, "rng": 0} | options))  # type: ignore[arg-type]


# --------------------------------------------------------------------------------------------------- suites


@pytest.mark.parametrize(
    ("name", "seed", "draw"),
    [
        ("paper_suite", simulate.PAPER_SEED, simulate.draw_paper_suite),
        ("realistic_suite", simulate.REALISTIC_SEED, simulate.draw_realistic_suite),
    ],
)
def test_stored_suites_are_what_the_seed_draws(name, seed, draw) -> None:
    # The file is what counts. Should a release of numpy change its streams, tie this test to the numpy that
    # drew the file; the file stays.
    stored = files("unmeasured.data").joinpath("bundled", f"{name}.json").read_text(encoding="utf-8")
    assert simulate.suite_text(name, seed, draw()) == stored
    assert getattr(simulate, name)() == draw()


@pytest.mark.parametrize("suite", [simulate.paper_suite, simulate.realistic_suite])
def test_suites_are_twenty_different_gnfms_of_about_twenty_variables(suite) -> None:
    graphs = suite()
    assert len(graphs) == len(set(graphs)) == 20
    assert all(is_gnfm(dag) for dag in graphs)
    assert np.mean([len(dag.names) for dag in graphs]) == 20
    assert np.mean([len(dag.latents) for dag in graphs]) == 5
    assert {n_common(dag) for dag in graphs} == {0, 1, 2}


def test_group_sizes_of_the_suites() -> None:
    sizes = [len(group) for dag in simulate.paper_suite() for group in dag.latent_groups]
    assert set(sizes) == {1, 2, 3}
    assert sizes.count(1) > len(sizes) / 2
    largest = [sorted(map(len, dag.latent_groups))[-2:] for dag in simulate.realistic_suite()]
    assert largest.count([1, 2]) == 4
    assert largest.count([1, 1]) == 16


# ---------------------------------------------------------------------------------------- answers and holes


@pytest.mark.parametrize("categories", ["even", "skewed"])
def test_cut_rows_have_the_frequencies_asked_for_and_keep_the_order(categories: simulate.Categories) -> None:
    rows = sample(SHARED_CHILD, 20_000, rng=3, parameters="realistic")
    answers = simulate.cut(rows, categories)
    for name in rows.columns:
        seen = answers[name].value_counts(normalize=True).sort_index()
        # Four standard errors of a frequency, and a little for thresholds at the sample's own mean and deviation.
        assert np.abs(seen.to_numpy() - simulate.FREQUENCIES[categories]).max() < 0.015
        assert (np.diff(answers[name].to_numpy()[rows[name].argsort()]) >= 0).all()
    with pytest.raises(UnmeasuredError, match="categories is one of 'even', 'skewed'; got 'odd'"):
        simulate.cut(rows, "odd")  # type: ignore[arg-type]


def test_holes_depend_on_the_first_variable_and_on_nothing_else() -> None:
    rows = sample(SHARED_CHILD, 40_000, rng=3, parameters="realistic")
    holed = simulate.punch_holes(rows, 0.25, rng=1)
    lost = holed.isna()
    first = rows.columns[0]
    assert not lost[first].any()
    assert lost.drop(columns=first).to_numpy().mean() == pytest.approx(0.25, abs=0.005)
    # By quarters of the first variable: 2 * 0.25 * (1/8, 3/8, 5/8, 7/8).
    quarters = np.argsort(np.argsort(rows[first].to_numpy())) * 4 // len(rows)
    for quarter, expected in enumerate((0.0625, 0.1875, 0.3125, 0.4375)):
        rates = lost.loc[quarters == quarter].drop(columns=first).mean().to_numpy()
        assert np.abs(rates - expected).max() < 0.025
        # Given the first variable, the value itself does not matter: that is what missing at random means.
        inside = quarters == quarter
        for name in rows.columns[1:]:
            values = rows.loc[inside, name]
            high = values > values.median()
            rate = lost.loc[inside, name]
            assert abs(rate[high].mean() - rate[~high].mean()) < 0.04
    assert np.array_equal(holed.to_numpy()[~lost.to_numpy()], rows.to_numpy()[~lost.to_numpy()])
    with pytest.raises(UnmeasuredError, match=r"from 0 to 0\.5; got 0\.7"):
        simulate.punch_holes(rows, 0.7, rng=1)


@pytest.mark.parametrize("seed", [-1, "x", 1.5])
def test_a_seed_that_is_none_is_a_sentence(seed):
    with pytest.raises(UnmeasuredError, match="rng is a seed"):
        simulate.random_gnfm(n_latents=2, n_observed=6, rng=seed)
