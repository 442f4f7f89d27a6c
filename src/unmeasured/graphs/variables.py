"""Node names, roles, and pairs of items that share more than their causes in the graph.

Latent is a role, never a prefix of the name. Of observed variables, a *covariate* is a cause that nothing in the graph
causes: a model is conditioned on it, and nothing is assumed of its distribution. An *outcome* is an effect that
measures no latent. All other observed variables are indicators.

A residual pair is a covariance of two residuals that the graph has no
arrow for (similar wording, a common method): it belongs to the variables, and so to every graph of a class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from unmeasured.errors import GraphError, listing, nearest


@dataclass(frozen=True)
class Variables:
    """The nodes of a graph, in order.

    Parameters
    ----------
    names : tuple of str
        Unique and not empty; the order is the order of rows and columns in every matrix of the graph.
    latent : tuple of bool
        For each name, whether nobody measured it.
    pairs : tuple of (str, str)
        Observed variables whose residuals covary, each pair once; kept in the order of the names.
    covariates, outcomes : tuple of str
        Observed variables with these roles, in the order of the names.

    Examples
    --------
    >>> variables = Variables.of(["speed", "x1", "x2"], latents=["speed"])
    >>> variables.latents, variables.observed
    (('speed',), ('x1', 'x2'))
    >>> variables.index("x2")
    2
    """

    names: tuple[str, ...]
    latent: tuple[bool, ...]
    pairs: tuple[tuple[str, str], ...] = ()
    covariates: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        object.__setattr__(self, "latent", tuple(bool(role) for role in self.latent))
        _check_names(self.names)
        if len(self.latent) != len(self.names):
            raise GraphError(
                f"{len(self.names)} names but {len(self.latent)} roles; give each name one role, or use "
                "Variables.of(names, latents)."
            )
        if self.pairs:
            object.__setattr__(self, "pairs", self._checked_pairs())
        for role in ("covariates", "outcomes"):
            object.__setattr__(self, role, self._checked_role(role))
        both = set(self.covariates) & set(self.outcomes)
        if both:
            raise GraphError(f"{listing(sorted(both))}: a variable is a covariate or an outcome, not both.")

    def _checked_role(self, role: str) -> tuple[str, ...]:
        """The variables of a role in the order of the names; all of them must be observed."""
        given = set(tuple_of_names(getattr(self, role), role))
        for name in sorted(given):
            if self.is_latent(name):
                raise GraphError(f"{name!r} is latent; {role} are observed variables.")
        return tuple(name for name in self.names if name in given)

    def _checked_pairs(self) -> tuple[tuple[str, str], ...]:
        found = set()
        for pair in self.pairs:
            a, b = sorted(self.index(name) for name in pair) if len(pair) == 2 else (0, 0)
            if a == b:
                raise GraphError(f"A residual pair is two different observed variables; got {tuple(pair)!r}.")
            latent = [self.names[i] for i in (a, b) if self.latent[i]]
            if latent:
                raise GraphError(f"{latent[0]} is latent; residual pairs are pairs of observed variables.")
            found.add((a, b))
        return tuple((self.names[a], self.names[b]) for a, b in sorted(found))

    @classmethod
    def of(
        cls,
        names: Iterable[str],
        latents: Iterable[str] = (),
        covariates: Iterable[str] = (),
        outcomes: Iterable[str] = (),
    ) -> Variables:
        """Variables from all names and, among them, those that are latent, covariates or outcomes."""
        names = tuple_of_names(names, "names")
        hidden = tuple_of_names(latents, "latents")
        for name in hidden:
            if name not in names:
                raise GraphError(
                    f"{name!r} is said to be latent but is no variable of this graph{nearest(name, names) or '.'}"
                )
        members = set(hidden)
        latent = tuple(name in members for name in names)
        return cls(names, latent, covariates=tuple(covariates), outcomes=tuple(outcomes))

    @cached_property
    def latents(self) -> tuple[str, ...]:
        """Names of the latent variables, in order."""
        return tuple(name for name, hidden in zip(self.names, self.latent) if hidden)

    @cached_property
    def observed(self) -> tuple[str, ...]:
        """Names of the observed variables, in order."""
        return tuple(name for name, hidden in zip(self.names, self.latent) if not hidden)

    @cached_property
    def indicators(self) -> tuple[str, ...]:
        """Names of the observed variables that are neither covariates nor outcomes, in order."""
        others = {*self.covariates, *self.outcomes}
        return tuple(name for name in self.observed if name not in others)

    def role(self, name: str) -> str:
        """The role of a variable: "latent", "observed", "covariate" or "outcome".

        >>> Variables.of(["L", "x", "age"], latents=["L"], covariates=["age"]).role("age")
        'covariate'
        """
        if self.is_latent(name):
            return "latent"
        return "covariate" if name in self.covariates else "outcome" if name in self.outcomes else "observed"

    @cached_property
    def latent_mask(self) -> int:
        """The latents as a set of bits (see :mod:`unmeasured.graphs.bitsets`)."""
        return sum(1 << i for i, hidden in enumerate(self.latent) if hidden)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def _hash(self) -> int:
        return hash((self.names, self.latent, self.pairs, self.covariates, self.outcomes))

    def __hash__(self) -> int:
        # Graphs of one search share one Variables, and each is hashed: worth remembering.
        return self._hash

    def index(self, name: str) -> int:
        """Row and column of a name.

        Raises
        ------
        GraphError
            When the graph has no such variable; the message proposes the nearest name.
        """
        try:
            return self._positions[name]
        except (KeyError, TypeError):
            hint = nearest(name, self.names) if isinstance(name, str) else ""
            raise GraphError(
                f"No variable {name!r} in this graph{hint or '; it has ' + listing(self.names) + '.'}"
            ) from None

    def is_latent(self, name: str) -> bool:
        """Whether the variable is latent."""
        return self.latent[self.index(name)]

    def rename(self, names: Mapping[str, str]) -> Variables:
        """The same variables, some under other names.

        >>> Variables.of(["L1", "x"], latents=["L1"]).rename({"L1": "speed"}).names
        ('speed', 'x')
        """
        for name in names:
            self.index(name)  # refuses what is no variable
        pairs = tuple((names.get(a, a), names.get(b, b)) for a, b in self.pairs)
        new, covariates, outcomes = (
            tuple(names.get(name, name) for name in given) for given in (self.names, self.covariates, self.outcomes)
        )
        return Variables(new, self.latent, pairs, covariates, outcomes)

    def with_pairs(self, pairs: Iterable[tuple[str, str]]) -> Variables:
        """The same variables with these residual pairs, and no others.

        >>> Variables.of(["x", "y"]).with_pairs([("y", "x")]).pairs
        (('x', 'y'),)
        """
        return Variables(self.names, self.latent, tuple(pairs), self.covariates, self.outcomes)

    def __len__(self) -> int:
        return len(self.names)


def tuple_of_names(names: Iterable[str], what: str) -> tuple[str, ...]:
    """The names as a tuple; a lone string, an iterable of letters and so a silent slip, is refused."""
    if isinstance(names, str):
        raise GraphError(f"{what} must be a list of strings; got the single string {names!r}. Write [{names!r}].")
    return tuple(names)


def _check_names(names: tuple[str, ...]) -> None:
    for position, name in enumerate(names):
        if not isinstance(name, str) or not name:
            raise GraphError(f"Variable names must be strings that are not empty; got {name!r} at position {position}.")
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise GraphError(f"Variable names must be unique; given more than once: {listing(twice)}. Rename them.")
