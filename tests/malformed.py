"""Malformed input: what has to become of it, and strategies that damage something right.

The property is the same for every entry point: an answer, or an error of ours with a sentence. Another exception, a
warning that is not ours, an error without a sentence and an input that takes too long fail the test.
"""

from __future__ import annotations

import contextlib
import json
import math
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

from hypothesis import HealthCheck, currently_in_test_context, event, settings
from hypothesis import strategies as st

from profiles import examples
from unmeasured.errors import UnmeasuredError, UnmeasuredWarning

# Cells and values that no file should hold, and some do.
ODD = (
    "", " ", "NA", "NaN", "nan", "inf", "-inf", "1e309", "-1e308", "1e200", "1e-320", "x", "=1+1", "'", '"', '""', "é",
    "–", "1,5", "1.5.2", "--", "0", "-1", "999", "1e5", "0x10", "1_000", "True", "2020-01-01", ".", "\t", "\r", "\0",
    "\ufeff", "\u2028", "\ud800", "<b>", "Unnamed: 0", "x" * 3000, "٣", "🙂", "a\nb", "#", "%", "{", "[", "[" * 5000,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    0, 1, -1, 2**70, -0.5, 1e308, 1e-308, math.nan, math.inf, "", "x", "nan", None, True, [], {}, [[]], [0], ["a"],
    {"a": 1}, [1, [2, [3]]], "L1", 10**400,
)  # fmt: skip


