"""Experiments: small files that say what is run, and the runs they stand for.

A file of ``benchmark/experiments/`` reads like this; a key it should not have is an error that names it::

    name = "table4"
    title = "..."
    seed = 4                      # of parameters and rows
    parameters = "paper"          # or "realistic"
    noise = "gaussian"            # or "uniform"
    nonlinearity = "linear"       # or "leaky-relu"
    sample_sizes = [1000]
    seeds = [0, 1, 2, 3, 4]       # each one: new parameters and new rows for every graph
    time_limit = 600              # seconds a run may take; left out: any
    categories = ["even"]         # rows cut into five; "none": not cut. Left out: not cut
    missing = [0, 0.1]            # part of the values punched out; left out: none
    apart = true                  # every run in a process of its own, which shows how much memory it took
    give_up = true                # a method that has passed its time limit is not tried on graphs as large

    [graphs]                      # suite = "paper" | "realistic", data = [bundled data sets], latents = false,
                                  # or structures drawn from a seed:
    n_observed = [5, 6]
    n_latents = [[2], [2, 3]]     # for each size, taken in turn
    n_graphs = 4                  # of each size
    seed = 4

    [[methods]]
    label = "LGES (delta)"
    constructor = "LGES"          # of the package or its peers, or "module:Name"
    options = { criterion = "delta" }
    paper = "LGES"                # its column in the paper's table
    max_observed = 9              # not run on larger graphs
    noise = "uniform"             # rows of its own; left out: the experiment's
    time_limit = 120              # seconds for this method; left out: the experiment's
    seeds = [0, 1]                # for a slow method, some of the seeds; left out: all
    n_observed = [5]              # likewise some of the sizes, and
    data = ["big_five"]           # some of the data sets,
    categories = ["even"]         # some of the cuts,
    missing = [0.1]               # some of the parts missing

    [table]
    rows = "n_observed"           # or "n_samples", "method", "family" (graphs by the first part of their name), "data",
                                  # "categories", "missing"
    measures = ["f1", "shd_paper", "shd", "seconds"]
    paper = "table4"              # the paper's table to print beside ours
    exponent = true               # say how seconds grow with the number of observed variables

    [quick]                       # what --quick changes
    seeds = [0]
    n_graphs = 2
    max_observed = { "exact" = 7 }
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args

from benchmarks import paper
from benchmarks.measures import MEASURES
from benchmarks.real import DataSet, DataSets
from benchmarks.run_records import Task
from benchmarks.section import (
    BOOLEAN,
    COUNT,
    COUNT_TABLE,
    COUNTS,
    PARTS,
    POSITIVE,
    SEEDS,
    TABLE,
    TEXT,
    WHOLE,
    Kind,
    Section,
    one_of,
    some_of,
)
from benchmarks.structures import Graphs, Structure, read_graphs
from unmeasured.data import datasets
from unmeasured.errors import UnmeasuredError, listing, nearest
from unmeasured.graphs import DAG
from unmeasured.simulate import Categories, Noise, Nonlinearity, Setting

Rows = Literal["n_observed", "n_samples", "method", "family", "data", "categories", "missing"]
NOT_CUT = "none"


@dataclass(frozen=True)
class Method:
    """A method as an experiment names it."""

    label: str
    constructor: str
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    paper: str | None = None
    max_observed: int | None = None
    noise: Noise | None = None
    time_limit: float | None = None
    seeds: tuple[int, ...] | None = None
    n_observed: tuple[int, ...] | None = None
    data: tuple[str, ...] | None = None
    categories: tuple[Categories | None, ...] | None = None
    missing: tuple[float, ...] | None = None

    def does(self, task: Task) -> bool:
        """Whether a run is among those this method makes."""
        limits = (
            (self.seeds, task.seed),
            (self.n_observed, task.n_observed),
            (self.data, task.graph),
            (self.categories, task.categories),
            (self.missing, task.missing),
        )
        within = self.max_observed is None or task.n_observed <= self.max_observed
        return within and all(some is None or value in some for some, value in limits)


@dataclass(frozen=True)
class Layout:
    """How the table of an experiment is laid out."""

    rows: Rows
    measures: tuple[str, ...]
    paper: str | None = None
    exponent: bool = False


@dataclass(frozen=True)
class Quick:
    """What a quick version changes; None leaves a thing as it is."""

    seeds: tuple[int, ...] | None
    n_graphs: int | None
    sample_sizes: tuple[int, ...] | None
    max_observed: Mapping[str, int] = field(hash=False)


@dataclass(frozen=True)
class Assignment:
    """A task and the true graph it is about; real data have none."""

    task: Task
    truth: DAG | None
    apart: bool = False


@dataclass(frozen=True)
class Experiment:
    """Which methods run on which data, and the table that comes of it."""

    name: str
    title: str
    seed: int
    graphs: Graphs
    parameters: Setting
    noise: Noise
    nonlinearity: Nonlinearity
    sample_sizes: tuple[int, ...]
    seeds: tuple[int, ...]
    time_limit: float | None
    methods: tuple[Method, ...]
    layout: Layout
    quick: Quick | None = None
    categories: tuple[Categories | None, ...] = (None,)
    missing: tuple[float, ...] = (0.0,)
    apart: bool = False
    give_up: bool = False

    @cached_property
    def assignments(self) -> tuple[Assignment, ...]:
        """Every run, in the order of seeds, graphs, sample sizes, methods: stopped early, all graphs have been seen.

        Where methods give up, smaller graphs come first.
        """
        structures = self.graphs.structures()
        made = [
            Assignment(task, structure.dag, self.apart)
            for seed in self.seeds
            for structure in structures
            for n_samples in (self.sample_sizes if structure.n_samples is None else (structure.n_samples,))
            for categories, missing in product(self.categories, self.missing)
            for method in self.methods
            if method.does(task := self._task(method, structure, seed, n_samples, categories, missing))
        ]
        return tuple(sorted(made, key=lambda a: a.task.n_observed) if self.give_up else made)

    def _task(
        self,
        method: Method,
        structure: Structure | DataSet,
        seed: int,
        n_samples: int,
        categories: Categories | None,
        missing: float,
    ) -> Task:
        is_real = structure.dag is None
        return Task(
            experiment=self.name,
            method=method.label,
            constructor=method.constructor,
            options=method.options,
            graph=structure.id,
            graph_digest=structure.digest,
            n_observed=structure.n_observed,
            n_samples=n_samples,
            seed=seed,
            experiment_seed=self.seed,
            parameters=None if is_real else self.parameters,
            noise=None if is_real else method.noise or self.noise,
            nonlinearity=None if is_real else self.nonlinearity,
            time_limit=method.time_limit or self.time_limit,
            categories=categories,
            missing=missing,
        )

    @property
    def labels(self) -> tuple[str, ...]:
        """What its methods are called."""
        return tuple(method.label for method in self.methods)

    def restricted(self, labels: Sequence[str]) -> Experiment:
        """The same runs for some of the methods."""
        known = self.labels
        for label in labels:
            if label not in known:
                raise UnmeasuredError(
                    f"Experiment {self.name!r} has no method {label!r}{nearest(label, known) or '.'} "
                    f"It has {listing(known)}."
                )
        return replace(self, methods=tuple(method for method in self.methods if method.label in labels))

    def first_seeds(self, n: int) -> Experiment:
        """The same runs for the first ``n`` seeds."""
        if n < 1:
            raise UnmeasuredError(f"The number of seeds is one or more; got {n}.")
        return replace(self, seeds=self.seeds[:n])

    def quickened(self) -> Experiment:
        """The quick version: some of the same runs."""
        if self.quick is None:
            raise UnmeasuredError(f"Experiment {self.name!r} has no quick version; its file has no [quick].")
        quick = self.quick
        return replace(
            self,
            title=f"{self.title} (quick version)",
            graphs=self.graphs if quick.n_graphs is None else self.graphs.reduced(quick.n_graphs),
            seeds=quick.seeds or self.seeds,
            sample_sizes=quick.sample_sizes or self.sample_sizes,
            methods=tuple(
                replace(m, max_observed=quick.max_observed.get(m.label, m.max_observed)) for m in self.methods
            ),
        )


# -------------------------------------------------------------------------------------------------- reading


# Experiments that one command runs, one after the other.
COLLECTIONS = {"table2": ("table2-uniform", "table2-leaky-relu")}


def collected(name: str) -> tuple[str, ...]:
    """The experiments behind a name: those of a collection, every one for ``"all"``, or the one of that name.

    >>> collected("table2")
    ('table2-uniform', 'table2-leaky-relu')
    """
    return available() if name == "all" else COLLECTIONS.get(name, (name,))


def with_methods(names: Sequence[str], labels: Sequence[str]) -> tuple[str, ...]:
    """Those of some experiments that have one of these methods.

    >>> with_methods(available(), ["RLCD"])
    ('realistic', 'runtime', 'scaling', 'table1', 'table2-leaky-relu', 'table2-uniform')
    """
    having = {name: load(name).labels for name in names}
    known = tuple(dict.fromkeys(label for labels in having.values() for label in labels))
    for label in labels:
        if label not in known:
            hint = nearest(label, known) or "."
            raise UnmeasuredError(f"None of these experiments has a method {label!r}{hint} They have {listing(known)}.")
    return tuple(name for name in names if set(labels) & set(having[name]))


def available() -> tuple[str, ...]:
    """Names of the experiments that come with the package.

    >>> "table4" in available()
    True
    """
    return tuple(sorted(file.name.removesuffix(".toml") for file in _folder().iterdir() if file.name.endswith(".toml")))


def load(name: str) -> Experiment:
    """An experiment that comes with the package, by name, or one of your own, by the path of its file.

    >>> load("table5").sample_sizes
    (1000,)
    >>> load("tabel5")
    Traceback (most recent call last):
    ...
    unmeasured.errors.UnmeasuredError: There is no experiment 'tabel5'; did you mean 'table5'? There are ...
    """
    if name.endswith(".toml"):
        return _read(Path(name), name)
    if name not in available():
        hint = nearest(name, available()) or "."
        raise UnmeasuredError(
            f"There is no experiment {name!r}{hint} There are {listing(available())}; a file of your own ends in .toml."
        )
    return _read(_folder() / f"{name}.toml", f"{name}.toml")


def _folder() -> Traversable:
    return files("benchmarks") / "experiments"


def _read(file: Traversable, where: str) -> Experiment:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UnmeasuredError(f"There is no file {where!r}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UnmeasuredError(f"{where!r} cannot be read: {error}.") from None
    return parse(text, where)


def parse(text: str, where: str = "experiment") -> Experiment:
    """An experiment from the text of its file; ``where`` is what messages call the file."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UnmeasuredError(f"{where} is not valid TOML: {error}.") from None
    section = Section(content, where)
    graphs = read_graphs(section.part("graphs"))
    is_real = isinstance(graphs, DataSets)
    experiment = Experiment(
        name=section.take("name", TEXT),
        title=section.take("title", TEXT),
        seed=section.take("seed", WHOLE),
        parameters=section.take_or("parameters", one_of(*get_args(Setting)), "paper"),
        noise=section.take_or("noise", one_of(*get_args(Noise)), "gaussian"),
        nonlinearity=section.take_or("nonlinearity", one_of(*get_args(Nonlinearity)), "linear"),
        sample_sizes=() if is_real else tuple(section.take("sample_sizes", COUNTS)),
        seeds=tuple(section.take("seeds", SEEDS)),
        time_limit=section.take_or("time_limit", POSITIVE, None),
        graphs=graphs,
        methods=tuple(_read_method(part) for part in section.parts("methods")),
        layout=_read_layout(section.part("table")),
        quick=_read_quick(section.part_or_none("quick")),
        categories=_read_categories(section) or (None,),
        missing=tuple(section.take_or("missing", PARTS, (0.0,))),
        apart=section.take_or("apart", BOOLEAN, False),
        give_up=section.take_or("give_up", BOOLEAN, False),
    )
    section.end()
    _check(experiment, where)
    return experiment


