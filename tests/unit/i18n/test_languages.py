"""The language of the terminal: by --lang before any verb, or by the locale; errors and remedies too."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pgdyno import i18n
from pgdyno.capture.pace import Pace
from pgdyno.capture.statements import Capture, Captured, LeftOut, Replayed
from pgdyno.capture.write import write
from pgdyno.errors import msg
from pgdyno.message import Name
from pgdyno.spec.load import parse
from pgdyno.units import Quantity, Unit

from tests.support.cli import environment, pgdyno
from tests.support.source import nodes

PACKAGE = Path(__file__).parents[3] / "python" / "pgdyno"

SENTENCE = re.compile(r"[a-z]{2,} [a-z]{2,} [a-z]{2,} [a-z]{2,}")
CHINESE = re.compile("[\u3400-\u9fff]")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "words",
    [
        ("load", "where"),
        *(
            pytest.param(words, marks=pytest.mark.slow)
            for words in (
                ("report", "/nonexistent"),
                ("run", "nosuch"),
                ("compare", "a"),
                ("cluster", "link", "/nonexistent"),
                ("tpcc", "check"),
                ("drill", "--list"),
            )
        ),
        ("cluster", "status", "/nonexistent"),
        ("sql", ""),
        ("run", "quick", "--warmup", "soon"),
    ],
)
def test_each_verb_speaks_chinese(words: tuple[str, ...], tmp_path: Path) -> None:
    plain = environment(HOME=str(tmp_path))
    # By the option before the verb, or by the locale: in turns, to start half as many processes.
    by_locale = len(words[-1]) % 2
    env = plain | {"LC_ALL": "zh_CN.UTF-8"} if by_locale else plain
    before = pgdyno(*(() if by_locale else ("--lang", "zh")), *words, env=env)
    text = before.out + before.err
    assert CHINESE.search(text) and not SENTENCE.search(re.sub(r"pgdyno [a-z ]+", "", text)), text
    english = pgdyno(*words, env=plain)
    assert english.code == before.code and not CHINESE.search(english.out + english.err)


ENGLISH = re.compile(r"[a-z]{2,} [a-z]{2,} [a-z]{2,}")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["tpcb", "sql", "dump", "none"])
def test_an_experiment_is_written_in_chinese(tmp_path: Path, kind: str) -> None:
    done = pgdyno("--lang", "zh", "new", tmp_path / "x.toml", "--kind", kind)
    assert done.code == 0 and ENGLISH.search(done.out) is None, done.out
    comments = re.findall(r"# (.*)", (tmp_path / "x.toml").read_text())
    assert len(comments) > 8 and [c for c in comments if ENGLISH.search(c)] == []
    assert "<new-" not in (tmp_path / "x.toml").read_text()
    tomllib.loads((tmp_path / "x.toml").read_text())


@pytest.mark.parametrize("form", ["statements", "log", "replay"])
def test_a_capture_is_written_in_chinese(tmp_path: Path, form: str) -> None:
    remarks = [msg("capture-parameter", n=1, remark=msg("draw-new-key"))]
    found = Capture(
        scripts=[Captured("1-select-t", "select 1;\n", 10, remarks)],
        left_out=[LeftOut(msg("capture-asks-catalog"), "select relname from pg_class", 3, 0.1)] * 102,
        covered=0.9,
        pace=Pace(100.0, 60.0, 4, 0.5),
        notes=[msg("capture-cut-off", n=1)],
        samples={"t": ('"public"."t"', ["id"], True)},
        is_of_log=form != "statements",
        replay=Replayed(1, 1.0, [(0, 0.0, "1-select-t", "s", ["1"])], {"s": ["id"]}) if form == "replay" else None,
    )
    say = partial(i18n.text, lang="zh")
    file = write(found, tmp_path / "out", source=Name("shop.csv"), when="now", read_only=True, say=say)
    comments = re.findall(r"^# (.*)", file.read_text(), re.M)
    assert len(comments) >= 7 and [c for c in comments if ENGLISH.search(c)] == []
    assert parse(file.read_text(), "x.toml").name == "out"
    readme = (tmp_path / "out" / "README.md").read_text().replace("select relname from pg_class", "")
    assert "新的随机键" in readme and ENGLISH.findall(readme) == []


#: Files whose English is not pgdyno's to translate (pgbench's own words, PostgreSQL's, the standard's), is help (its
#: Chinese is in help.ftl), or names causes to developers.
NOT_OURS = re.compile(
    r"pgbench/|cli/(options|requests|help|\w+_app|verbs_\w+|main|mistakes|sysbench|entry)\.py|report/sysbench|tpcc/|"
    r"cluster/remedies\.py|store/(export|hlog)\.py|diagnosis/causes/|collect/serverlog|spec/builtins|"
    r"capture/languages\.py"
)
SQL = re.compile(
    r"\b(select|set local|set default|set stand|alter|drop|create|comment on|execute|case when|order by|lock table|"
    r"declare|if not exists|is distinct|link set|addr show|route show|neigh show|from pg_|is not null|add primary)\b"
    r"|^\W"
)
#: Words of PostgreSQL and psycopg, names of data, keys of records, and words of errors that another message replaces.
KNOWN = {
    "the busiest thread used ", "a thread used a CPU or waited for one ",
    "the law has three parameters: it needs at least 4 different levels, all positive",
    "at least one degree of freedom", "does not exist", "the server does not answer", "named by the user",
    "of another machine", "connection is bad: ", "the server is gone", "fastpath function call", "idle in transaction",
    "pgdyno cluster repair ", "as it is", "pgbench's tables as they are, scale=", "lag max ms", "stale max ms",
    "of the relation", "base backup for ", "Input should be", "no key at ",
}  # fmt: skip


def test_few_sentences_stand_in_the_code() -> None:
    """Three English words in a row outside the catalogues are known, or a mistake."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if NOT_OURS.search(name):
            continue
        for node in nodes(path):
            raised = node.exc if isinstance(node, ast.Raise) else node.value if isinstance(node, ast.Return) else None
            for part in ast.walk(raised) if raised is not None else ():
                text = part.value if isinstance(part, ast.Constant) else ""
                if (
                    isinstance(text, str)
                    and ENGLISH.search(text)
                    and text not in KNOWN
                    and not SQL.search(text.lower())
                ):
                    found.append(f"{path.relative_to(PACKAGE)}: {text}")
    assert found == []


def test_a_language_that_is_not_there_is_refused() -> None:
    done = pgdyno("--lang", "de", "plan", "quick")
    assert done.code == 2 and "en, zh" in done.err


UNITS: tuple[Unit, ...] = (
    "%", "share", "percent", "times", "ms", "latency", "ns", "seconds", "bytes", "MB/s", "bytes/s", "/s", "factor",
    "two", "count",
)  # fmt: skip


@given(st.sampled_from(UNITS), st.floats(1e-9, 1e15))
def test_no_figure_has_an_exponent(unit: Unit, value: float) -> None:
    for lang in i18n.LANGUAGES:
        assert not re.search(r"\de[+-]?\d", i18n.quantity(Quantity(value, unit), lang)), (unit, value)
