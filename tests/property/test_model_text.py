"""Model text: writing and reading undo each other, and no text brings the reader down."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles import examples
from unmeasured.errors import ModelError
from unmeasured.models.lavaan import parse, write
from unmeasured.models.parameters import Model

pytestmark = pytest.mark.filterwarnings("ignore::unmeasured.errors.UnmeasuredWarning")

LATENTS = ["f", "g", "H.1", "k_2"]
OBSERVED = [f"x{i}" for i in range(1, 9)] + [".y", "NAs"]
modifiers = st.sampled_from(["", "", "", "NA*", "0*", "1*", "-0.5*", ".25*", "1e-7*", "3.25e+12 * "])
options = st.fixed_dictionaries({"correlate_exogenous": st.booleans(), "correlate_outcomes": st.booleans()})
scales = st.sampled_from(["variance", "first-indicator"])


@st.composite
def model_texts(draw: st.DrawFn) -> str:
    """An acyclic model: causes come before effects in one random order of all the names."""
    order = draw(st.permutations(LATENTS[: draw(st.integers(0, 4))] + OBSERVED))
    pairs = [(a, b) for i, a in enumerate(order) for b in order[i + 1 :]]
    edges = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=14, unique=True))
    covariances = draw(
        st.lists(
            st.tuples(st.sampled_from(order), st.sampled_from(order)),
            max_size=6,
            unique_by=lambda p: tuple(sorted(p)),
        )
    )
    lines = []
    for cause, effect in edges:
        is_loading = cause in LATENTS and draw(st.booleans())
        modifier = draw(modifiers)
        lines.append(f"{cause} =~ {modifier}{effect}" if is_loading else f"{effect} ~ {modifier}{cause}")
    for first, second in covariances:
        modifier = draw(modifiers.filter(lambda m: not m.startswith("-")))
        lines.append(f"{first} ~~ {modifier}{second}")
    return draw(st.sampled_from(["\n", " ; ", "\n\n# a remark\n"])).join(draw(st.permutations(lines)))


def entries(model: Model) -> set[tuple[object, ...]]:
    """What the model says, whatever the order of its rows; zeros say nothing."""
    return {
        (
            row.op,
            *((row.source, row.target) if row.op != "~~" else sorted((row.source, row.target))),
            row.fixed,
        )
        for row in model.parameters
        if row.fixed != 0
    }


@given(text=model_texts(), options=options, scale=scales, reader_scale=scales)
@settings(max_examples=examples(150), deadline=None)
def test_text_written_and_read_is_the_same_model(
    text: str, options: dict[str, bool], scale: str, reader_scale: str
) -> None:
    model = parse(text, scale_latents=scale, **options)
    again = parse(write(model, **options), observed=model.observed, scale_latents=reader_scale, **options)
    assert again == model


@given(text=model_texts(), made=options, read=options, scale=scales)
@settings(max_examples=examples(100), deadline=None)
def test_text_says_the_same_to_a_reader_with_other_options(
    text: str, made: dict[str, bool], read: dict[str, bool], scale: str
) -> None:
    model = parse(text, scale_latents=scale, **made)
    again = parse(write(model, **read), observed=model.observed, **read)
    assert again.names == model.names
    assert entries(again) == entries(model)


@given(text=model_texts(), options=options, scale=scales)
@settings(max_examples=examples(100), deadline=None)
def test_a_model_is_complete_and_without_repeats(text: str, options: dict[str, bool], scale: str) -> None:
    model = parse(text, scale_latents=scale, **options)
    assert model.names == (*model.latents, *model.observed)
    assert {row.source for row in model.parameters if row.op == "=~"} == set(model.latents)
    assert {row.source for row in model.parameters if row.op == "~~" and row.source == row.target} == set(model.names)
    places = [
        frozenset((row.source, row.target)) if row.op == "~~" else (row.source, row.target) for row in model.parameters
    ]
    assert len(set(places)) == len(places)
    assert [row.op for row in model.parameters] == sorted(
        (row.op for row in model.parameters), key=["=~", "~", "~~"].index
    )


names = st.sampled_from(["f", "g", "x1", "x2", "NA", "2x", "1", "0.5", "-1", "start(", "c(", "efa(", "'a"])
marks = st.sampled_from(
    [
        "+",
        "*",
        "=~",
        "~",
        "~~",
        ":=",
        "==",
        "<",
        ">",
        "|",
        "~*~",
        "<~",
        "%",
        ":",
        "(",
        ")",
        ",",
        "?",
        ";",
        "#",
        "!",
        "=",
        "$",
        "\n",
    ]
)


@given(text=st.lists(names | marks, max_size=25).map(" ".join) | st.text(max_size=40))
@settings(max_examples=examples(300), deadline=None)
def test_any_other_text_is_refused_with_a_sentence(text: str) -> None:
    try:
        sentence = str(parse(text))
    except ModelError as error:
        sentence = str(error)
    assert sentence[-1] in ".?)"
