"""The command line: arguments that are wrong, files that are damaged; an answer, or one sentence and exit code 2.

Commands and their options are those that there are. The values of an option are its default, words of its help, and
what is wrong for most.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from unittest import mock

import numpy as np
import typer
from hypothesis import event, given
from hypothesis import strategies as st

from malformed import damaged_bytes, damaged_json, damaged_text, fuzzed, limited, model_text, one_in
from unmeasured.cli.commands import app, main

COMMANDS = typer.main.get_command(app).commands
FILES = {"file": "people.csv", "result": "result.json", "model": "model.lav", "models": "model.lav", "out": "new.csv"}
WORDS = (
    "a", "b", "z", "a,b,c", "a,a", "*", "a*", "a:c", "[", "school", "L1", "L1=A", "x=y", "none", "", "x", ",", "=", ".",
    "0", "1", "2", "-1", "0.5", "1.5", "nan", "inf", "1e400", "99999999999999999999999", "1,2", "1,,2", "9,99", "60",
    "out", "out/deep", "rows.csv/x", "a" * 300, "\ud800", "a\0b", "<script>", '"; stop()',
    "rows.csv", "damaged.csv", "matrix.csv", "result.json", "model.lav", "known.toml", "records.jsonl", "none.csv",
)  # fmt: skip
# Without them a command would not come to its end, or not soon.
SOON = {"replicates": "1", "time_limit": "3", "port": "x"}


def arguments(command, kind):
    return [part for part in command.params if part.param_type_name == kind]


@st.composite
def command_lines(draw):
    """A command with its arguments, and a few options."""
    name = draw(st.sampled_from(sorted(COMMANDS)))
    command, words = COMMANDS[name], [name]
    for part in arguments(command, "argument"):
        usual = FILES.get(part.name, "multitasking")
        words += [draw(st.sampled_from(WORDS)) if draw(one_in(8)) else usual] * (part.required or draw(one_in(4)))
    options = [part for part in arguments(command, "option") if part.name not in SOON]
    for option in draw(st.lists(st.sampled_from(options), max_size=3)) if options else ():
        words.append(draw(st.sampled_from(option.opts)))
        if not option.is_flag:
            right = [str(option.default), *re.findall(r"[\w.-]+", option.help or "")]
            words.append(draw(st.sampled_from(WORDS if draw(st.booleans()) else right)))
    for option in arguments(command, "option"):
        if option.name in SOON:
            words += [option.opts[0], SOON[option.name]]
    return words[:-1] if name != "serve" and draw(one_in(15)) else words


def called(words):
    """Exit code and standard error, in this process."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    with mock.patch.object(sys, "argv", ["unmeasured", *words]):
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), limited(20.0):
                main()
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 0
    err.flush()
    return code, err.buffer.getvalue().decode()


@fuzzed(100, 500)
@given(st.data())
def test_command_lines(folder, rows, results, data):
    text = rows.to_csv(index=False)
    kept = {
        "rows.csv": text.encode(),
        "people.csv": rows.assign(school=np.where(np.arange(60) % 2, "north", "south")).to_csv(index=False).encode(),
        "matrix.csv": rows.corr().to_csv().encode(),
        "known.toml": b'[groups]\nf = ["a", "b"]\n',
        "damaged.csv": data.draw(damaged_bytes(damaged_text(text))),
        "result.json": data.draw(
            damaged_bytes(damaged_json(results[0]) if data.draw(one_in(3)) else st.just(results[0]))
        ),
        "model.lav": data.draw(
            damaged_bytes(model_text() if data.draw(one_in(3)) else st.just("f =~ a + b\ng =~ c + d"))
        ),
        "records.jsonl": data.draw(st.sampled_from([b"", b'{"my":"thesis"}'])),
    }
    for name, content in kept.items():
        (folder / name).write_bytes(content)
    words = data.draw(command_lines())
    code, told = called(words)
    assert code in (0, 1, 2), (code, words)
    assert "Traceback" not in told, words
    event(f"exit code {code}")
    if code == 2:
        assert told.strip(), words
        changed = {name for name, content in kept.items() if (folder / name).read_bytes() != content}
        assert not changed, words
