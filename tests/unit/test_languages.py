"""The language of the terminal: by --lang before any verb, or by the locale; errors and remedies too."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.cli import environment, pgdyno

SENTENCE = re.compile(r"[a-z]{2,} [a-z]{2,} [a-z]{2,} [a-z]{2,}")
CHINESE = re.compile("[\u3400-\u9fff]")


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


def test_files_are_made_in_chinese(tmp_path: Path) -> None:
    done = pgdyno("--lang", "zh", "new", tmp_path / "x")
    assert done.code == 0 and done.out.startswith("已写入：") and (tmp_path / "x.toml").exists()


def test_a_language_that_is_not_there_is_refused() -> None:
    done = pgdyno("--lang", "de", "plan", "quick")
    assert done.code == 2 and "en, zh" in done.err
