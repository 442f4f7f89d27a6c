"""How much a search tries: every limit in one place, with the evidence for it.

More of anything takes longer and finds a little more. Each number is where what is found stopped to rise in
development; `docs/search-notes.md` has the measurements. A search uses :data:`BUDGET`. What is
not a limit but a part of an algorithm stays beside it: the exact search's, the curve of the cost, compiled bounds.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """How much a search for measurement models tries; :class:`Budget` has the presets."""

    n_climbs: int  #: Proposals that are climbed from.
    n_refined: int  #: Restructured models that are refined before one is chosen.
    n_close: int  #: Models whose latent graph is searched, at most.
    #: Where so many climbs end at the same local optimum, and none is higher, the rest are left out.
    n_agreeing: int = 3
    #: Near an answer already: fewer models are refined because of their prediction, and groups are rebuilt only once,
    #: at the end.
    is_near: bool = False


@dataclass(frozen=True)
class Budget:
    """Limits of the search by extended BIC."""

    # Sizes ----------------------------------------------------------------------------------------------------
    #: With more variables a climb over the whole takes seconds: they are worked on in pieces, fewer proposals are
    #: climbed from, and the search without knowledge is not made a second time. Both ways on 24 simulated models (N =
    #: 1000): at 26, 30 and 34 variables the whole has the better BIC in 4 of 12, F1 .995 against .965; at 36, 40 and 44
    #: the answers are the same in 11 of 12, F1 .995 against .997, and pieces take 1.0 seconds, the whole 3.3
    #: (docs/search-notes.md).
    many_variables: int = 34
    #: Up to so many variables what was found in pieces is then worked on as a whole, which corrects one of six models
    #: of 40 variables; at 50 it took 20 of 27 seconds (docs/search-notes.md). Beyond, graphs over latents are compared
    #: with the measurement fixed, and tests of rank are corrected for few rows, which made proposals worse for 36 to 44
    #: variables with 300 rows (F1 .912 against .927, 30 simulated models).
    most_at_once: int = 44
    #: With more variables groups that no cluster proposed are offered after a first round of pieces, and together, not
    #: one by one: graphs over 230 latents of clusters that tear groups of two apart have 3,000 arcs, and take 10 s.
    most_one_by_one: int = 300
    #: With so many rows, more is tried: at N = 100,000 (docs/search-notes.md).
    very_many_rows: float = 10_000
    #: Observed variables in a piece, about.
    piece: int = 20
    #: With more groups the way back from all edges between latents is long and not taken, three groups are not
    #: dissolved at once, and more moves over edges are fitted.
    few_groups: int = 6
    #: With more groups a variable is offered two of them at once, not three: there are hundreds of triples.
    few_groups_for_triples: int = 12
    #: Up to so many groups all sets of them are looked at, so that the best graph over them is exact: 4,096 sets, a
    #: millisecond at every fit. The graph among observed variables is asked for once and may take a tenth of a second.
    exact_groups: int = 12
    #: With more groups what each parent of a group explains is read from one inverse, not asked for one at a time, and
    #: cross-loadings cost more (``further_choice_of_many``).
    many_groups: int = 22
    exact_observed: int = 16
    #: With more variables the graph among them is not searched: the climb takes longer than it is worth.
    most_observed_alone: int = 40

    # Rises ----------------------------------------------------------------------------------------------------
    #: A total score has to rise by more than the rounding of the fits it is compared with, ...
    least_rise: float = 1e-2
    #: ... which is larger where models of many variables are fitted by EM.
    least_rise_by_em: float = 0.1

    #: Sums of closed forms have to rise by more than their rounding; rises that differ by less than this part are the
    #: same, so that which direction of an edge is taken is not for rounding to say.
    least_rise_in_closed_form: float = 1e-9
    least_rise_of_detour: float = 1e-6
    tie: float = 1e-6
    #: A log-likelihood per sample has to rise by more than its rounding.
    least_rise_per_sample: float = 1e-12
    #: A class found without knowledge has to be better by more than the rounding of two fits; and knowledge that costs
    #: less than what is shown of a BIC, one digit, costs nothing.
    same_bic: float = 1e-3
    costs_nothing: float = 0.05
    #: In a population, shortfalls and discrepancies below these are rounding.
    shares_nothing: float = 1e-10
    fits_exactly: float = 1e-9
    #: Correlations of rows are taken to so many digits: in another order of columns their moments differ by some 1e-15.
    digits: int = 10

    # Fits -----------------------------------------------------------------------------------------------------
    #: Fits of a search stop once a step is predicted to gain less than this in total log-likelihood: far below any
    #: difference that decides.
    fit_gain: float = 1e-3
    #: With more than ``most_at_once`` variables residual variances may be as small as this part of what no other
    #: variable explains: of models with strong coefficients some are 1e-7 of their variable's, and fits with a bound
    #: of 1e-5 rejected the true model (docs/search-notes.md, the eleventh step).
    part_of_unexplained: float = 1e-3
    #: For closed forms, which take no residual variance below 1e-3, variables are in units in which no other variable
    #: explains at least this: 32 models with strong coefficients, F1 .968 to .973, the lowest .830 to .880.
    unexplained_in_closed_form: float = 1e-2
    #: Steps that tell which models are in the running, how many of them are, and steps to fit those.
    quick_steps: int = 12
    n_in_the_running: int = 12
    most_steps: int = 60
    #: How far a fit goes beyond its last step at most: so many times what that step was predicted to gain (9 of 10
    #: fits), and at least so much for 1,000 rows.
    reach: float = 40.0
    least_reach: float = 2.0
    #: A fit that ends this far below what another start reaches was trapped.
    trapped: float = 0.5
    #: Other starts for each of the models whose latent graph is searched: groups of three latents have local optima.
    n_other_starts: int = 3
    #: Other starts that a fit to a population gets before its misfit is believed.
    n_population_starts: int = 12
    #: Other starts for the fit that those of other paths from covariates begin from, where it looks trapped.
    n_restarts_if_trapped: int = 2
    #: The part of a variable's variance that its causes leave at least, in starting values.
    least_left: float = 1e-3
    #: Where the other parameters leave no more than this part of the information on an effect, there is none; and
    #: score tests that differ by no more than this part are of effects that the data cannot tell apart.
    no_information: float = 1e-6
    same_test: float = 1e-4

    # Prior ----------------------------------------------------------------------------------------------------
    #: What part of the logarithm of its choices a variable pays for its first group, and for every further one. The
    #: usual half for cross-loadings too made real questionnaires fit worse (docs/search-notes.md).
    first_choice: float = 0.5
    further_choice: float = 0.25
    #: The same for further groups where there are more than ``many_groups``: of 300 variables and 50 groups a quarter
    #: lets about six cross-loadings pass by chance (15,000 tests at p = .0004), half less than one. With 13 to 20
    #: groups a quarter was as good (docs/search-notes.md).
    further_choice_of_many: float = 0.5

    # Proposals ------------------------------------------------------------------------------------------------
    #: What part of the penalty of a dimension a set of variables is credited with for its rank constraint: strict sets
    #: and lenient ones; the score chooses.
    rates: tuple[float, ...] = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
    #: With many variables: how many standard deviations beyond chance a rank constraint with the nearest others may
    #: cost. Of real data no constraint holds exactly.
    chance_rates: tuple[float, ...] = (3.5, 6.0, 15.0, 40.0, 100.0)
    #: With many variables: where the model found by strict tests has an RMSEA below this, lenient ones are left out.
    strict_rmsea: float = 0.02
    #: Where clusters have to be pure: more than this part of the sets of a new variable with k old ones has to satisfy
    #: their rank constraint.
    passing: float = 0.5
    #: A variable may be proposed as an indicator of up to so many groups.
    max_parents: int = 3
    #: With more subsets than this only those of a variable and its nearest ones are looked at, so many of them; and
    #: with so many nearest ones constraints are tested where there are many variables.
    many_subsets: int = 50_000
    n_near: int = 12
    #: With many variables a set is grown where enough of so many of its nearest ones pass: of 7,600 sets of four that
    #: passed at lenient rates with 240 real-like items 14 grew to a cluster, and the others took half of the search.
    n_screened: int = 48
    #: Correlations below so many standard errors may be none.
    unrelated: float = 4.0
    #: Starts that come from knowledge alone: one for each number and sizes of groups.
    n_bare: int = 4

    # Climbs ---------------------------------------------------------------------------------------------------
    #: How much a search tries (:class:`Effort`): usually; with many variables, where a climb takes seconds; with very
    #: many rows, where the likelihood is steep and more climbs end at local optima; from
    #: answers to similar data, where the best of its own proposals is climbed from too; on the whole of what was found
    #: in pieces; and where the best model misfits, so that all other proposals are climbed from as well.
    usual: Effort = Effort(n_climbs=4, n_refined=2, n_close=4)
    with_many_variables: Effort = Effort(n_climbs=2, n_refined=2, n_close=4)
    with_very_many_rows: Effort = Effort(n_climbs=8, n_refined=2, n_close=4, n_agreeing=5)
    near_an_answer: Effort = Effort(n_climbs=1, n_refined=1, n_close=2, is_near=True)
    after_pieces: Effort = Effort(n_climbs=1, n_refined=1, n_close=2)
    where_it_misfits: Effort = Effort(n_climbs=4, n_refined=4, n_close=4)
    #: A model misfits if it is rejected with an RMSEA above this. Real questionnaires with good models stay below.
    misfit_rmsea: float = 0.04
    #: Rebuilt models that are refined before one is chosen.
    n_rebuilt: int = 2

    # Moves ----------------------------------------------------------------------------------------------------
    #: Other parents for variables that are fitted at a time, parents dropped, and moves of several variables.
    n_relocated: int = 6
    n_dropped: int = 4
    n_several: int = 12
    #: How far below zero a predicted gain may lie: it is a lower bound.
    slack: float = 3.0
    #: In a trial, refining stops after so many rounds, and where the bound on what can be reached is below the present
    #: score less this: of those that improve one in a hundred is missed.
    trial_rounds: int = 6
    trial_slack: float = 6.0
    #: With many groups: single groups that are tried with every other one as the parents of a variable, and variables
    #: between two looks at the clock.
    n_partners: int = 4
    n_between_checks: int = 16
    #: Pairs that may become the indicators of a new latent, merges, and other sizes: those with the best predicted
    #: gain.
    n_pairs: int = 8
    n_merged: int = 8
    n_resized: int = 6
    #: Merges that are fitted where several groups of people share a model: each is a fit to all of them.
    n_merged_over_people: int = 6
    #: Candidates of one kind that are fitted, and rebuilt models: of 659 that improved all but a handful were among
    #: these.
    n_of_kind: int = 8
    n_rebuilds: int = 18

    # Latent graphs --------------------------------------------------------------------------------------------
    #: Models whose latent graph is searched are this close to the best; with very many rows those with groups of other
    #: sizes this close.
    close: float = 5.0
    close_of_other_sizes: float = 50.0
    #: The search for the latent graph begins a second time, from all edges, for models this close to the best.
    leading: float = 0.5
    #: With more than ``exact_groups``: parts of the rows that closed forms take the latents to be known from, one after
    #: the other. Of 55 simulated models 5 end below the true graph, by 4 units at most; also with a top of 1, which
    #: takes 79 s with 200 groups; with a top of .5 six do, by 39 units in all (docs/search-notes.md).
    row_shares: tuple[float, ...] = (0.1, 0.2, 0.35, 0.5, 0.7, 0.5, 0.35, 0.2)
    #: The same where other ways round a local optimum are looked for and nothing better is known of the latents.
    cautious_share: float = 0.35
    #: Moves over edges of each kind that are fitted, with few groups and with many: with few, of 3,682 that improved
    #: most all but 9 were among the first four.
    n_edges: int = 5
    n_edges_many: int = 12
    #: With more variables graphs over latents above others are compared with the measurement fixed too: a fit of 300
    #: variables with all top latents connected takes 6 s by the dense kernels.
    most_at_once_above: int = 120

    # Latents above latents ------------------------------------------------------------------------------------
    #: Triples of latents with the best rank gains that are fitted as blocks, and how many of those grow.
    n_triples: int = 12
    #: With more than ``exact_groups``: latents of a block are all correlated by more than so many standard errors.
    related_latents: float = 2.0
    n_grown: int = 3
    #: Blocks that are found one by one and tried together: fits of two dozen take 15 s. Where there are more, they come
    #: with the next level.
    n_blocks: int = 12
    #: How far below the best graph with edges only a prediction may lie to be worth a fit, and how many are fitted.
    slack_above: float = 10.0
    #: By how much a model with latents above latents has to be better: a difference above 10 of BIC, which is twice
    #: this, is called very strong evidence (Kass and Raftery 1995).
    evidence_above: float = 5.0
    n_raised: int = 3
    #: With more groups latents are not moved from block to block: 160 groups have thousands of such moves, each a fit.
    most_rearranged: int = 80
    #: Steps of the fits of a block to the covariance of its latents, which are small; whole models have ``most_steps``.
    block_steps: int = 40
    #: A standardised loading of a latent on its cause begins at least so far from 1.
    largest_start: float = 0.95
    #: Rows that a population is taken for: a partial correlation of .0002 is worth 20 units, rounding a thousandth of
    #: one.
    rows_of_population: float = 1e9

    # Penalties ------------------------------------------------------------------------------------------------
    #: Where many rows reject the model the search goes on from the penalty that BIC has with so many rows; worth the
    #: time only if that is so many times the one asked for (docs/search-notes.md: Big Five).
    few_rows: int = 1000
    far_penalty: float = 4.0
    #: The part of the time that the first search takes then, about.
    first_search: float = 0.5

    # Tests ----------------------------------------------------------------------------------------------------
    #: A model is rejected when its misfit is beyond chance at this level: low, since thousands of models are looked at.
    rejected: float = 1e-3
    #: A variable is set apart as belonging nowhere when its independence of all others cannot be rejected at this
    #: level: high, since a weak indicator is better kept.
    alone: float = 0.1
    #: A difference in BIC above this is very strong evidence (Kass and Raftery 1995).
    very_strong: float = 10.0

    #: Replicates of rows that tell how large Browne's chi-square of a true model is
    #: (search/close_fit/expected_misfit.py): so many pairs of variables in all, which give its mean to 2% for 50
    #: items, and limits to the numbers of replicates and of rows. A model with more than so many times its degrees of
    #: freedom is rejected without: true ones of rows of a t distribution with five degrees of freedom have 1.5 times.
    pairs_in_replicates: int = 20_000
    least_row_replicates: int = 8
    most_row_replicates: int = 40
    most_rows_drawn: int = 10_000
    largest_expected: float = 4.0
    #: Where chi-square of a true model is so many times Browne's, correlations are nearly singular and no model is
    #: rejected: 2.5 with 50 items answered by yes or no and 500 rows, 1.65 with 100 items and 2,000, 1.1 and less with
    #: answers in five categories, with heavy tails, and with missing values.
    singular: float = 1.4

    # A graph without latents ----------------------------------------------------------------------------------
    #: A factor model that is rejected is given up only above this RMSEA, where the usual rules of thumb end (Browne and
    #: Cudeck 1993): 20,000 answers to a questionnaire reject every model, and latents still count. Up to it the error
    #: of approximation is called reasonable: a tolerant answer is taken instead of an exact one that is rejected.
    poor_rmsea: float = 0.08
    #: By how much, in total log-likelihood, the graph among observed variables has to be better: where both describe
    #: the data the difference says how likely each is; where the factor model is wrong anyway it says less. Factor
    #: models whose effects are not linear came up to 17, graphs without latents began at 57.
    margin: float = 1.0
    margin_if_rejected: float = 25.0

    # Misfit that is tolerated ---------------------------------------------------------------------------------
    #: RMSEA up to which a model is said to fit closely, what "auto" tolerates where no model holds; above which a fit
    #: is called unacceptable (both Browne and Cudeck 1993); and a tolerance that would call every model acceptable.
    close_rmsea: float = 0.05
    bad_rmsea: float = 0.1
    largest_tolerance: float = 0.5
    #: Up to this RMSEA the exact model is kept whatever its p-value: one true model in a thousand is rejected, with
    #: 100,000 rows at an RMSEA of .003; with minor factors (population RMSEA .03) exact models had .012 to .018.
    exact_rmsea: float = 0.005
    #: Below this p-value of the exact model, though it is not rejected yet, fewer latents are looked at too: minor
    #: factors at N = 500 (docs/search-notes.md, the fifth step).
    doubtful: float = 0.05
    #: Up to so many latents may have two indicators each; where there are more, three.
    few_latents: int = 12
    #: Where as many unrestricted factors as could be of use begin before they count as rejected, in parts of the
    #: residual variances; with many variables at the first only. Of 300 true models with N = 100,000 local minima
    #: rejected five from one start.
    shares: tuple[float, ...] = (1.0, 0.9, 0.7, 0.5, 0.3, 0.1)

    # Levels that come back ------------------------------------------------------------------------------------
    #: Items a latent has on average, at the least: with three indicators a latent is identified by itself.
    items_per_latent: int = 3
    #: Every number of factors up to this one is tried; beyond, steps grow by the ratio, and the surroundings of so many
    #: peaks are filled in. Partitions with 40 and 41 factors are nearly the same.
    every_number_up_to: int = 16
    step_ratio: float = 1.1
    n_peaks: int = 3
    #: A level is the highest within this factor of its number of latents, so that two levels tell different things.
    levels_apart: float = 1.5
    #: Half of what chance leaves has to come back for a partition to be called a level at all.
    least_agreement: float = 0.5
    #: The latents of an exact model that come back this well are read first, whatever else comes back better. What is
    #: asked of a partition in the study of bootstrap samples (``python -m benchmarks headline``); .7, .8 and no bound
    #: were tried on stored answers and were not more stable (docs/search-notes.md).
    stable_agreement: float = 0.9
    #: Replicates: their mean has a standard error of about .02 where partitions are unstable. Fewer with many items,
    #: where a partition has more pairs to agree on and takes longer.
    n_replicates: int = 30
    least_replicates: int = 10
    many_items: int = 60
    #: With more variables an exact model that fits closely (``strict_rmsea``) is not compared with partitions: 500 of
    #: them would take some 440 factor analyses of all variables.
    most_partitioned: int = 300
    #: With more variables than that a residual pair is looked at only where its score test with all other parameters
    #: fixed has this part of what it has to pay: the others' share of its information is rarely more than half.
    telling_part: float = 0.25
    #: Residual pairs that a remark names; all are in the result.
    n_shown: int = 5

    # Time -----------------------------------------------------------------------------------------------------
    #: As parts of the time limit (``python -m benchmarks time-limits``), when these have to be done: a test that only
    #: says which way to go, the moments of rows with missing values, partitions of the items that come back in
    #: replicates, the measurement model, the latent graph. The rest is for the last fit.
    tested_by: float = 0.15
    read_by: float = 0.3
    compared_by: float = 0.4
    measured_by: float = 0.65
    connected_by: float = 0.85
    #: The part of the limit that a search has, whatever else is to be done.
    least_part: float = 0.3
    #: Seconds beyond the limit for a first model, without which there is no answer at all; seconds the last fit may
    #: take after Ctrl-C, and whatever the limit says.
    for_first_model: float = 0.7
    after_interrupt: float = 2.0
    for_last_fit: float = 0.5
    #: Before this part of the work is done, the time it took says little about the rest; and the part of the work that
    #: the measurement model is.
    telling: float = 0.2
    measuring: float = 0.9

    # Answers --------------------------------------------------------------------------------------------------
    #: Runners-up that are kept, and how far below the best they may be: their weight is then below e^-10.
    n_runners: int = 40
    rival: float = 10.0
    #: Statements of knowledge that are named in one remark.
    n_statements_named: int = 6

    def effort(self, n_variables: int, n_rows: float, *, has_starts: bool) -> Effort:
        """The preset for a search of so many variables and rows.

        >>> [BUDGET.effort(*size, has_starts=False).n_climbs for size in ((20, 1000), (20, 1e5), (40, 1000))]
        [4, 8, 2]
        """
        if has_starts:
            return self.near_an_answer
        if n_variables > self.many_variables:
            return self.with_many_variables
        return self.usual if n_rows < self.very_many_rows else self.with_very_many_rows


BUDGET = Budget()