def fuzzed(few: int, many: int = 1000) -> settings:
    """Settings of a test with few examples, or with many in the random profile."""
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
    return settings(max_examples=examples(few, many // few), deadline=None, suppress_health_check=checks)


# The property -------------------------------------------------------------------------------------------------


class _TooLong(BaseException):
    """An input took longer than its limit; no handler of exceptions in between may take it for its own."""


@contextlib.contextmanager
def limited(seconds: float, patience: float = 10.0) -> Iterator[None]:
    """Fail after so many seconds of the processor, or ``patience`` times as many on the clock."""

    def ring(*_: object) -> None:
        raise _TooLong

    timers = ((signal.ITIMER_PROF, signal.SIGPROF, seconds), (signal.ITIMER_REAL, signal.SIGALRM, patience * seconds))
    before = [signal.signal(number, ring) for _, number, _ in timers]
    for timer, _, most in timers:
        signal.setitimer(timer, most)
    try:
        yield
    except _TooLong:
        raise AssertionError(
            f"it took more than {seconds:g} s of the processor, or {patience:g} times as many"
        ) from None
    finally:
        for (timer, number, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0.0)
            signal.signal(number, handler)


def is_sentence(text: str) -> bool:
    """Whether an error of ours says something."""
    return len(text) > 15 and text.rstrip().endswith((".", ")", "?", "!", "'", '"'))


def _count(outcome: str) -> None:
    """Count an outcome among the statistics of the test (``--hypothesis-show-statistics``)."""
    if currently_in_test_context():
        event(outcome)


def answered(call: Callable[[], object], seconds: float = 20.0) -> bool:
    """Whether there is an answer; if not, there is a sentence, or the test fails."""
    with warnings.catch_warnings(), limited(seconds):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UnmeasuredWarning)
        try:
            call()
        except UnmeasuredError as error:
            text = str(error)
        else:
            _count("answered")
            return True
    assert is_sentence(text), f"no sentence: {text!r}"
    _count("refused")
    return False


# Strategies ---------------------------------------------------------------------------------------------------


def one_in(n: int) -> st.SearchStrategy[bool]:
    """True for one input in so many."""
    return st.integers(0, n - 1).map(lambda i: i == n - 1)


def usually(good: Any, *bad: Any) -> st.SearchStrategy[Any]:
    """The first, nine times in ten: what is wrong in every part is refused at the first check."""
    return one_in(10).flatmap(lambda is_bad: st.sampled_from(bad) if is_bad else st.just(good))


@st.composite
def damaged_text(draw: st.DrawFn, text: str, odd: Sequence[str] = ODD) -> str:
    """A text with a few characters, cells or lines put in, taken out, doubled or swapped."""
    for _ in range(draw(st.sampled_from([0, 0, 1, 2, 3]))):
        lines = text.split("\n")
        i, at = draw(st.integers(0, len(lines) - 1)), draw(st.integers(0, len(text)))
        kind = draw(st.integers(0, 6))
        if kind == 0:
            text = text[:at] + draw(st.sampled_from(odd)) + text[at:]
            continue
        if kind == 1:
            text = text[:at] + text[at + draw(st.integers(1, 20)) :]
            continue
        if kind == 2:
            old, new = draw(st.sampled_from(",.\n1")), draw(st.sampled_from([";", "\t", " ", ",", "\r\n", ""]))
            text = text.replace(old, new)
            continue
        if kind == 3:
            lines.insert(i, lines[draw(st.integers(0, len(lines) - 1))])
        elif kind == 4:
            del lines[i]
        elif kind == 5:
            cells = lines[i].split(",")
            cells[draw(st.integers(0, len(cells) - 1))] = draw(st.sampled_from(odd))
            lines[i] = ",".join(cells)
        else:
            lines[i] = draw(st.sampled_from(odd))
        text = "\n".join(lines)
    return text


@st.composite
def damaged_bytes(draw: st.DrawFn, text: st.SearchStrategy[str]) -> bytes:
    """A text as bytes, sometimes cut off, with other bytes in it, or in another encoding."""
    content = draw(text).encode("utf-8", errors="replace")
    kind, at = draw(st.integers(0, 19)), draw(st.integers(0, len(content)))
    if kind == 17:
        return content[:at] + draw(st.binary(min_size=1, max_size=5)) + content[at + 1 :]
    if kind == 18:
        return content[:at]
    return content.decode().encode("utf-16") if kind == 19 else content


def places(tree: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to all parts of a tree."""
    keys: Any = tree if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in keys:
        yield (*above, key)
        yield from places(tree[key], (*above, key))


@st.composite
def damaged_json(draw: st.DrawFn, text: str) -> str:
    """JSON with one or two of its parts replaced, removed or doubled; sometimes damaged as text."""
    if draw(one_in(4)):
        return draw(damaged_text(text))
    tree = json.loads(text)
    for _ in range(draw(st.sampled_from([0, 1, 1, 2]))):
        found = list(places(tree))
        if not found:
            break
        # Short paths first, so that the many numbers of a matrix do not take all the damage.
        depth = draw(st.integers(1, max(map(len, found))))
        *way, last = draw(st.sampled_from([place for place in found if len(place) <= depth]))
        node = tree
        for key in way:
            node = node[key]
        kind = draw(st.integers(0, 3))
        if kind == 0:
            del node[last]
        elif kind == 1 and isinstance(node, list):
            node.append(deepcopy(node[last]))
        else:
            node[last] = deepcopy(draw(st.sampled_from(VALUES)))  # a list of its own, which later damage may change
    return json.dumps(tree)


_LATENTS, _ITEMS = ("f", "g", "h"), tuple(f"x{i}" for i in range(1, 10))
_RIGHT = st.sampled_from(["", "", "", "", "", "NA*", "0*", "1*", "-0.5*", ".25*"])
_WRONG = st.sampled_from(["1e-7*", "1e12*", "1e300*", "a*", "start(1)*", "c(1,2)*", "1*1*", "-*", "?"])
_MODIFIERS = one_in(60).flatmap(lambda is_wrong: _WRONG if is_wrong else _RIGHT)
SYMBOLS = (
    "=~",
    "~",
    "~~",
    "+",
    "*",
    ":=",
    "==",
    "(",
    ")",
    "|",
    "%",
    "#",
    "\n",
    ";",
    "1",
    "-1",
    "NA",
    "x1",
    "f",
    "'",
    "\0",
)


@st.composite
def model_text(draw: st.DrawFn) -> str:
    """Model text over three latents and nine items, right or nearly so."""
    names, lines = st.sampled_from([*_LATENTS, *_ITEMS]), []
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.integers(0, 5))
        if kind < 3:
            items = draw(st.lists(st.sampled_from(_ITEMS), min_size=1, max_size=4, unique=not draw(one_in(20))))
            terms = " + ".join(draw(_MODIFIERS) + x for x in items)
            lines.append(f"{draw(st.sampled_from(_LATENTS))} =~ {terms}")
        elif kind < 5:
            lines.append(f"{draw(names)} {'~' if kind == 3 else '~~'} {draw(_MODIFIERS)}{draw(names)}")
        else:
            usual = ("f =~ x1 + x2 + x3", "g =~ x4 + x5 + x6", "h =~ x7 + x8 + x9", "f ~~ g", "g ~ f")
            lines.append(draw(st.sampled_from(usual)))
    return draw(st.sampled_from(["\n", ";", "\n# remark\n"])).join(lines)