def _read_categories(section: Section) -> tuple[Categories | None, ...] | None:
    words = section.take_or("categories", some_of(NOT_CUT, *get_args(Categories)), None)
    return None if words is None else tuple(None if word == NOT_CUT else word for word in words)


def _read_some(section: Section, key: str, kind: Kind) -> tuple[Any, ...] | None:
    """A list, or None where it is left out."""
    values = section.take_or(key, kind, None)
    return None if values is None else tuple(values)


def _read_method(section: Section) -> Method:
    method = Method(
        label=section.take("label", TEXT),
        constructor=section.take("constructor", TEXT),
        options=section.take_or("options", TABLE, {}),
        paper=section.take_or("paper", TEXT, None),
        max_observed=section.take_or("max_observed", COUNT, None),
        noise=section.take_or("noise", one_of(*get_args(Noise)), None),
        time_limit=section.take_or("time_limit", POSITIVE, None),
        seeds=_read_some(section, "seeds", SEEDS),
        n_observed=_read_some(section, "n_observed", COUNTS),
        data=_read_some(section, "data", some_of(*datasets.available())),
        categories=_read_categories(section),
        missing=_read_some(section, "missing", PARTS),
    )
    section.end()
    try:
        json.dumps(method.options, allow_nan=False)
    except (TypeError, ValueError):
        raise UnmeasuredError(
            f"{section.where}: options are numbers, texts, lists and tables of these, no dates and no nan or inf; "
            f"got {dict(method.options)!r}."
        ) from None
    return method


