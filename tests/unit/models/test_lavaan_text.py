"""Model text: what is read, what is added, what is refused and in which words."""

import json
import shutil
import subprocess
from itertools import chain

import pytest

from unmeasured.errors import ModelError, UnmeasuredWarning
from unmeasured.models.lavaan import parse, write
from unmeasured.models.parameters import Model, Parameter


def rows(model: Model) -> list[str]:
    """Rows as lavaan would write them, with ``@value`` where fixed."""
    return [
        f"{row.lhs} {row.op} {row.rhs}" + ("" if row.fixed is None else f" @{row.fixed:g}") for row in model.parameters
    ]


def message(text: str, **options: object) -> str:
    with pytest.raises(ModelError) as caught:
        parse(text, **options)
    return str(caught.value)


# -- reading -----------------------------------------------------------------------------------------------


def test_one_factor_in_full() -> None:
    model = parse("f =~ x1 + x2 + x3")
    assert model == Model(
        names=("f", "x1", "x2", "x3"),
        latents=("f",),
        parameters=(
            Parameter("=~", "f", "x1"),
            Parameter("=~", "f", "x2"),
            Parameter("=~", "f", "x3"),
            Parameter("~~", "x1", "x1"),
            Parameter("~~", "x2", "x2"),
            Parameter("~~", "x3", "x3"),
            Parameter("~~", "f", "f", 1.0),
        ),
    )


def test_a_path_runs_from_right_to_left() -> None:
    (path,) = [row for row in parse("y ~ x").parameters if row.op == "~"]
    assert path == Parameter("~", source="x", target="y")


def test_loadings_come_first_then_paths_then_covariances() -> None:
    model = parse("x1 ~~ x3; y ~ f; f =~ x1 + x2 + x3")
    assert rows(model)[:5] == ["f =~ x1", "f =~ x2", "f =~ x3", "y ~ f", "x1 ~~ x3"]


@pytest.mark.parametrize(
    "text",
    [
        "f=~x1+x2+x3\ny~f",
        "f =~ x1 + x2 +\n  x3\ny ~ f",
        "f =~ x1 + x2\n  + x3\ny ~ f",
        "f =~\n x1 + x2 + x3\ny ~\n f",
        "f =~ x1 + x2 # half of it\n\n  # and the rest:\n  + x3; y ~ f",
        "! a title\nf =~ x1 + x2 + x3 ! three; really\n\n;;y ~ f;",
        "f =~ x1 + x2\r\nf =~ x3\r\n\ty ~ f",
        "f =~ + x1 + x2 + x3 ; y ~ f",
        "f =~ NA*x1 + x2 + NA * x3 ; y ~ NA*f",
    ],
)
def test_layout_does_not_matter(text: str) -> None:
    assert parse(text) == parse("f =~ x1 + x2 + x3\ny ~ f")


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1", 1.0),
        ("0", 0.0),
        ("0.5", 0.5),
        (".5", 0.5),
        ("-1", -1.0),
        ("- 1", -1.0),
        ("1e-3", 1e-3),
        ("2.", 2.0),
    ],
)
def test_fixed_values(written: str, value: float) -> None:
    assert parse(f"f =~ x1 + {written}*x2").parameters[1] == Parameter("=~", "f", "x2", value)


def test_several_names_on_the_left() -> None:
    assert rows(parse("a + b ~ c + d"))[:4] == ["a ~ c", "a ~ d", "b ~ c", "b ~ d"]
    assert rows(parse("x1 + x2 ~~ x3"))[:2] == ["x1 ~~ x3", "x2 ~~ x3"]
    assert rows(parse("f + g =~ x1 + x2"))[:4] == ["f =~ x1", "f =~ x2", "g =~ x1", "g =~ x2"]


def test_names_may_hold_dots_underscores_and_letters_of_any_script() -> None:
    assert parse("größe.1 =~ .a + b_2 + x.3").names == ("größe.1", ".a", "b_2", "x.3")


