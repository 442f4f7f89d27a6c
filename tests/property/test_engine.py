"""Properties of the numeric core: derivatives, batches, monotonicity, indifference to names and order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unmeasured as um
from profiles import examples
from unmeasured.data.sample import Sample
from unmeasured.models.parameters import Model, Parameter, model_of, pattern_of
from unmeasured.models.solve import Problem

seeds = st.integers(0, 10_000)
QUICK = settings(max_examples=examples(20), deadline=None)


def random_model(rng):
    """A random factor model, sometimes with residual covariances and a correlated pair of latents."""
    dag = um.simulate.random_gnfm(group_sizes=rng.choice([1, 1, 2], 3).tolist(), n_observed=13, rng=rng)
    model = model_of(dag)
    extra = [Parameter("~~", "X1", "X5"), Parameter("~~", "X2", "X9")] if rng.random() < 0.5 else []
    return dag, Model(model.names, model.latents, model.parameters + tuple(extra))


def random_sample(dag, rng, n=200):
    return Sample.from_rows(um.simulate.sample(dag, n, rng=rng, parameters="realistic"))


def unit_problem(model, sample):
    problem = Problem.of(model.pattern, Sample(sample.names, sample.corr, sample.n))
    assert np.allclose(problem.scale, 1.0)
    return problem


@given(seeds)
@QUICK
def test_gradient_equals_finite_differences(seed):
    rng = np.random.default_rng(seed)
    dag, model = random_model(rng)
    problem = unit_problem(model, random_sample(dag, rng))
    x = problem.start * rng.uniform(0.8, 1.2, problem.pattern.n_free)
    _, gradient, _ = problem.derivatives(x)
    step = 1e-6
    for i in range(len(x)):
        unit = step * np.eye(len(x))[i]
        slope = (problem.derivatives(x + unit)[0] - problem.derivatives(x - unit)[0]) / (2 * step)
        assert gradient[i] == pytest.approx(slope, rel=1e-4, abs=1e-5)


@given(seeds)
@QUICK
def test_expected_hessian_is_the_hessian_where_the_data_fit(seed):
    """At S = Sigma the expected and the observed Hessian are the same; differentiate the gradient there."""
    rng = np.random.default_rng(seed)
    dag, model = random_model(rng)
    parameters = um.simulate.realistic_parameters(dag, rng)
    S = parameters.cov()
    problem = unit_problem(model, Sample(parameters.observed, S / np.sqrt(np.outer(np.diag(S), np.diag(S))), np.inf))
    F, Omega = parameters.F, parameters.Omega
    position = {name: i for i, name in enumerate(dag.names)}
    names, pattern = problem.pattern.names, problem.pattern
    # Latent noise is 1 in the model: rescale the true parameters to that, and items to unit variance.
    scale = np.array([np.sqrt(Omega[i, i]) if name in dag.latents else 1.0 for name, i in position.items()])
    x = np.zeros(pattern.n_free)
    for slot, (a, b) in enumerate(pattern.ends):
        i, j = position[names[a]], position[names[b]]
        x[slot] = F[i, j] * scale[i] / scale[j] if pattern.is_path[slot] else Omega[i, j]
    value, gradient, H = problem.derivatives(x)
    assert value == pytest.approx(np.linalg.slogdet(problem.sample.corr)[1] + len(S), abs=1e-8)
    assert np.abs(gradient).max() < 1e-8
    step = 1e-5
    for i in range(len(x)):
        unit = step * np.eye(len(x))[i]
        column = (problem.derivatives(x + unit)[1] - problem.derivatives(x - unit)[1]) / (2 * step)
        np.testing.assert_allclose(H[:, i], column, rtol=1e-3, atol=1e-4)


@given(seeds)
@settings(max_examples=examples(8), deadline=None)
def test_a_batch_equals_a_loop(seed):
    rng = np.random.default_rng(seed)
    dag, _ = random_model(rng)
    sample = random_sample(dag, rng)
    graphs = [
        um.DAG.from_edges(np.delete(dag.edges, i, 0).tolist(), latents=dag.latents, names=dag.names) for i in range(8)
    ]
    batch = um.fit_many(graphs, sample, n_threads=2)
    for graph, together in zip(graphs, batch, strict=True):
        (alone,) = um.fit_many([graph], sample, n_threads=1)
        assert alone.solution.discrepancy == together.solution.discrepancy
        np.testing.assert_array_equal(alone.estimates, together.estimates)


@given(seeds)
@settings(max_examples=examples(15), deadline=None)
def test_a_deletion_never_raises_the_best_likelihood(seed):
    rng = np.random.default_rng(seed)
    dag, _ = random_model(rng)
    sample = random_sample(dag, rng)
    edges = [edge for i, edge in enumerate(dag.edges) if i != rng.integers(len(dag.edges))]
    smaller = um.DAG.from_edges(edges, latents=dag.latents, names=dag.names)
    full, less = um.fit_many([dag, smaller], sample)
    assert less.loglik <= full.loglik + 1e-5


@given(seeds)
@settings(max_examples=examples(10), deadline=None)
def test_the_score_ignores_names_and_order(seed):
    rng = np.random.default_rng(seed)
    dag, _ = random_model(rng)
    sample = random_sample(dag, rng)
    new = dict(zip(dag.latents, rng.permutation([f"factor {i}" for i in range(len(dag.latents))]), strict=True))
    renamed = um.DAG.from_edges(
        [(new.get(a, a), new.get(b, b)) for a, b in rng.permutation(dag.edges).tolist()], latents=sorted(new.values())
    )
    shuffled = sample.select(rng.permutation(sample.names).tolist())
    (one,), (other,) = um.fit_many([dag], sample), um.fit_many([renamed], shuffled)
    assert one.loglik == pytest.approx(other.loglik, abs=1e-5)


@given(seeds)
@settings(max_examples=examples(6), deadline=None)
def test_all_members_of_a_class_have_the_same_likelihood_and_dimension(seed):
    rng = np.random.default_rng(seed)
    dag, _ = random_model(rng)
    sample = random_sample(dag, rng)
    members = list(itertools.islice(dag.cpdag().members(), 6))
    scores = [fit.loglik for fit in um.fit_many(members, sample)]
    assert max(scores) - min(scores) < 1e-5
    assert len({int(um.dimension(member)) for member in members}) == 1


@given(seeds)
@settings(max_examples=examples(10), deadline=None)
def test_wild_scales_change_nothing_but_the_scale(seed):
    rng = np.random.default_rng(seed)
    dag, _ = random_model(rng)
    rows = um.simulate.sample(dag, 200, rng=rng, parameters="realistic")
    factor = 10.0 ** rng.uniform(-6, 6, rows.shape[1])
    plain, wild = um.fit(dag, rows), um.fit(dag, rows * factor)
    assert wild.chi2 == pytest.approx(plain.chi2, abs=1e-5)
    # Where a variance runs to zero, some directions are flat, and chi-square alone is determined.
    if plain.admissible:
        np.testing.assert_allclose(wild.parameters["std"], plain.parameters["std"], atol=1e-3)


@given(seeds)
@settings(max_examples=examples(30), deadline=None)
def test_the_pattern_of_a_graph_is_that_of_its_model(seed):
    rng = np.random.default_rng(seed)
    dag, _ = random_model(rng)
    shuffled = um.DAG.from_edges(rng.permutation(dag.edges).tolist(), latents=dag.latents)
    for graph in (dag, shuffled, um.DAG.from_edges([], names=["a", "b"])):
        direct, rows = pattern_of(graph), model_of(graph).pattern
        # Both orders are causal; compare the entries by name.
        for field, ends in (("slot", ("source", "target")), ("slot2", ("first", "second"))):
            entries = [
                {
                    frozenset((p.names[i], p.names[j])): (slot, value)
                    for i, j, slot, value in zip(*(getattr(p, e) for e in ends), getattr(p, field), fixed, strict=True)
                }
                for p, fixed in (
                    (direct, getattr(direct, field.replace("slot", "fixed"))),
                    (rows, getattr(rows, field.replace("slot", "fixed"))),
                )
            ]
            assert entries[0] == entries[1]
        assert direct.observed_names == rows.observed_names
