"""Names for latents, proposed from the indicators they show in.

A latent has no name of its own. The words its indicators share are the best guess there is (``Speed`` for
``Speed_Number``, ``Speed_Letter`` and ``Speed_Figure``). A single letter, as in N1, N2 and N3, is a name where it
sets these items apart from the others. Where indicators share nothing, the two strongest stand for the latent.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

# Fewer letters than this in common, such as the "x" of x1 and x2, say nothing by themselves; capitals, as in DM1 and
# DM2, are an abbreviation that somebody chose.
_LEAST, _LEAST_CAPITALS = 3, 2
# An abbreviation names a latent if so many of its items have it, and so many of those that have it are its items.
_MOST = 0.75
# Letters that number the questions of any file.
_NUMBERING = frozenset("QVXY")


def suggest_names(
    indicators: Mapping[tuple[str, ...], Sequence[str]],
    taken: Iterable[str] = (),
    labels: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """A name for each latent; the members of a group get a common one with a number.

    Parameters
    ----------
    indicators
        For each group its indicators, the strongest first.
    taken
        Names that must not be used: those of the observed variables.
    labels
        What questions say, by variable: where names share nothing, a word that nearly all of the labels share.

    Examples
    --------
    >>> suggest_names({("L1",): ["Speed_Number", "Speed_Letter"], ("L2",): ["q1", "q2", "q3"]})
    {'L1': 'Speed', 'L2': 'q1_q2'}
    >>> suggest_names({("L1", "L2"): ["mood1", "mood2", "mood3", "mood4"]})
    {'L1': 'mood_1', 'L2': 'mood_2'}
    >>> asked = {"q1": "I feel tired at work", "q2": "Work leaves me tired", "q3": "I am tired in the morning"}
    >>> suggest_names({("L1",): ["q1", "q2", "q3"]}, labels=asked)
    {'L1': 'tired'}
    >>> suggest_names({("L1",): ["N1", "N2", "N4"], ("L2",): ["E3", "E1", "E2", "N3"]})
    {'L1': 'N', 'L2': 'E'}
    """
    used, names = set(taken), {}
    known = {*used, *(item for items in indicators.values() for item in items)}
    for group, items in indicators.items():
        base = _base(items, labels or {}, known) or "latent"
        for number, latent in enumerate(group, start=1):
            name = base if len(group) == 1 else f"{base}_{number}"
            names[latent] = _free(name, used)
            used.add(names[latent])
    return names


def _base(items: Sequence[str], labels: Mapping[str, str], known: Iterable[str]) -> str:
    """What the names have in common, cut where a word ends, else a word of their labels, else the two strongest."""
    prefix = _common_beginning(items) if len(items) > 1 else ""
    whole = all(_ends_a_word(item, len(prefix)) for item in items)
    shared = (prefix if whole else re.sub(r"[^\W_]+$", "", prefix)).strip("_.- 0123456789")
    if len(shared) >= (_LEAST_CAPITALS if shared.isupper() else _LEAST):
        return _readable(shared)
    if stem := _stem_that_tells(items, known):
        return stem
    return _shared_word([labels[item] for item in items if item in labels]) or _readable("_".join(items[:2]))


def _stem_that_tells(items: Sequence[str], known: Iterable[str]) -> str:
    """The capitals before the number that most of the items have and few other variables; nothing where none is."""
    stem, count = max(Counter(map(_stem, items)).items(), key=lambda pair: pair[1], default=("", 0))
    if not stem.isupper() or stem in _NUMBERING or count < max(2, _MOST * len(items)):
        return ""
    everywhere = [_stem(name) for name in known]
    return stem if count >= _MOST * everywhere.count(stem) and len(set(everywhere)) > 1 else ""


def _stem(name: str) -> str:
    """The letters that a name of letters and a number begins with."""
    found = re.fullmatch(r"([^\W\d_]+)[\W_]*\d+\w?", name)
    return found[1] if found else ""


# Words that questions share without being about them.
_COMMON = frozenset(
    """
    about after also always because been before being could does doing during each else ever every feel feeling feels
    from have having here into just like make makes more most much myself never often only other others over people
    really rather should some something sometimes than that their them then there these they things think this those
    through time very want were what when where which while will with without would your yourself
    """.split()  # noqa: SIM905 (a list of so many words is not read)
)


def _shared_word(labels: Sequence[str]) -> str:
    """The word of four letters or more that three quarters of the labels have, and two at least; nothing else."""
    words = [
        dict.fromkeys(w for w in re.findall(r"[^\W\d_]{4,}", label.lower()) if w not in _COMMON) for label in labels
    ]
    counts: dict[str, int] = {}
    for word in (word for label in words for word in label):
        counts[word] = counts.get(word, 0) + 1
    best = max(counts, key=lambda word: counts[word], default="")
    return _readable(best) if best and counts[best] >= max(2, 0.75 * len(labels)) else ""


def _common_beginning(items: Sequence[str]) -> str:
    shortest = min(items, key=len)
    differs = (k for k, letter in enumerate(shortest) if any(item[k] != letter for item in items))
    return shortest[: next(differs, len(shortest))]


def _ends_a_word(item: str, position: int) -> bool:
    """Whether a word of the name ends there: at a mark, a digit, a capital, or the end."""
    rest = item[position:]
    return not rest or not rest[0].isalpha() or (rest[0].isupper() and not item[:position][-1:].isupper())


def _readable(name: str) -> str:
    """A name that lavaan, R and Graphviz read without quotes."""
    name = re.sub(r"[\W_]+", "_", name).strip("_")
    return name if not name or name[0].isalpha() else f"L_{name}"


def _free(name: str, used: set[str]) -> str:
    """The name, with an ending where it is taken already."""
    if name not in used:
        return name
    return next(other for i in range(2, len(used) + 3) if (other := f"{name}_{i}") not in used)
