"""Help texts in both languages, and mistakes that the parser finds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from pgdyno import i18n
from pgdyno.cli import streams
from pgdyno.cli.help import option_ids
from pgdyno.cli.main import app
from pgdyno.errors import UsageError
from pgdyno.wide import columns, width, wrapped
from typer._click.core import Context

from tests.support.cli import pgdyno

CHINESE = re.compile("[\u3400-\u9fff]")
SENTENCE = re.compile(r"[a-z]{2,} [a-z]{2,} [a-z]{2,} [a-z]{2,}")


def commands() -> Iterator[tuple[str, Any]]:
    """Each command by what is typed after `pgdyno`."""

    def below(command: Any, path: str) -> Iterator[tuple[str, Any]]:
        yield path, command
        for name, child in getattr(command, "commands", {}).items():
            yield from below(child, f"{path} {name}".strip())

    return below(typer.main.get_command(app), "")


def test_each_help_text_has_its_chinese_and_none_is_left_over() -> None:
    chinese, used, english = i18n.catalogue("zh"), set(), {}
    for path, command in commands():
        used.add("-".join(["help", *path.split()]))
        if command.short_help:
            used.add("-".join(["help", *path.split(), "short"]))
        for param in command.params:
            if not getattr(param, "help", None):
                continue
            own, common = option_ids(path, param.name)
            found = own if own in chinese else common
            assert found in chinese, (path, param.name)
            used.add(found)
            # A text that several commands share is the same in all of them.
            texts = english.setdefault(found, set())
            texts.add(param.help.replace("Language of all output", "Language of the output"))
            assert len(texts) == 1, (found, texts)
    frame = {"help-exit-codes", "help-usage", "help-arguments", "help-commands", "help-examples", "help-default"}
    frame |= {"help-required", "help-range", "help-help", "help-notes"} | {x for x in chinese if "help-panel-" in x}
    there = {x for x in chinese if x == "help" or x.startswith(("help-", "option-"))}
    assert there == used | frame


def test_each_default_is_what_its_option_takes() -> None:
    seen = 0
    for path, command in commands():
        context = Context(command)
        for param in command.params:
            if not param.required:
                param.process_value(context, param.get_default(context))
                seen += 1
        assert seen or not command.params, path
    assert seen > 250


def test_no_help_text_has_an_escape() -> None:
    assert [k for lang in i18n.LANGUAGES for k, v in i18n.catalogue(lang).items() if "\\n" in v] == []


@pytest.fixture
def chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "language", "zh")
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("path", [path for path, _ in commands() if path != "pgbench"])
def test_help_is_chinese_and_fits_80_columns(path: str, chinese: None, capsys: pytest.CaptureFixture[str]) -> None:
    # In this process: to start one for each of forty pages would take most of a minute.
    app([*path.split(), "--help"], prog_name="pgdyno", standalone_mode=False)
    out = capsys.readouterr().out
    text, _, examples = out.partition("示例：")
    assert "用法：" in text and not SENTENCE.search(text), text
    assert not CHINESE.search(examples.partition("退出码")[0])
    assert max(width(line) for line in text.splitlines()) <= 80


TIMES = "Write seconds, or a number with ms, s, m or h: 60, 90s, 10m."
TARGET = 'Write it as libpq reads it: "host=db1 port=5432 user=bench dbname=bench", or a postgresql:// URI.'
FIGURES = "There are TPS, QPS, mean, p50, p95, p99, p99.9, max, failed."
BOUND = "Write --fail-if 'p99 > 10ms' or 'TPS < 1000'."
VERIFY = "Add --verify, which measures whether the actions help, or leave it out."
WATCHED = "Give the run directory, or its folder with --runs; pgdyno runs lists the runs."
MISTAKES = [
    ("run --clientz 3", "unknown option --clientz", "Did you mean --clients, --collect, --scale?"),
    ("run -z", "unknown option -z", "See pgdyno run --help."),
    ("run --clients", "--clients needs a value", "See pgdyno run --help."),
    ("run --quiet=3", "--quiet takes no value", "See pgdyno run --help."),
    ("run a b c", "too many arguments: pgdyno run takes EXPERIMENT", "See pgdyno run --help."),
    ("experiments a", "too many arguments: pgdyno experiments takes none", "See pgdyno experiments --help."),
    ("run --repetitions x", "--repetitions needs a whole number, at least 1", "See pgdyno run --help."),
    ("run --connect-timeout 0", "--connect-timeout needs a number between 0.1 and 86,400", "See pgdyno run --help."),
    ("run --duration x", '--duration: "x" is not a time', TIMES),
    ("run --duration 1ms", "--duration: 1ms is too short: the minimum is 0.1 s", ""),
    ("run --rate -5", "--rate needs a number, at least 0", "See pgdyno run --help."),
    ("plan --target=", "--target is empty", TARGET),
    # What `run` refuses, `plan` refuses too.
    ("plan quick --target postgresql://h:x/d", '--target: the port "…" is not a number from 1 to 65535', TARGET),
    ("plan quick --fail-if p98>1ms", '--fail-if: there is no figure "p98"', FIGURES),
    ("plan quick --fail-if p99>1", '--fail-if: "p99>1": p99 needs a unit: us, ms or s', BOUND),
    ("observe --for 10x", '--for: "10x" is not a time', TIMES),
    ("explain X --budget 3", "--budget: only together with --verify", VERIFY),
    ("load tpcb --data /none --dry-run", "there is no folder /none", "Give the folder that holds PG_VERSION."),
    ("runs /nonexistent", "there is no folder /nonexistent", "Runs are in runs/ by default."),
    ("watch --runs /nonexistent", "there is no folder /nonexistent", WATCHED),
    ("new", "FILE is missing", "See pgdyno new --help."),
    ("capture", "--output is missing", "See pgdyno capture --help."),
    ("drill", "the folder of a cluster is missing", "Give it, or --list to see the faults."),
    ("repor", "unknown command repor", "Did you mean report?"),
    ("cluster foo", "unknown command foo", "See pgdyno cluster --help."),
    ("--lang", "--lang needs a value", "See pgdyno --help."),
]  # fmt: skip


@pytest.mark.parametrize(("words", "cause", "remedy"), MISTAKES)
def test_mistakes_in_the_command_line(words: str, cause: str, remedy: str) -> None:
    with pytest.raises(UsageError) as e:
        app(words.split(), prog_name="pgdyno", standalone_mode=False)
    assert e.value.text().splitlines() == [cause, *filter(None, [remedy])]
    assert CHINESE.search(e.value.text("zh")) and not SENTENCE.search(e.value.text("zh"))


def test_help_and_mistakes_as_they_are_typed() -> None:
    done = pgdyno("run", "--clientz", "3", "--lang", "zh")
    assert (done.code, done.out) == (2, "") and done.err.startswith("pgdyno: 未知的选项 --clientz\n")
    done = pgdyno("--lang=zh", "report", "--help")
    assert done.code == 0 and done.out.startswith("用法： pgdyno report ")
    assert pgdyno("repor").err == "pgdyno: unknown command repor\nDid you mean report?\n"


def test_chinese_lines_break_by_columns() -> None:
    assert wrapped("测量每个配置，并生成报告。", 12) == ["测量每个配", "置，并生成报", "告。"]
    assert wrapped("a " + "x" * 20 + " b", 10) == ["a", "x" * 20, "b"] and wrapped("", 10) == []
    assert list(columns([("--a N", "数"), ("--long-name", "数字字")], 20, longest_name=5)) == [
        "--a N  数", "--long-name", "       数字字",
    ]  # fmt: skip
