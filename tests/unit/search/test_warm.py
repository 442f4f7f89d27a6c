"""Compiling ahead: what a search needs, neither less nor in other types, and in one process where two do not work."""

from __future__ import annotations

import json
import subprocess
import sys

from unmeasured.kernels import batch
from unmeasured.search import warm

CODE = """
import json
import unmeasured as um
from unmeasured.search import warm
from unmeasured.search.measurement import relocate
from unmeasured.kernels import batch, savings
from unmeasured.kernels import likelihood as kernels
from unmeasured.models import rank

functions = [batch.start_batch, batch.score_batch, kernels.information, rank.smallest_roots]
functions += [kernels.jacobian_rank_modulo]
functions += [savings.covariance_along, savings.effects_along, savings.log_dets, savings.best_graph]
functions += [relocate.predict, relocate.parent_likelihoods, relocate.likelihood_rises]
warm.compile_kernels()
before = [list(map(str, function.signatures)) for function in functions]
data = um.datasets.load("multitasking")
um.LGES().fit_cov(data.frame(), data.n_samples).result_.loadings
after = [list(map(str, function.signatures)) for function in functions]
print(json.dumps([before, after]))
"""


def test_a_search_compiles_nothing_more():
    done = subprocess.run([sys.executable, "-c", CODE], check=True, timeout=300, capture_output=True, text=True)
    before, after = json.loads(done.stdout)
    assert [len(signatures) for signatures in before] == [1] * 12
    assert after == before


def test_where_no_second_process_can_be_had_this_one_does_it_all(monkeypatch):
    def refused(*_, **__):
        raise OSError("no more processes")

    monkeypatch.setattr(warm, "are_on_disk", lambda: False)
    monkeypatch.setattr(warm, "n_cores", lambda: 2)
    monkeypatch.setattr(warm.subprocess, "Popen", refused)
    warm.compile_kernels()
    assert batch.start_batch.signatures


def test_what_is_on_disk_needs_no_second_process(monkeypatch):
    warm.compile_kernels()
    monkeypatch.setattr(warm, "_helper", lambda: (_ for _ in ()).throw(AssertionError))
    assert warm.are_on_disk()
    warm.compile_kernels()
