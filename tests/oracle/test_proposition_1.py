"""The paper's Proposition 1, as printed where it is defined and as mended everywhere."""

from __future__ import annotations

import numpy as np
import pytest


def printed(F_LL, F_LX, F_XL, F_XX, Omega_L, Omega_X, *, mended):
    identity = np.eye(len(F_XX))
    within = np.linalg.inv(identity - F_XX)
    M = np.linalg.inv(np.eye(len(F_LL)) - F_LL - F_LX @ within @ F_XL)
    if mended:
        N = within @ F_XL @ M
    else:
        N = np.linalg.inv((np.eye(len(F_LL)) - F_LL) @ np.linalg.inv(F_XL) @ (identity - F_XX) - F_LX)
    Sigma_L = M.T @ Omega_L @ M + N.T @ Omega_X @ N
    middle = F_LX.T @ Sigma_L @ F_LX + Omega_X @ N @ F_LX + Omega_X + F_LX.T @ N.T @ Omega_X
    return within.T @ middle @ within


def whole(F, Omega, n_latent):
    E = np.linalg.inv(np.eye(len(F)) - F)
    return (E.T @ Omega @ E)[n_latent:, n_latent:]


def blocks(F, Omega, m):
    return F[:m, :m], F[:m, m:], F[m:, :m], F[m:, m:], Omega[:m, :m], Omega[m:, m:]


def random_model(rng, m, n, *, observed_cause=True):
    """A random acyclic model; its variables are shuffled, so every block of F can be filled."""
    d = m + n
    order = rng.permutation(d)
    F = np.zeros((d, d))
    F[np.ix_(order, order)] = np.triu(rng.uniform(-1, 1, (d, d)), 1)
    if not observed_cause:
        F[m:] = 0.0
    return F, np.diag(rng.uniform(0.1, 1.0, d))


@pytest.mark.parametrize("seed", range(20))
def test_the_mended_formula_gives_the_covariance_of_every_model(seed):
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(1, 5)), int(rng.integers(2, 8))
    F, Omega = random_model(rng, m, n, observed_cause=bool(seed % 2))
    np.testing.assert_allclose(printed(*blocks(F, Omega, m), mended=True), whole(F, Omega, m), atol=1e-9)


def test_the_printed_formula_holds_where_its_inverse_exists():
    """As many latents as observed variables and every observed one a cause: L <- X as a full square block."""
    rng = np.random.default_rng(3)
    m = n = 3
    F = np.zeros((6, 6))
    F[m:, :m] = rng.uniform(-1, 1, (n, m))  # X -> L, invertible
    F[:m, :m] = np.triu(rng.uniform(-1, 1, (m, m)), 1)
    Omega = np.diag(rng.uniform(0.1, 1.0, 6))
    np.testing.assert_allclose(printed(*blocks(F, Omega, m), mended=False), whole(F, Omega, m), atol=1e-9)


def test_the_printed_formula_is_undefined_for_factor_models():
    rng = np.random.default_rng(4)
    for m, n in [(2, 5), (3, 3)]:  # not square; square but zero
        F, Omega = random_model(rng, m, n, observed_cause=False)
        with pytest.raises(np.linalg.LinAlgError):
            printed(*blocks(F, Omega, m), mended=False)
