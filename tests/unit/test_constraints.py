"""Every option is looked at: a wrong value is refused by a sentence that names it, never taken for another one."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest

import unmeasured as um
from unmeasured.estimators.base import Search

# Wrong for nearly every option, for what it is, or for what it says.
WRONG = (object(), math.nan, math.inf, -1, 0, 0.5, 3, "", "nonsense", "no", [], [3], {}, np.ones(2), None, True)
# What of these an option takes, by its name. (Whole numbers are numbers; 0 is False.)
RIGHT = {
    **dict.fromkeys(("penalty", "sparsity", "delta"), (0.5, 3)),
    **dict.fromkeys(("alpha", "cut", "lambda_min_ratio"), (0.5,)),
    **dict.fromkeys(("max_group_size", "max_rank", "n_latents", "n_factors", "n_best", "n_replicates"), (3,)),
    **dict.fromkeys(("covariates", "outcomes", "moves"), ([],)),
    "tolerance": (0, 0.5),
    "gamma": (0, 0.5),
    "time_limit": (0.5, 3, math.inf),
    "n_jobs": (-1, 3),
    "random_state": (0, 3),
    "records": ("", "nonsense", "no"),
}
# Options that may be left out by None.
NONE = {
    "delta", "max_group_size", "knowledge", "n_latents", "compare_without_knowledge", "time_limit", "n_factors",
    "records", "(stability) n_jobs",
}  # fmt: skip
ESTIMATORS = [
    getattr(place, name)
    for place in (um, um.peers)
    for name in place.__all__
    if inspect.isclass(getattr(place, name)) and issubclass(getattr(place, name), Search)
]
CORR = 0.5 * np.eye(6) + 0.5


def is_flag(name, default):
    return isinstance(default, bool) or name == "compare_without_knowledge"


def is_right(name, value, default, where):
    if value is None:
        return name in NONE or f"({where}) {name}" in NONE or default is None
    if isinstance(value, bool):
        return is_flag(name, default)
    if is_flag(name, default) and isinstance(value, int):
        return value in (0, 1)
    right = RIGHT.get(name, ())
    return any(type(value) is type(one) and value == one for one in right)


def wrong_values(parameters, where):
    for name, default in parameters.items():
        for value in WRONG:
            if not is_right(name, value, default, where):
                yield pytest.param(name, value, id=f"{where}-{name}-{value!r:.12}")


def defaults(function):
    parameters = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in parameters if one.default is not inspect.Parameter.empty}


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_option_has_a_rule(estimator):
    assert set(estimator._rules) == set(estimator().get_params())
    estimator().check_options()


@pytest.mark.parametrize(
    ("estimator", "name", "value"),
    [
        pytest.param(estimator, *case.values, id=case.id)
        for estimator in ESTIMATORS
        for case in wrong_values(estimator().get_params(), estimator.__name__)
    ],
)
def test_wrong_options_of_estimators_are_refused_by_name(estimator, name, value):
    search = estimator(**{name: value})
    with pytest.raises(um.UnmeasuredError, match=rf"^{name} must be .*; got "):
        search.fit_cov(CORR, 200)


@pytest.fixture(scope="module")
def search():
    return um.LGES().fit_cov(CORR, 200)


def call(function, search, options):
    if function is um.invariance:
        rows = um.simulate.sample(um.simulate.random_gnfm(n_latents=1, n_observed=4, rng=0), 100, rng=0)
        return function("f =~ " + " + ".join(rows), rows.assign(g=np.resize(["a", "b"], 100)), groups="g", **options)
    if function is um.confirm:
        return function(search, cov=CORR, n_samples=300, **options)
    return function(search, **options)


FUNCTIONS = {
    um.stability: (),
    um.penalty_path: ("penalties",),  # below
    um.confirm: ("rows", "cov", "n_samples"),  # data
    um.invariance: (),
}


@pytest.mark.parametrize(
    ("function", "name", "value"),
    [
        pytest.param(function, *case.values, id=case.id)
        for function, other in FUNCTIONS.items()
        for case in wrong_values({k: v for k, v in defaults(function).items() if k not in other}, function.__name__)
    ],
)
def test_wrong_options_of_functions_are_refused_by_name(function, name, value, search):
    with pytest.raises(um.UnmeasuredError, match=rf"^{name} must be .*; got "):
        call(function, search, {name: value})


@pytest.mark.parametrize("penalties", [[], [0], [math.nan], ["x"], 3, "nonsense", [math.inf], object()])
def test_wrong_penalties_are_refused(penalties, search):
    with pytest.raises(um.UnmeasuredError, match=r"^penalties are positive numbers"):
        um.penalty_path(search, penalties)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delta": 0.1}, r'delta=0\.1 is for criterion="delta"; BIC has penalty'),
        ({"criterion": "delta", "penalty": 5}, r'penalty=5 is for criterion="bic"; the paper\'s rule has delta'),
        ({"criterion": "delta", "tolerance": 0.05}, r'tolerance=0\.05 is for criterion="bic"'),
        ({"criterion": "delta", "moves": [len]}, 'moves are for criterion="bic"'),
        ({"compare_without_knowledge": True}, "compare_without_knowledge=True is about knowledge, and none is given"),
    ],
)
def test_options_that_mean_nothing_together_are_refused(options, words):
    with pytest.raises(um.UnmeasuredError, match=words):
        um.LGES(**options).fit_cov(CORR, 200)


def test_options_that_mean_something_together_are_taken():
    assert um.LGES(criterion="delta", delta=0.1, tolerance=0).fit_cov(CORR, 200).tolerance_ == 0.0
    assert um.LGES(delta=1e-6).fit_cov(CORR, math.inf).graph_.latents  # a population is searched by the paper's rule
    assert um.LGES(n_latents=1, compare_without_knowledge=False).fit_cov(CORR, 200).graph_.latents


def test_wrong_options_are_refused_before_the_rows_are_read():
    with pytest.raises(um.UnmeasuredError, match="penalty must be"):
        um.LGES(penalty=0).fit("no rows")