def test_order_of_names() -> None:
    text = "y ~ g + z; f =~ b + a; g =~ d + c"
    assert parse(text).names == ("f", "g", "y", "z", "b", "a", "d", "c")
    assert parse(text, observed=["a", "b", "unused", "c", "d", "y", "z"]).names == (
        "f", "g", "a", "b", "c", "d", "y", "z",
    )  # fmt: skip


def test_first_appearance_is_that_in_the_text() -> None:
    assert parse("a + b ~ c + d").names == ("a", "b", "c", "d")


def test_second_order_factor() -> None:
    model = parse("G =~ F1 + F2\nF1 =~ a + b\nF2 =~ c + d", scale_latents="first-indicator")
    assert model.latents == ("G", "F1", "F2")
    assert rows(model)[:6] == ["G =~ F1 @1", "G =~ F2", "F1 =~ a @1", "F1 =~ b", "F2 =~ c @1", "F2 =~ d"]
    assert not [row for row in model.parameters if row.op == "~~" and row.source != row.target]


# -- defaults ----------------------------------------------------------------------------------------------


def test_scale_by_variance() -> None:
    assert "f ~~ f @1" in rows(parse("f =~ x1 + x2"))
    assert "f ~~ f @2" in rows(parse("f =~ x1 + x2; f ~~ 2*f"))
    assert "f ~~ f" in rows(parse("f =~ x1 + x2; f ~~ NA*f"))
    assert "f ~~ f @1" in rows(parse("f =~ x1 + x2; f ~~ f"))  # as lavaan has it: only NA* frees


def test_scale_by_first_indicator() -> None:
    def read(text: str) -> list[str]:
        return rows(parse(text, scale_latents="first-indicator"))

    assert read("f =~ x1 + x2") == ["f =~ x1 @1", "f =~ x2", "x1 ~~ x1", "x2 ~~ x2", "f ~~ f"]
    assert read("f =~ 0.7*x1 + x2")[:2] == ["f =~ x1 @0.7", "f =~ x2"]
    assert read("f =~ NA*x1 + 1*x2")[:2] == ["f =~ x1", "f =~ x2 @1"]
    assert read("f =~ NA*x1 + x2; f ~~ 1*f")[:3] == ["f =~ x1", "f =~ x2", "f ~~ f @1"]


def test_exogenous_latents_correlate_unless_told_otherwise() -> None:
    text = "f =~ a + b; g =~ c + d; h =~ e + i; k =~ j + l; k ~ f; f ~~ 0*g"
    covariances = [row for row in rows(parse(text)) if "~~" in row][0:1] + rows(parse(text))[-2:]
    assert covariances == ["f ~~ g @0", "f ~~ h", "g ~~ h"]
    assert [row for row in rows(parse(text, correlate_exogenous=False)) if row in covariances] == ["f ~~ g @0"]


def test_outcomes_correlate_only_on_request() -> None:
    text = "f =~ a + b + c; g =~ d + e; g ~ f; y ~ f; z ~ f + y; d ~ f"
    assert "g ~~ z" not in rows(parse(text))
    more = set(rows(parse(text, correlate_outcomes=True))) - set(rows(parse(text)))
    assert more == {"g ~~ z"}  # y explains z, and d is an indicator


def test_predictors_have_free_covariances_but_none_with_latents() -> None:
    assert rows(parse("f =~ a + b; y ~ f + u + v"))[5:] == [
        "a ~~ a", "b ~~ b", "y ~~ y", "f ~~ f @1", "u ~~ u", "u ~~ v", "v ~~ v",
    ]  # fmt: skip


def test_a_stated_predictor_loses_its_default_covariances_with_a_warning() -> None:
    with pytest.warns(UnmeasuredWarning, match=r"the predictors 'u', 'v'; as in lavaan.*'u ~~ w', 'v ~~ w' is zero"):
        model = parse("y ~ u + v + w; u ~~ 0*v")
    assert rows(model)[3:] == ["u ~~ v @0", "y ~~ y", "u ~~ u", "v ~~ v", "w ~~ w"]
    assert "u ~~ w" in rows(parse("y ~ u + w; w ~~ u"))  # all stated: nothing lost, no warning


