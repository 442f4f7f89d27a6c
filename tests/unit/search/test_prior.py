"""What it takes to say who measures what: logarithms of the numbers of choices (extended BIC; Chen and Chen 2008)."""

from __future__ import annotations

import math
from itertools import product

import pytest

from unmeasured.search.score import prior


@pytest.mark.parametrize(("n_groups", "share"), [(4, 0.25), (22, 0.25), (23, 0.5)])
def test_a_first_group_is_one_of_all_groups_and_a_further_one_is_one_of_all_loadings(
    n_groups: int, share: float
) -> None:
    """Half of the logarithm for a first group, a quarter for a further one, half where there are many groups."""
    n_parents = [1, 1, 2, 3, 0]  # of five variables; the last belongs nowhere
    loadings = list(product(range(len(n_parents)), range(n_groups)))
    expected = 4 * 0.5 * math.log(n_groups) + 3 * share * math.log(len(loadings))
    assert prior(n_parents, n_groups) == pytest.approx(expected)


def test_no_group_and_one_group_leave_no_choice_of_the_first() -> None:
    assert prior([0, 0, 0], 0) == 0.0
    assert prior([1, 1, 0], 1) == 0.0
