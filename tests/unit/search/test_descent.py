"""With very many rows a search also comes down from a larger penalty, and never ends lower for it."""

import unmeasured as um
from unmeasured.search.bic import BicSearch, best_from_above
from unmeasured.search.clock import Clock
from unmeasured.search.measurement.refine import Guidance
from unmeasured.search.model import model_of_class
from unmeasured.search.trace import Steps


def traits(letters: str) -> um.Sample:
    """The items of some traits, 19,718 answers."""
    data = um.datasets.load("big_five")
    names = [name for name in data.names if name[0] in letters]
    return um.as_sample(cov=data.frame().loc[names, names], n_samples=data.n_samples)


def search_of(sample, clock=None, **guidance) -> BicSearch:
    return BicSearch(sample, Guidance(3, **guidance), clock or Clock(None))


def penalties_asked(monkeypatch) -> list[float]:
    """Where the penalties of all searches from now on are written down."""
    penalties: list[float] = []
    own = BicSearch.best

    def noted(self, penalty, steps):
        penalties.append(penalty)
        return own(self, penalty, steps)

    monkeypatch.setattr(BicSearch, "best", noted)
    return penalties


def test_it_leaves_a_local_optimum_that_the_search_at_one_penalty_ends_at():
    sample, steps = traits("EN"), Steps()
    first, best = search_of(sample).best(1.0, Steps()), best_from_above(search_of(sample), 1.0, steps)
    assert best.value - first.value > 5  # in units of log-likelihood
    # And by BIC as users know it, without what our prior adds.
    bic = [um.fit(found.model.cpdag.member(), sample).bic for found in (first, best)]
    assert bic[1] < bic[0] - 10
    phases = {step.phase.split(":")[0] for step in steps if step.phase.startswith("At penalty")}
    assert phases == {"At penalty 13.8", "At penalty 3.71", "At penalty 1"}


def test_it_goes_up_and_comes_down_where_the_model_is_rejected(monkeypatch):
    sample = traits("EN")
    first = search_of(sample).best(1.0, Steps())
    penalties = penalties_asked(monkeypatch)
    best = best_from_above(search_of(sample), 1.0, Steps())
    assert [round(penalty, 1) for penalty in penalties] == [1.0, 13.8, 3.7, 1.0]
    assert best.value >= first.value


def test_it_stays_where_nothing_calls_for_it(monkeypatch):
    penalties = penalties_asked(monkeypatch)
    sample = traits("EN")
    few = um.Sample(sample.names, sample.cov, 1000)
    found = best_from_above(search_of(few), 1.0, Steps())  # BIC's own penalty is that of few rows
    best_from_above(search_of(sample), 4.0, Steps())  # near the top already
    start = model_of_class(found.model.cpdag, sample.names)
    best_from_above(search_of(sample, starts=[start]), 1.0, Steps())  # near an answer already
    truth = um.simulate.random_gnfm(n_latents=2, n_observed=8, rng=3)
    right = um.simulate.sample(um.simulate.realistic_parameters(truth, 3), 20_000, rng=3)
    # A model that holds is not rejected, however many rows there are.
    best_from_above(search_of(um.as_sample(right)), 1.0, Steps())
    assert penalties == [1.0, 4.0, 1.0, 1.0]


def test_a_search_out_of_time_keeps_what_it_has():
    class Stopping(Clock):
        def lap(self, begins, ends):
            super().lap(begins, ends)
            if begins:  # the first search is behind us
                self.interrupt()

    sample = traits("EN")
    best = best_from_above(search_of(sample, Stopping(None)), 1.0, Steps())
    assert best.value == search_of(sample).best(1.0, Steps()).value


def test_time_left_is_told_of_the_whole_way():
    clock = Clock(None)
    clock.lap(0.5, 1.0)
    clock.measured(0.0)
    spent = clock.left()
    clock.lap(0.0, 0.5)
    clock.measured(0.0)
    assert spent.startswith("about")  # half of the way is done
    assert clock.left() == ""