def test_the_only_indicator_of_a_latent_has_no_residual_unless_stated() -> None:
    assert "a ~~ a @0" in rows(parse("f =~ a"))
    assert "a ~~ a" in rows(parse("f =~ a; a ~~ a"))
    assert "a ~~ a" in rows(parse("f =~ a; g =~ a + b"))


def test_covariances_are_named_the_same_way_round() -> None:
    assert rows(parse("f =~ a + b; b ~~ a; a ~~ f"))[2:4] == ["a ~~ b", "f ~~ a"]


# -- refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('f =~ "a b"*x1', "has a label that is no name; write one such as a"),
        ("y ~ a*x\na := 2*a", "Line 2: 'a' in 'a := 2 * a' is taken"),
        ("y ~ a*x\n2 := a", "Line 2: '2 := a' must have one new name on the left of ':='"),
        ("y ~ a*x\nb :=", "Line 2: 'b :=' has nothing on its right"),
        ("y ~ a*x\nb := a +* 2", "Line 2: 'a+*2' is not an expression"),
        ("y ~ a*x\nb := open(a)", "Line 2: 'open(a)' calls something that is not known"),
        ("y ~ a*x\nb := a < 2", "is not arithmetic on labels"),
        ("y ~ x + 0", "Line 1: '0' on the right of '~' is not an intercept; write 'x ~ 1', or 'x ~ 0*1' to fix"),
        ("y ~ x +\n2*3", "Line 2: '3' on the right of '~' is not an intercept"),
        ("y ~ x - 1", "Line 1: 'x - 1' on the right of '~' is not an intercept"),
        (
            "f =~ x1\nf =~ start(0.5)*x2",
            "Line 2: the modifier in 'start ( 0.5 ) * x2' gives a starting value; these",
        ),
        ("f =~ 0.5?x2", "Line 1: the modifier in '0.5 ? x2' gives a starting value"),
        ("f =~ equal('f=~x1')*x2", "uses equal(); give both parameters the same label, as in 'a*x1 + a*x2'."),
        ("f =~ label('a')*x2", "uses label(); write the label itself, as in 'a*x'."),
        (
            "f =~ c(1, 2)*x2",
            "Line 1: 'c ( 1 , 2 ) * x2' gives 2 values, one for each group, but the data have one group",
        ),
        ("f =~ c(1, 2*x2", "the modifier in 'c ( 1 , 2 * x2' is not closed; write one value for each group"),
        ("f =~ c(1 + 1)*x2", "'1 + 1' in 'c ( 1 + 1 ) * x2' is not a value; write one number, NA or a label."),
        ("f =~ lower(0)*x2", "sets a bound; bounds are not supported"),
        ("f =~ upper(0)*x2", "sets a bound; bounds are not supported"),
        ("f =~ prior('normal(0,1)')*x2", "sets a prior; estimation is by maximum likelihood"),
        ("y ~ rv('s')*x", "asks for a random slope"),
        (
            "y ~ sqrt(2)*x",
            "the modifier in 'sqrt ( 2 ) * x' uses sqrt(), which is not known here. Write one number",
        ),
        ("efa('e')*f =~ x1", "Line 1: 'efa ( 'e' ) * f': efa() blocks are not supported"),
        ("2*f =~ x1", "Line 1: '2 * f' puts a modifier on the left of '=~'; modifiers stand on the right."),
        (
            "y ~ x\n ind := a*b",
            "Line 2: 'a' in 'a*b' is no label. There are no labels.",
        ),
        (
            "y ~ x; a == b^2",
            "Line 1: 'a == b ^ 2' uses '=='; constraints between labels are not supported. Give the",
        ),
        ("a < 1", "Line 1: 'a < 1' uses '<'; inequality constraints are not supported."),
        ("\n\na > 1", "Line 3: 'a > 1' uses '>'; inequality constraints are not supported."),
        (
            "u | t1 + t2",
            "uses '|'; thresholds of ordered variables are not supported. Remove the statement, and give",
        ),
        ("u ~*~ 1*u", "uses '~*~'; scaling factors of ordered variables are not supported."),
        ("f <~ x1 + x2", "uses '<~'; composites (formative latents) are not supported."),
        (
            "level: 1\nf =~ x1",
            "Line 1: 'level : 1' uses ':'; blocks are not supported. For groups of people name their column",
        ),
        ("group: 2", "'group : 2' uses ':'; blocks are not supported. For groups of people name their column"),
        ("group % w", "uses '%'; blocks ('%') are not supported."),
        ("y ~ x1:x2", "Line 1: 'x1 : x2' is a product of variables; compute it as a column of the data."),
    ],
)
def test_what_lavaan_has_and_we_have_not_is_refused_by_name(text: str, expected: str) -> None:
    assert expected in message(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "The model text is empty; write at least one statement, such as 'f =~ x1 + x2 + x3'."),
        ("# nothing\n ;", "The model text is empty"),
        (
            "f =~ x1 + x2\nx3 + x4",
            "Line 2: 'x3 + x4' has no operator; write '=~', '~' or '~~', or end the line before",
        ),
        ("f =~", "Line 1: 'f =~' has nothing on its right; a latent needs at least one indicator, as in"),
        ("f =~\ny ~ x", "Line 1: 'f =~' has nothing on its right; a latent needs at least one indicator"),
        ("y ~", "Line 1: 'y ~' has nothing on its right; name at least one variable there."),
        ("~ x", "Line 1: '~ x' has nothing on its left; name at least one variable there."),
        ("f =~ x1 +", "Line 1: nothing follows the last '+' in 'x1 +'; remove it, or name a variable."),
        ("f =~ x1 + ; y ~ x", "Line 1: nothing follows the last '+' in 'x1 +'"),
        ("f =~ x1 + + x2", "Line 1: two '+' signs with nothing between them in 'x1 + + x2'; remove one."),
        (
            "f =~ x1 +\ny ~ x",
            "Line 2: a second operator '~' in one statement, 'f =~ x1 + y ~ x'. Put each statement on",
        ),
        ("f =~ x1 x2", "Line 1: 'x1 x2' is not one name; is a '+' missing?"),
        (
            "f = x1",
            "Line 1: '=' in 'f = x1' is not part of model text; a latent is defined with '=~', a regression",
        ),
        ("y ~ x/2", "Line 1: '/' in 'y ~ x / 2' is not part of model text."),
        (
            "f =~ x1\ny ~ 2x",
            "Line 2: '2x' in 'y ~ 2x' is not part of model text; a name cannot begin with a digit",
        ),
        ("f =~ $", "Line 1: '$' in 'f =~ $' is not part of model text."),
        (
            "y ~ x1 - x2",
            "Line 1: 'x1 - x2' has a minus sign; join terms with '+', or fix a value as in '-1*x'.",
        ),
        ("y ~ (x1)", "Line 1: '( x1 )' has parentheses, which model text does not use around names."),
        ("y ~ *x1", "Line 1: '*' in '* x1' needs a value on its left and a name on its right."),
        ("f =~ 1*2*x1", "Line 1: '1 * 2' in '1 * 2 * x1' is not a value; write one number, NA or a label."),
        ("f =~ 1e999*x1", "Line 1: '1e999 * x1' fixes a parameter to inf; give a finite number."),
        ("f =~ 3", "Line 1: '3' beside '=~' is a number, not the name of a variable."),
        ("f =~ x1 + NA", "Line 1: 'NA' beside '=~' is reserved for 'NA*x', not the name of a variable."),
        ("'my f' =~ x1", "is a string, not the name of a variable."),
        ("x1 ~~ -2*x1", "Line 1: 'x1 ~~ x1' fixes a variance to -2; a variance cannot be negative."),
    ],
)
def test_what_cannot_be_read(text: str, expected: str) -> None:
    assert expected in message(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f =~ x1 + x2\ny ~ f\nf =~ x1", "Lines 1 and 3 both state 'f =~ x1'; keep one of the two."),
        ("f =~ x1 + x1", "Line 1 states 'f =~ x1' twice; keep one of the two."),
        (
            "x1 ~~ x2\nx2 ~~ 0*x1",
            "Lines 1 and 2 both state the same parameter, as 'x1 ~~ x2' and as 'x2 ~~ x1'; keep",
        ),
        (
            "f =~ x1 + x2\nx1 ~ f",
            "Lines 1 and 2 both state the same parameter, as 'f =~ x1' and as 'x1 ~ f'; keep one",
        ),
        (
            "x1 + x2 ~~ x1 + x2",
            "Line 1 states the same parameter, as 'x1 ~~ x2' and as 'x2 ~~ x1'; keep one of",
        ),
    ],
)
def test_nothing_is_stated_twice(text: str, expected: str) -> None:
    assert expected in message(text)


