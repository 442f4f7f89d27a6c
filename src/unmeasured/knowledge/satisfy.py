"""Whether statements can all hold: a model that satisfies them is the proof, and where a search may begin.

Who measures what is decided item by item, with a way back (backtracking); a group of k that still lacks pure children
may not lack more than there are items left. Paths can hold exactly if those required form no cycle and none of them is
forbidden: then the graph with just these edges is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from unmeasured.errors import ModelError
from unmeasured.knowledge.known import Knowledge
from unmeasured.knowledge.rules import Parents, Rules, Sizes
from unmeasured.knowledge.statements import Count, Statement, refuse_unknown

# Steps of one look for a model; enough for knowledge that people write down.
_MOST_STEPS = 20_000


def rules_of(knowledge: Knowledge, items: Sequence[str], max_group_size: int | None = None) -> Rules:
    """The rules that knowledge stands for, once it is sure that some factor model of these items satisfies them.

    Raises
    ------
    ModelError
        For an item that is not in the data, a latent with the name of one, or statements that contradict one another.

    Examples
    --------
    >>> known = Knowledge(groups={"speed": ["a", "b"]}, apart=[["a", "b"], ["c", "d"]])
    >>> rules_of(known, list("abcdef"))
    Traceback (most recent call last):
        ...
    unmeasured.errors.ModelError: The knowledge contradicts itself; these cannot all hold: (1) speed is measured by a,
    b; (2) no two of a, b share a group. Take one of them back.
    """
    _refuse_names(knowledge, items)
    rules = Rules.of(knowledge.statements, items, max_group_size)
    if can_hold(rules):
        return rules
    clash = _clash(list(knowledge.statements), items, max_group_size)
    shown = "; ".join(f"({i}) {statement}" for i, statement in enumerate(clash, start=1))
    if can_hold(Rules.of(knowledge.statements, items)):
        raise ModelError(f"With max_group_size={max_group_size}, an option of the search, this cannot hold: {shown}.")
    if len(clash) == 1:
        raise ModelError(
            f"No factor model of these {len(items)} variables agrees with this: {shown}. A group of k latents needs 2k "
            "variables that measure it alone (Def. 2)."
        )
    raise ModelError(f"The knowledge contradicts itself; these cannot all hold: {shown}. Take one of them back.")


def _refuse_names(knowledge: Knowledge, items: Sequence[str]) -> None:
    for statement in knowledge.statements:
        if statement.kind in ("group", "together", "apart"):
            refuse_unknown(statement.value, items, f"Knowledge that {statement}", "a variable of the data")
    latents = [name for group in knowledge.groups for name in knowledge.latents.get(group, (group,))]
    for name in (*latents, *knowledge.above):
        if name in items:
            raise ModelError(f"A latent cannot be called {name!r}: a variable of the data is. Choose another name.")


def _clash(statements: list[Statement], items: Sequence[str], max_group_size: int | None) -> list[Statement]:
    """Statements that cannot all hold, though all but any one of them can.

    Which items a group has is no matter to paths that contradict one another, so only these are told.
    """
    groups: list[Statement] = []
    left = list(statements)
    if not _paths_can_hold(Rules.of(statements, items)):
        groups = [statement for statement in statements if statement.kind == "group"]
        left = [statement for statement in statements if statement.is_about_paths]
    for statement in list(left):
        without = [other for other in left if other is not statement]
        if not can_hold(Rules.of([*groups, *without], items, max_group_size)):
            left = without
    return left


def can_hold(rules: Rules) -> bool:
    """Whether some model agrees."""
    return _paths_can_hold(rules) and (not rules.needs_latents or next(models(rules), None) is not None)


def _paths_can_hold(rules: Rules) -> bool:
    left = set(rules.required)
    if left & rules.forbidden:
        return False
    while left:
        ends = {arrow for arrow in left if not any(arrow[1] == other[0] for other in left)}
        if not ends:
            return False
        left -= ends
    return True


def models(rules: Rules) -> Iterator[tuple[Sizes, Parents]]:
    """Models that agree, one for each number and sizes of groups at most, small ones first."""
    steps = 0
    for sizes in _shapes(rules):
        look = _Look(rules, sizes, (), _MOST_STEPS - steps)
        parents = look.settle(0)
        steps += look.n_steps
        if parents is not None:
            yield sizes, parents
        if steps >= _MOST_STEPS:
            return


def nearest_model(rules: Rules, sizes: Sizes, parents: Parents) -> tuple[Sizes, Parents] | None:
    """A model that agrees and leaves items where they are as long as nothing speaks against it, if one is found."""
    conformed = rules.conform(sizes, parents)
    places = rules.places(conformed[1]) if conformed else None
    if conformed is None or places is None:
        return None
    sizes, parents = conformed
    named_first = (*places, *_by_pure_children(parents, [g for g in range(len(sizes)) if g not in places]))
    sizes, parents = _keeping(named_first, sizes, parents)
    counted = _with_right_counts(rules, sizes)
    if counted is None:
        return None
    sizes, parents = _keeping(range(len(counted)), counted, parents)
    settled = _Look(rules, sizes, parents, _MOST_STEPS // 10).settle(0)
    return None if settled is None or not rules.allow(sizes, settled) else (sizes, settled)


def _by_pure_children(parents: Parents, groups: list[int]) -> list[int]:
    return sorted(groups, key=lambda g: -parents.count(1 << g))


def _keeping(groups: Sequence[int], sizes: Sizes, parents: Parents) -> tuple[Sizes, Parents]:
    """The model with these groups alone, in this order."""
    masks = (sum(1 << i for i, g in enumerate(groups) if mask >> g & 1) for mask in parents)
    return tuple(sizes[g] for g in groups), tuple(masks)


def _with_right_counts(rules: Rules, sizes: Sizes) -> Sizes | None:
    """Sizes with groups taken from the end or added there, or made smaller or larger, until the numbers are right."""
    n_named, least, width = len(rules.groups), rules.group_size.low, list(sizes)
    latents, groups = rules.n_latents, rules.n_groups
    while len(width) > n_named and groups.high is not None and len(width) > groups.high:
        width.pop()
    for g in range(n_named, len(width)):
        while latents.high is not None and sum(width) > latents.high and width[g] > least:
            width[g] -= 1
    while len(width) > n_named and latents.high is not None and sum(width) > latents.high:
        width.pop()
    while len(width) < groups.low or (groups.holds(len(width) + 1) and sum(width) < latents.low):
        width.append(least)
    for g in range(n_named, len(width)):
        while sum(width) < latents.low and rules.group_size.holds(width[g] + 1):
            width[g] += 1
    right = width and groups.holds(len(width)) and latents.holds(sum(width)) and 2 * sum(width) <= rules.n_items
    return tuple(width) if right else None


def _shapes(rules: Rules) -> Iterator[Sizes]:
    """Sizes of the groups, named ones first, as small as they may be: larger ones only need more pure children."""
    named = [rules.size_of(g) for g in range(len(rules.groups))]
    most = rules.n_items // (2 * rules.group_size.low)
    if rules.n_groups.high is not None:
        most = min(most, rules.n_groups.high)
    for n_groups in range(max(len(named), rules.n_groups.low, 1), most + 1):
        counts = [*named, *[rules.group_size] * (n_groups - len(named))]
        total = max(sum(count.low for count in counts), rules.n_latents.low)
        possible = all(count.holds(count.low) for count in counts) and rules.n_latents.holds(total)
        if possible and 2 * total <= rules.n_items:
            yield from _sizes(counts, len(named), total)


def _sizes(counts: Sequence[Count], n_named: int, total: int, before: int | None = None) -> Iterator[Sizes]:
    """Sizes within their bounds that make a total; groups without a name are alike, so theirs never rise."""
    if not counts:
        yield from [()] if total == 0 else []
        return
    count, rest = counts[0], counts[1:]
    most = total - sum(other.low for other in rest)
    for bound in (count.high, before if n_named <= 0 else None):
        most = most if bound is None else min(most, bound)
    room = None if any(other.high is None for other in rest) else sum(other.high or 0 for other in rest)
    least = count.low if room is None else max(count.low, total - room)
    for k in range(least, most + 1):
        for others in _sizes(rest, n_named - 1, total - k, k if n_named <= 0 else None):
            yield k, *others


@dataclass
class _Look:
    """A look for parents of all items, named groups first among the groups, near to the parents wanted if there are."""

    rules: Rules
    sizes: Sizes
    wanted: Parents
    most_steps: int
    n_steps: int = 0
    parents: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        rules = self.rules
        self.parents = [rules.listed.get(j, -1) for j in range(rules.n_items)]
        self.sets = [[t for t in rules.together if j in t] for j in range(rules.n_items)]
        free = [j for j in range(rules.n_items) if j not in rules.listed]
        self.order = sorted(free, key=lambda j: (-len(self.sets[j]), -rules.foes[j].bit_count(), j))

    def settle(self, at: int) -> Parents | None:
        """Parents for the items from ``at`` in the order, or None."""
        self.n_steps += 1
        if self.n_steps > self.most_steps or (at == 0 and not self._listed_agree()):
            return None
        if self._lack() > len(self.order) - at:
            return None
        if at == len(self.order):
            return tuple(self.parents)
        j = self.order[at]
        for mask in self._choices(j):
            if self._fits(j, mask):
                self.parents[j] = mask
                found = self.settle(at + 1)
                if found is not None:
                    return found
                self.parents[j] = -1
        return None

    def _listed_agree(self) -> bool:
        return all(self._fits(j, mask) for j, mask in self.rules.listed.items())

    def _lack(self) -> int:
        return sum(max(2 * k - self.parents.count(1 << g), 0) for g, k in enumerate(self.sizes))

    def _choices(self, j: int) -> list[int]:
        """Sets of groups, the one wanted first, then groups that lack pure children."""
        groups = sorted(range(len(self.sizes)), key=lambda g: self.parents.count(1 << g) - 2 * self.sizes[g])
        most = min(max(len(self.sets[j]), 1), len(groups))
        masks = [sum(1 << g for g in some) for r in range(1, most + 1) for some in combinations(groups, r)]
        wanted = [self.wanted[j]] if self.wanted else []
        return list(dict.fromkeys([*wanted, *masks, *([] if self.sets[j] else [0])]))

    def _fits(self, j: int, mask: int) -> bool:
        """Whether an item may have these parents, as far as the others are decided."""
        foes = self.rules.foes[j]
        if any(foes >> i & 1 and other > 0 and other & mask for i, other in enumerate(self.parents)):
            return False
        for items in self.sets[j]:
            common = mask
            for i in items:
                if i != j and self.parents[i] >= 0:
                    common &= self.parents[i]
            if not common:
                return False
        return True