def _read_layout(section: Section) -> Layout:
    layout = Layout(
        rows=section.take("rows", one_of(*get_args(Rows))),
        measures=tuple(section.take("measures", some_of(*MEASURES))),
        paper=section.take_or("paper", one_of(*paper.TABLES), None),
        exponent=section.take_or("exponent", BOOLEAN, False),
    )
    section.end()
    return layout


def _read_quick(section: Section | None) -> Quick | None:
    if section is None:
        return None
    quick = Quick(
        seeds=_read_some(section, "seeds", SEEDS),
        n_graphs=section.take_or("n_graphs", COUNT, None),
        sample_sizes=_read_some(section, "sample_sizes", COUNTS),
        max_observed=section.take_or("max_observed", COUNT_TABLE, {}),
    )
    section.end()
    return quick


def _check(experiment: Experiment, where: str) -> None:
    """What no single table of the file can know."""
    labels = [method.label for method in experiment.methods]
    repeated = sorted({label for label in labels if labels.count(label) > 1})
    if repeated:
        raise UnmeasuredError(f"{where}: methods share the label {listing(repeated)}; give each its own.")
    strangers = [label for label in (experiment.quick.max_observed if experiment.quick else ()) if label not in labels]
    if strangers:
        raise UnmeasuredError(
            f"{where}, [quick]: no method has the label {listing(strangers)}; there are {listing(labels)}."
        )
    for method in experiment.methods:
        strange = sorted(set(method.seeds or ()) - set(experiment.seeds))
        if strange:
            raise UnmeasuredError(
                f"{where}: {method.label!r} has seeds {strange} that the experiment has not; it has "
                f"{list(experiment.seeds)}."
            )
    _check_rows(experiment, where)
    _check_paper(experiment, where)