def test_nothing_explains_or_measures_itself() -> None:
    assert message("y ~ x + y") == "Line 1: 'y' explains itself in 'y ~ y'; name another variable."
    assert message("f =~ f + x") == "Line 1: 'f' measures itself in 'f =~ f'; name another variable."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "a ~ b\nb ~ a",
            "The model has a feedback loop, b → a → b (lines 1, 2); only models without loops are",
        ),
        ("f =~ x + y\nf ~ x", "The model has a feedback loop, f → x → f (lines 1, 2)"),
        ("G =~ F; F =~ H; H =~ G + x", "The model has a feedback loop, G → F → H → G (line 1)"),
        ("z ~ a\nb ~ a\nc ~ b\nd ~ c\nb ~ d", "The model has a feedback loop, b → c → d → b (lines 3, 4, 5)"),
    ],
)
def test_cycles_are_named(text: str, expected: str) -> None:
    assert expected in message(text)


def test_names_are_checked_against_the_data() -> None:
    data = ["speed1", "speed2", "error1"]
    assert message("f =~ speed1 +\n sped2", observed=data) == (
        "Line 2: 'sped2' is neither a variable of the data nor a latent (no statement defines it with =~); "
        "did you mean 'speed2'?"
    )
    assert message("f =~ speed1 + speed2\nspeed1 ~ zz", observed=data) == (
        "Line 2: 'zz' is neither a variable of the data nor a latent (no statement defines it with =~). "
        "The data have 'speed1', 'speed2', 'error1'."
    )
    assert "did you mean 'factor'?" in message("factor =~ speed1 + speed2\nerror1 ~ facto", observed=data)
    assert message("speed1 =~ speed2 + error1", observed=data) == (
        "Line 1: 'speed1' stands on the left of =~, which makes it a latent, but it is a variable of the data"
        "; give the latent another name, or swap the two sides."
    )


