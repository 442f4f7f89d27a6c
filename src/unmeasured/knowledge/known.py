"""Knowledge: what the user knows before the search, as one value.

::

    um.Knowledge(groups={"speed": ["x1", "x2"]}, required=["speed -> error"], …)    from Python
    um.Knowledge.read("known.toml")                                                 from a file with the same words
    um.Knowledge.from_lavaan("speed =~ x1 + x2; error ~ speed")                     from a partial model
         │
         └──► statements ──► Rules: which models and latent graphs they allow       um.LGES(knowledge=…)
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from unmeasured.errors import ModelError, nearest
from unmeasured.graphs.levels import LEAST_FACETS
from unmeasured.knowledge.statements import Count, Statement, checked_items, read_path, refuse_unknown
from unmeasured.models.lavaan import parse

Path_ = str | Sequence[str]
Number = int | str


@dataclass(frozen=True, repr=False)
class Knowledge:
    """Prior knowledge, with which the result of :class:`unmeasured.LGES` always agrees.

    Parameters
    ----------
    groups : mapping of str to sequences of str
        Groups by name and items that measure them. An item listed under one group measures that group and nothing
        else (a pure indicator); one listed under several measures exactly these. Other items may join. Groups with
        different names are different groups, and each needs an item of its own. The latent gets the group's name;
        of several, the name and a number.
    together : sequence of sequences of str
        Items that share a group, whatever else they measure.
    apart : sequence of sequences of str
        Items no two of which share a group.
    n_latents, n_groups : int or str, optional
        How many there are: 3, "at most 3" or "at least 3".
    group_size : int or str, optional
        Latents in every group.
    sizes : mapping of str to int or str
        Latents in a group, by its name.
    latents : mapping of str to sequences of str
        Names for the latents of a group, as many as it has.
    tiers : sequence of sequences of str
        Groups in order: one of a later tier does not cause one of an earlier tier.
    covariates, outcomes : sequence of str
        Observed variables that are no items: causes that nothing causes, and effects that measure no latent. Tiers and
        paths may name them.
    above : mapping of str to sequences of str
        Latents above latents: a name, and three or more groups of one latent that have it as their common cause and no
        other paths (``docs/hierarchy.md``).
    max_levels : int, optional
        Levels of latents there are at most; 1: no latents above latents.
    required, forbidden : sequence of str
        Paths ``"a -> b"`` (or pairs) that are there, or are not; ``"a -- b"`` forbids both directions. A path is a
        direct effect: it says nothing of effects by way of other groups.

    Raises
    ------
    ModelError
        For a statement that cannot be read, or a group nobody knows.

    Examples
    --------
    >>> known = Knowledge(groups={"speed": ["x1", "x2"], "error": ["x5"]}, required=["speed -> error"])
    >>> print(known)
    speed is measured by x1, x2
    error is measured by x5
    speed → error is required
    """

    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    together: Sequence[Sequence[str]] = ()
    apart: Sequence[Sequence[str]] = ()
    n_latents: Number | None = None
    n_groups: Number | None = None
    group_size: Number | None = None
    sizes: Mapping[str, Number] = field(default_factory=dict)
    latents: Mapping[str, Sequence[str]] = field(default_factory=dict)
    tiers: Sequence[Sequence[str]] = ()
    required: Sequence[Path_] = ()
    forbidden: Sequence[Path_] = ()
    above: Mapping[str, Sequence[str]] = field(default_factory=dict)
    max_levels: int | None = None
    covariates: Sequence[str] = ()
    outcomes: Sequence[str] = ()

    def __post_init__(self) -> None:
        groups = {name: checked_items(x, f"The group {name!r}") for name, x in _table("groups", self.groups).items()}
        latents = {
            name: checked_items(x, f"The latents of {name!r}") for name, x in _table("latents", self.latents).items()
        }
        kept: dict[str, Any] = {"groups": groups, "latents": latents, "sizes": _table("sizes", self.sizes)}
        kept["above"] = {
            name: checked_items(x, f"What is below {name!r}", LEAST_FACETS)
            for name, x in _table("above", self.above).items()
        }
        kept |= {
            key: tuple(checked_items(items, f"An entry of {key}", 2) for items in _rows(key, getattr(self, key)))
            for key in ("together", "apart")
        }
        kept["tiers"] = tuple(checked_items(tier, "A tier") for tier in _rows("tiers", self.tiers))
        kept |= {key: tuple(_rows(key, getattr(self, key))) for key in ("required", "forbidden")}
        kept |= {key: checked_items(getattr(self, key), key, 0) for key in ("covariates", "outcomes")}
        for key, value in kept.items():
            object.__setattr__(self, key, value)
        self._check_roles()
        self._check_own_items()
        self._check_latents()
        self._check_levels()
        _ = self.statements  # what cannot be read is refused now

    def _check_roles(self) -> None:
        both = [name for name in self.covariates if name in self.outcomes]
        if both:
            raise ModelError(f"{both[0]!r} is named as a covariate and as an outcome. Keep one of the two.")
        items = {x for items in (*self.groups.values(), *self.together, *self.apart) for x in items}
        for name in (*self.covariates, *self.outcomes):
            if name in items or name in self.groups:
                what = "an item" if name in items else "a group"
                raise ModelError(f"{name!r} is {what}, and named as a covariate or an outcome. It is one or the other.")

    @cached_property
    def about_groups(self) -> Knowledge:
        """The same without covariates and outcomes, and without what is said of them."""
        roles = {*self.covariates, *self.outcomes}
        tiers = [[name for name in tier if name not in roles] for tier in self.tiers]
        required, forbidden = (
            [path for path in getattr(self, key) if not roles.intersection(read_path(path, key)[0])]
            for key in ("required", "forbidden")
        )
        tiers = [tier for tier in tiers if tier]
        return replace(self, covariates=(), outcomes=(), tiers=tiers, required=required, forbidden=forbidden)

    def _check_own_items(self) -> None:
        for name, items in self.groups.items():
            others = {x for other, theirs in self.groups.items() if other != name for x in theirs}
            if others.issuperset(items):
                raise ModelError(
                    f"The group {name!r} lists no item that measures it alone, so it cannot be told from others. Give "
                    "it an item of its own."
                )

    def _check_latents(self) -> None:
        names = [x for group in self.groups for x in self.latents.get(group, (group,))]
        refuse_unknown({*self.latents, *self.sizes}, tuple(self.groups), "latents and sizes", "a group that was named")
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ModelError(f"Two latents are called {twice[0]!r}. Give each a name of its own.")

    def _check_levels(self) -> None:
        if self.max_levels is not None and (
            isinstance(self.max_levels, bool) or not isinstance(self.max_levels, int) or self.max_levels < 1
        ):
            raise ModelError(f"max_levels is a whole number from 1; got {self.max_levels!r}.")
        if self.above and self.max_levels == 1:
            raise ModelError(
                "max_levels=1 says that no latent is above others, but above names some. Drop one of them."
            )
        seen: dict[str, str] = {}
        for name, below in self.above.items():
            refuse_unknown(below, tuple(self.groups), f"above {name!r}", "a group that was named")
            if name in self.groups or any(name in latents for latents in self.latents.values()):
                raise ModelError(f"Two latents are called {name!r}. Give each a name of its own.")
            for group in below:
                if group in seen:
                    raise ModelError(f"{group!r} is below both {seen[group]!r} and {name!r}; it can be below one.")
                seen[group] = name
                if len(self.latents.get(group, ())) > 1:
                    raise ModelError(f"{group!r} is below {name!r} but has several latents; only single ones can be.")
        paths = [name for path in self.required for arrow in read_path(path, "required") for name in arrow]
        for name in (*paths, *(name for tier in self.tiers for name in tier)):
            if name in seen:
                raise ModelError(
                    f"{name!r} is below {seen[name]!r}, so it has no paths of its own; required or tiers says that it "
                    "has. Drop one of them."
                )

    # Other ways in ----------------------------------------------------------------------------------------

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Knowledge:
        """From a TOML file whose keys are the parameters; or, if its name ends in ``.lav``, from lavaan text.

        Raises
        ------
        ModelError
            When the file is not there, is not TOML, or has a key that means nothing here.
        """
        place = Path(path)
        try:
            text = place.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(f"Knowledge cannot be read from {str(place)!r}: {error}.") from None
        return cls.from_lavaan(text) if place.suffix == ".lav" else cls.from_toml(text)

    @classmethod
    def from_toml(cls, text: str) -> Knowledge:
        """From TOML text whose keys are the parameters.

        >>> print(Knowledge.from_toml('n_groups = "at most 3"'))
        at most 3 groups
        """
        try:
            record = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            raise ModelError(f"Knowledge in a file is written in TOML, and this is not: {error}.") from None
        known = [entry.name for entry in fields(cls)]
        for key in record:
            if key not in known:
                raise ModelError(f"{key!r} is nothing that can be known{nearest(key, known) or '.'} Keys: {known}.")
        return cls(**record)

    @classmethod
    def from_lavaan(cls, text: str) -> Knowledge:
        """From lavaan text, taken as a part of the model.

        ``f =~ x1 + x2`` says that f is one latent and that x1 and x2 measure it and nothing else (an item under
        several latents: these and nothing else); latents with the same items are a group. ``g ~ f`` between latents
        says that the path f → g is there, and so does ``f =~ g``, unless f has no items: then it is above g. Numbers
        that set a scale, and variances, say nothing. What a factor model cannot have
        (covariances of noise, observed causes) or does not need (``0*x``) is refused.

        >>> print(Knowledge.from_lavaan("speed =~ x1 + x2; error =~ x5; error ~ speed"))
        speed is measured by x1, x2
        error is measured by x5
        speed has 1 latent
        error has 1 latent
        speed → error is required
        """
        return cls(**_of_lavaan(text))

    # What it says -----------------------------------------------------------------------------------------

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """One by one, each in words and once."""
        return tuple(dict.fromkeys(self._statements()))

    def _statements(self) -> Iterator[Statement]:
        for name, items in self.groups.items():
            yield Statement("group", f"{name} is measured by {', '.join(items)}", name, tuple(items))
        for name, latents in self.latents.items():
            size = Count.of(len(latents))
            yield Statement("latents", f"{name} has the latents {', '.join(latents)}", name, tuple(latents), size)
        for name, number in self.sizes.items():
            size = Count.of(number, f"The size of {name!r}")
            yield Statement("size", f"{name} has {size.words('latent')}", name, count=size)
        for items in self.together:
            yield Statement("together", f"{', '.join(items)} share a group", value=tuple(items))
        for items in self.apart:
            yield Statement("apart", f"no two of {', '.join(items)} share a group", value=tuple(items))
        if self.n_latents is not None:
            count = Count.of(self.n_latents, "n_latents")
            yield Statement("n_latents", count.words("latent"), count=count)
        if self.n_groups is not None:
            count = Count.of(self.n_groups, "n_groups")
            yield Statement("n_groups", count.words("group"), count=count)
        if self.group_size is not None:
            count = Count.of(self.group_size, "group_size")
            yield Statement("group_size", f"{count.words('latent')} in every group", count=count)
        for name, below in self.above.items():
            for group in below:
                if group not in self.sizes and group not in self.latents:
                    yield Statement("size", f"{group} has 1 latent", group, count=Count.of(1))
            yield Statement("above", f"{name} is above {', '.join(below)}", value=tuple(below))
        if self.max_levels is not None:
            count = Count(high=self.max_levels)
            yield Statement("max_levels", f"{count.words('level')} of latents", count=count)
        yield from self._path_statements()

    def _path_statements(self) -> Iterator[Statement]:
        for kind, names in (("covariates", self.covariates), ("outcomes", self.outcomes)):
            if names:
                yield Statement(kind, f"{kind}: {', '.join(names)}", value=tuple(names))  # type: ignore[arg-type]
        if self.tiers:
            order = tuple(tuple(self._group(name, "tiers") for name in tier) for tier in self.tiers)
            checked_items([name for tier in order for name in tier], "tiers")
            arrows = tuple(
                (late, early)
                for i, tier in enumerate(order)
                for early in tier
                for later in order[i + 1 :]
                for late in later
            )
            yield Statement("tiers", f"tiers: {', then '.join(', '.join(tier) for tier in order)}", value=arrows)
        for where in ("required", "forbidden"):
            for path in getattr(self, where):
                arrows = tuple((self._group(a, where), self._group(b, where)) for a, b in read_path(path, where))
                shown = f"{arrows[0][0]} {'→' if len(arrows) == 1 else '–'} {arrows[0][1]}"
                yield Statement("path", f"{shown} is {where}", value=arrows, required=where == "required")

    def _group(self, name: str, where: str) -> str:
        """The group of that name, or with a latent of that name; or a covariate or an outcome."""
        if name in self.covariates or name in self.outcomes:
            return name
        for group, latents in self.latents.items():
            if name in latents:
                return group
        refuse_unknown(
            [name], tuple(self.groups), where, "a group that was named (in groups, by items that measure it)"
        )
        return name

    def __bool__(self) -> bool:
        return bool(self.statements)

    def __len__(self) -> int:
        return len(self.statements)

    def __hash__(self) -> int:
        return hash(self.statements)

    def __str__(self) -> str:
        return "\n".join(map(str, self.statements)) or "nothing"

    def __repr__(self) -> str:
        return f"<{len(self)} statement{'s' * (len(self) != 1)}>"


def _table(key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ModelError(f"{key} has the names of groups and what is known of each; got {value!r}.")
    return {str(name): entry for name, entry in value.items()}


def _rows(key: str, value: Any) -> list[Any]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ModelError(f"{key} is a list, one entry for each statement; got {value!r}.")
    return list(value)


def _of_lavaan(text: str) -> dict[str, Any]:
    """The parameters of :class:`Knowledge` that a partial model stands for."""
    model = parse(text, correlate_exogenous=False)
    items: dict[str, list[str]] = {name: [] for name in model.latents}
    measured = {row.source for row in model.parameters if row.op == "=~" and row.target not in items}
    required, above = [], dict[str, list[str]]()
    for row in model.parameters:
        shown = f"{row.lhs} {row.op} {row.rhs}"
        if row.op == "~~" and row.source != row.target:
            raise ModelError(f"{shown}: covariances are nothing that can restrict the search. Leave the statement out.")
        if row.op != "~~" and row.fixed == 0.0:
            raise ModelError(f"{shown} is fixed to 0. Leave it out; paths that are not there go into forbidden.")
        if row.op == "=~" and row.target in items and row.source not in measured:
            above.setdefault(row.source, []).append(row.target)
        elif row.op != "~~" and row.target in items and row.source in items:
            required.append((row.source, row.target))
        elif row.op == "=~":
            items[row.source].append(row.target)
        elif row.op == "~":
            raise ModelError(f"{shown} needs a latent on both sides: observed variables are leaves in this model.")
    own = {name: theirs for name, theirs in items.items() if name not in above}
    return {**_groups_of(own), "required": required, "above": above}


def _groups_of(items: dict[str, list[str]]) -> dict[str, Any]:
    """Latents with the same items are one group, named after all of them."""
    members: dict[tuple[str, ...], list[str]] = {}
    for latent, theirs in items.items():
        members.setdefault(tuple(sorted(theirs)), []).append(latent)
    names = {latents[0]: " and ".join(latents) for latents in members.values()}
    return {
        "groups": {names[latents[0]]: items[latents[0]] for latents in members.values()},
        "latents": {names[latents[0]]: latents for latents in members.values() if len(latents) > 1},
        "sizes": {latents[0]: 1 for latents in members.values() if len(latents) == 1},
    }