def _check_rows(experiment: Experiment, where: str) -> None:
    """What comes in several kinds has to be what the rows of the table are, or its cells would mix them."""
    rows = experiment.layout.rows
    if (rows == "data") != isinstance(experiment.graphs, DataSets):
        raise UnmeasuredError(f'{where}: a table of real data, and no other, has rows = "data"; got "{rows}".')
    for kind, given in (("categories", experiment.categories), ("missing", experiment.missing)):
        if rows != kind and len(given) > 1:
            raise UnmeasuredError(
                f'{where}: with several values of {kind} the table has rows = "{kind}"; got "{rows}".'
            )
    if rows != "n_samples" and len(experiment.sample_sizes) > 1:
        raise UnmeasuredError(
            f'{where}: a table with rows = "{experiment.layout.rows}" has one sample size, or its cells would mix '
            f"several; got {list(experiment.sample_sizes)}."
        )


def _check_paper(experiment: Experiment, where: str) -> None:
    named = [method.paper for method in experiment.methods if method.paper is not None]
    if experiment.layout.paper is None:
        if named:
            raise UnmeasuredError(
                f"{where}: methods name columns of the paper ({listing(named)}), but [table] has no paper."
            )
        return
    known = paper.methods(experiment.layout.paper)
    strangers = [name for name in named if name not in known]
    if strangers:
        raise UnmeasuredError(
            f"{where}: the paper's {experiment.layout.paper} has no column {listing(strangers)}; "
            f"it has {listing(known)}."
        )