def test_an_unknown_scale_is_refused() -> None:
    assert message("y ~ x", scale_latents="marker") == (
        "scale_latents must be one of 'variance', 'first-indicator'; got 'marker'."
    )


# -- writing -----------------------------------------------------------------------------------------------


def test_written_text_states_everything() -> None:
    model = parse("f =~ x1 + 0.25*x2; g =~ x3 + x4; g ~ f; x1 ~~ x3", scale_latents="first-indicator")
    assert write(model).splitlines() == [
        "f =~ 1*x1 + 0.25*x2",
        "g =~ 1*x3 + x4",
        "g ~ f",
        "x1 ~~ x3",
        "x1 ~~ x1",
        "x2 ~~ x2",
        "x3 ~~ x3",
        "x4 ~~ x4",
        "f ~~ NA*f",
        "g ~~ NA*g",
    ]


def test_what_the_reader_would_add_is_held_at_zero() -> None:
    model = parse("f =~ x1 + x2; g =~ x3 + x4", correlate_exogenous=False)
    assert write(model).splitlines()[-1] == "f ~~ 0*g"
    assert parse(write(model, correlate_exogenous=False), correlate_exogenous=False) == model
    bare = Model(("f", "a", "b"), ("f",), (Parameter("=~", "f", "a"), Parameter("=~", "f", "b")))
    assert write(bare).splitlines() == ["f =~ NA*a + b", "a ~~ 0*a", "b ~~ 0*b", "f ~~ 0*f"]


