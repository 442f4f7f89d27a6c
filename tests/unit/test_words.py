"""Words that are retired: none of them stands in what users read, the docs and the texts of the package.

Each has a plain term of the field in its place (``docs/glossary.md``). Texts of the package are its string constants:
messages, help, docstrings; names of variables are not looked at.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RETIRED = {
    r"foretold": "predicted",
    r"promis(e|es|ed|ing)": "predicted gain, bound",
    r"pric(e|es|ed|ing)": "penalty, cost",
    r"surpris\w*": "prior, penalty",
    r"met": "visited",
    r"summits?": "local optimum",
    r"settl(e|es|ed|ing)": "refine, decide",
    r"hous(e|ed)": "package, code base",
    r"rooms?": "package, part",
    r"doors?": "entry point",
    r"faces?": "interface",
    r"holes?": "missing values",
    r"noise variances?": "residual variance",
    r"told by (the )?data": "identified, compelled",
    r"measures? nothing": "loads on no latent",
    r"open; fitted as written": "not identified",
    r"rungs?": "step of the penalty path",
    r"ladders?": "penalty path",
    r"imagined": "expected (E-step)",
    r"mend(s|ed|ing)?": "fixed, corrected",
    r"held(?![ -]out)": "fixed, restricted",
    r"lean on": "rely on",
    r"to the letter": "exactly",
    r"hop(e|es|ed|ing)": "predicted gain",
    r"in order:": "OK:",
    r"rows that reject(ed)?": "the model is rejected",
}
# Phrases that readers had to read twice, in the pages of the documentation.
ON_PAGES = {r"(comes?|came|coming) back": "is found again", r"opinion": "result", r"pays? (for|off)": "improves"}
PATTERN = re.compile("|".join(rf"\b{word}\b" for word in RETIRED), re.IGNORECASE)
# A name that stays: a method in the tables and the records of benchmarks.
NAMES = re.compile(r"GIN \(mended\)")


def texts():
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        yield path.relative_to(ROOT), path.read_text()
    for path in sorted((ROOT / "src" / "unmeasured").rglob("*.html")):
        yield path.relative_to(ROOT), path.read_text()
    for path in sorted((ROOT / "src").rglob("*.py")):
        found = ast.walk(ast.parse(path.read_text()))
        words = [node.value for node in found if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        # A constant of one word is a key or an option, which no user reads.
        yield path.relative_to(ROOT), "\n".join(word for word in words if " " in word)


TEXTS = dict(texts())


@pytest.mark.parametrize("path", TEXTS, ids=str)
def test_no_retired_word_is_left(path):
    text = TEXTS[path]
    left = list(PATTERN.finditer(NAMES.sub("", text)))
    shown = [f"{text_around(match)} (write: {better(match[0])})" for match in left]
    assert not shown, f"{path}: " + "; ".join(shown[:5])


@pytest.mark.parametrize("path", [path for path in TEXTS if path.suffix == ".md"], ids=str)
def test_pages_have_none_of_the_phrases_that_were_hard_to_read(path):
    found = [(text_around(match), better) for words, better in ON_PAGES.items() for match in _all(words, TEXTS[path])]
    assert not found


def _all(words, text):
    return re.finditer(rf"\b{words}\b", text, re.IGNORECASE)


def text_around(match):
    return repr(match.string[max(match.start() - 30, 0) : match.end() + 30])


def better(word):
    return next(plain for pattern, plain in RETIRED.items() if re.fullmatch(pattern, word, re.IGNORECASE))


@pytest.mark.parametrize(
    "sentence", ["rows with holes", "what it promises", "the Price of it", "a rung, met before", "held at"]
)
def test_the_pattern_finds_words(sentence):
    assert PATTERN.search(sentence)


@pytest.mark.parametrize(
    "sentence", ["held-out rows", "the whole", "method", "surface", "a comet", "settings", "ladle"]
)
def test_the_pattern_leaves_other_words_alone(sentence):
    assert not PATTERN.search(sentence)