def test_a_latent_that_only_causes_latents_is_still_a_latent() -> None:
    #  G -> F1 -> a, b    as a graph would give it: G has paths but no loadings
    #    -> F2 -> c, d
    loadings = [Parameter("=~", *edge) for edge in [("F1", "a"), ("F1", "b"), ("F2", "c"), ("F2", "d")]]
    paths = [Parameter("~", "G", "F1"), Parameter("~", "G", "F2")]
    variances = [Parameter("~~", x, x) for x in "abcd"] + [Parameter("~~", x, x, 1.0) for x in ("G", "F1", "F2")]
    model = Model(("G", "F1", "F2", *"abcd"), ("G", "F1", "F2"), (*loadings, *paths, *variances))
    assert write(model).splitlines()[:3] == ["F1 =~ NA*a + b", "F2 =~ NA*c + d", "G =~ NA*F1 + F2"]
    again = parse(write(model))
    assert set(again.latents) == set(model.latents)
    assert {(p.source, p.target, p.fixed) for p in again.parameters} == {
        (p.source, p.target, p.fixed) for p in model.parameters
    }


@pytest.mark.parametrize("name", ["my item", "1st", "NA", "a-b", "", "a\n"])
def test_names_that_text_cannot_hold(name: str) -> None:
    with pytest.raises(ModelError) as caught:
        write(Model((name,), (), (Parameter("~~", name, name),)))
    assert str(caught.value).startswith(f"The name {name!r} cannot be written in model text: names there are")


def test_what_else_cannot_be_written() -> None:
    with pytest.raises(ModelError, match=r"'x ~~ x' is fixed to nan; only finite values can be written\."):
        write(Model(("x",), (), (Parameter("~~", "x", "x", float("nan")),)))
    with pytest.raises(ModelError, match=r"Latent 'f' has no indicator and no effect, so model text cannot name it"):
        write(Model(("f", "x"), ("f",), (Parameter("~~", "x", "x"),)))


# -- beside lavaan -----------------------------------------------------------------------------------------

HOLZINGER = "visual =~ x1 + x2 + x3\ntextual =~ x4 + x5 + x6\nspeed =~ x7 + x8 + x9"
DEMOCRACY = """
    ind60 =~ x1 + x2 + x3
    dem60 =~ y1 + y2 + y3 + y4
    dem65 =~ y5 + y6 + y7 + y8
    dem60 ~ ind60
    dem65 ~ ind60 + dem60
    y1 ~~ y5; y2 ~~ y4 + y6; y3 ~~ y7; y4 ~~ y8; y6 ~~ y8
"""
TEXTS = {
    "three factors": HOLZINGER,
    "political democracy": DEMOCRACY,
    "second order": "G =~ F1 + F2 + F3\nF1 =~ a + b\nF2 =~ c + d\nF3 =~ e + i\nH =~ j + k",
    "predictors": "f =~ x1 + x2 + x3\ng =~ x4 + x5\ny ~ f + g + z + w\nf ~ u + z",
    "paths only": "a + b ~ c + d\ne ~ a + b",
    "a stated predictor": "y ~ u + v + w\nw ~~ 0*u\ny ~~ q",
    "single indicators": "f =~ a\ng =~ b + c\nh =~ a2 + c\nk =~ g\nl =~ m\nm ~~ m",
    "modifiers": """
        f =~ NA*x1 + 1*x2 + -0.5*x3; f ~~ f
        g =~ x4 + .3*x5 + x6; g ~~ 0*f; g ~~ NA*g; x6 ~~ 1e-2*x6
    """,
    "outcomes": """
        f =~ x1 + x2; g =~ x3 + x4; h =~ x5 + x6
        g + h ~ f; y ~ g; z ~ g + y; x1 ~ p; h ~~ x2; x4 ~~ x3
    """,
    "covariances only": "x1 + x2 ~~ x3\nx4 ~~ 2*x4",
    "a factor after its effects": "y ~ f + x\nx2 ~~ x1\nf =~ x3 + x1\nx2 ~ y",
}  # fmt: skip
SCALES = ["variance", "first-indicator"]
R_SCRIPT = """
suppressMessages(library(lavaan))
unesc <- function(x) gsub("\\\\n", "\\n", x, fixed = TRUE)
for (line in readLines(file("stdin"))) {
  part <- strsplit(line, "\\t", fixed = TRUE)[[1]]
  std.lv <- part[1] == "variance"
  table <- suppressWarnings(lavaanify(unesc(part[4]), auto.fix.first = !std.lv, std.lv = std.lv,
    auto.fix.single = TRUE, auto.var = TRUE,
    auto.cov.lv.x = part[2] == "TRUE", auto.cov.y = part[3] == "TRUE",
    fixed.x = FALSE, meanstructure = FALSE))
  fixed <- ifelse(table$free == 0, format(table$ustart, digits = 12, trim = TRUE), "")
  cat(paste(table$lhs, table$op, table$rhs, fixed, sep = ","), sep = ";")
  cat("\\n")
}
"""


@pytest.fixture
def _lavaan() -> None:
    """Skip where lavaan cannot be asked."""
    if shutil.which("Rscript") is None:
        pytest.skip("needs Rscript, with the package lavaan")
    probe = subprocess.run(["Rscript", "-e", "library(lavaan)"], capture_output=True, check=False)
    if probe.returncode != 0:
        pytest.skip("needs the R package lavaan")


def lavaan_tables(requests: list[tuple[str, str, bool, bool]]) -> list[list[tuple[str, ...]]]:
    """Ask lavaan for the parameter tables of several texts in one go: (text, scale, exogenous, outcomes)."""
    lines = [
        "\t".join([scale, str(exogenous).upper(), str(outcomes).upper(), text.replace("\n", "\\n")])
        for text, scale, exogenous, outcomes in requests
    ]
    run = subprocess.run(
        ["Rscript", "-e", R_SCRIPT], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True
    )
    return [[tuple(row.split(",")) for row in line.split(";")] for line in run.stdout.splitlines()]


def as_lavaan_lists_it(model: Model, table: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Our rows in lavaan's form; lavaan mixes loadings and paths in the order of the text, we do not."""
    ours = [(row.lhs, row.op, row.rhs, "" if row.fixed is None else f"{row.fixed:g}") for row in model.parameters]
    order: dict[str, list[tuple[str, ...]]] = {op: [row for row in ours if row[1] == op] for op in ("=~", "~", "~~")}
    listed = [order[row[1]].pop(0) if order[row[1]] else ("missing",) for row in table]
    return [*listed, *chain.from_iterable(order.values())]


@pytest.mark.usefixtures("_lavaan")
@pytest.mark.filterwarnings("ignore::unmeasured.errors.UnmeasuredWarning")
def test_parameter_tables_equal_those_of_lavaan() -> None:
    requests = [
        (text, scale, exogenous, outcomes)
        for text in TEXTS.values()
        for scale in SCALES
        for exogenous, outcomes in [(True, False), (False, True)]
    ]
    # What we write must mean the same to lavaan's sem(), whose defaults are these.
    requests += [
        (write(parse(text, scale_latents=scale), correlate_outcomes=True), "first-indicator", True, True)
        for text in TEXTS.values()
        for scale in SCALES
    ]
    for request, table in zip(requests, lavaan_tables(requests), strict=True):
        text, scale, exogenous, outcomes = request
        theirs = [(*row[:3], f"{float(row[3]):g}" if row[3] else "") for row in table]
        ours = parse(text, scale_latents=scale, correlate_exogenous=exogenous, correlate_outcomes=outcomes)
        assert as_lavaan_lists_it(ours, theirs) == theirs, json.dumps(request)
