"""Logs in all forms, languages and states say the same statements."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pgdyno.capture.logfiles import Reader, Statement
from pgdyno.errors import UsageError
from pgdyno.message import Name, message

#: As PostgreSQL's catalogues of messages have them: a level, a statement with its duration, an execution, a fetch, and
#: what parameters are called.
LANGUAGES = {
    "en": ("LOG", "duration: {} ms  statement: {}", "duration: {} ms  execute {}: {}",
           "duration: {} ms  execute fetch from {}: {}", "parameters: "),
    "de": ("LOG", "Dauer: {} ms  Anweisung: {}", "Dauer: {} ms  Ausführen {}: {}",
           "Dauer: {} ms  Ausführen Fetch von {}: {}", "Parameter: "),
    "es": ("LOG", "duración: {} ms  sentencia: {}", "duración: {} ms  ejecutar {}: {}",
           "duración: {} ms  ejecutar fetch desde {}: {}", "parámetros: "),
    "fr": ("LOG", "durée : {} ms, instruction : {}", "durée : {} ms  exécute {}: {}",
           "durée : {} ms  exécute fetch à partir de {}: {}", "paramètres : "),
    "ja": ("LOG", "期間: {} ミリ秒  文: {}", "期間: {} ミリ秒  実行 {}: {}",
           "期間: {} ミリ秒  取り出し実行 {}: {}", "パラメータ: "),
    "ko": ("로그", "실행시간: {} ms  명령 구문: {}", "수행시간: {} ms  쿼리실행 {}: {}",
           "수행시간: {} ms  자료뽑기 {}: {}", "매개 변수: "),
    "ru": ("СООБЩЕНИЕ", "продолжительность: {} мс, оператор: {}", "продолжительность: {} мс  выполнение {}: {}",
           "продолжительность: {} мс  выборка из {}: {}", "параметры: "),
    "zh": ("日志", "执行时间: {} ms 语句: {}", "执行时间: {} ms 执行{}: {}",
           "执行时间: {} ms 执行FETCH操作{}: {}", "参数: "),
}  # fmt: skip
PREFIXES = {
    "%m [%p] ": "2024-05-01 12:00:00.001 UTC [{pid}] ",
    "%m [%p] %q%u@%d ": "2024-05-01 12:00:00.001 UTC [{pid}] web@{db} ",
    "%t [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ": "2024-05-01 12:00:00 CEST [{pid}]: [3-1] "
    "user=web,db={db},app=an app,client=10.0.0.9 ",
    "%c %m %d|%a|": "6632{pid}.a1 2024-05-01 12:00:00.001 UTC {db}|psql|",
}


def said(s: Statement, language: str, is_fetch: bool = False) -> tuple[str, str, str]:
    """Level, message and detail of a statement in a log."""
    level, plain, executed, fetched, parameters = LANGUAGES[language]
    if not s.parameters and not is_fetch:
        return level, plain.format("0.5", s.text), ""
    message = (fetched if is_fetch else executed).format("1.25", "S_1/C_2", s.text)
    pairs = (f"${n} = " + ("NULL" if v is None else "'" + v.replace("'", "''") + "'") for n, v in s.parameters.items())
    return level, message, parameters + ", ".join(pairs)


def as_csv(entries: list[tuple[str, str, str, str]], session: str) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for database, level, words, detail in entries:
        row = [""] * 26
        row[2], row[5], row[11], row[13], row[14] = database, session, level, words, detail
        writer.writerow(row)
    return out.getvalue()


def as_json(entries: list[tuple[str, str, str, str]], session: str) -> str:
    names = ("dbname", "error_severity", "message", "detail")
    return "".join(json.dumps(dict(zip(names, e, strict=True)) | {"session_id": session}) + "\n" for e in entries)


def as_stderr(entries: list[tuple[str, str, str, str]], session: str, prefix: str) -> str:
    out = ""
    for database, level, words, detail in entries:
        head = PREFIXES[prefix].format(pid=session, db=database)
        tabbed = words.replace("\n", "\n\t")
        out += f"{head}{level}:  {tabbed}\n" + (f"{head}DETAIL:  {detail}\n" if detail else "")
    return out


TEXTS = st.sampled_from(
    [
        "select 1",
        "SELECT * FROM t\nWHERE a = $1\n  AND b = $2",
        "update t set b = 'x: y', c = '执行时间: 3 ms'",
        "BEGIN",
        "select ':  '",
    ]
)
STATEMENTS = st.lists(
    st.tuples(
        TEXTS, st.lists(st.none() | st.text("ab'$1 =,:", max_size=8), max_size=3), st.booleans()
    ),
    min_size=1, max_size=6,
)  # fmt: skip


@given(STATEMENTS, st.sampled_from(sorted(LANGUAGES)), st.sampled_from(["csv", "json", "csv.gz", *PREFIXES]))
@settings(max_examples=300)
def test_every_log_says_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    drawn: list[tuple[str, list[str | None], bool]],
    language: str,
    form: str,
) -> None:
    wanted, entries = [], []
    for text, parameters, other in drawn:
        s = Statement("77" if form in PREFIXES else "a.1", text, dict(enumerate(parameters, 1)))
        entries.append(("shop", *said(s, language)))
        wanted.append(s)
        if other:
            # Of another database, a fetch of more rows, and what is no statement.
            entries += [("elsewhere" if form != "%m [%p] " else "shop", *said(s, language, is_fetch=True)),
                        ("shop", LANGUAGES[language][0], "checkpoint complete: wrote 3 buffers", "")]  # fmt: skip
    folder = tmp_path_factory.getbasetemp()
    if form in PREFIXES:
        path = folder / "postgresql.log"
        path.write_text(as_stderr(entries, "77", form), encoding="utf-8")
    elif form == "json":
        path = folder / "x.json"
        path.write_text(as_json(entries, "a.1"), encoding="utf-8")
    else:
        path = folder / f"x.{form}"
        raw = as_csv(entries, "a.1").encode()
        path.write_bytes(gzip.compress(raw) if form.endswith("gz") else raw)
    found = list(Reader([path], "shop", form if form in PREFIXES else "%m [%p] ").statements())
    if form.startswith("%c"):
        found = [Statement("77", s.text, s.parameters) for s in found]
    assert found == wanted


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_log_that_is_being_written_is_cut_off_at_its_end(tmp_path: Path, form: str) -> None:
    s = Statement("a.1", "select 1", {})
    whole = (as_csv if form == "csv" else as_json)([("shop", *said(s, "en"))] * 3, "a.1")
    path = tmp_path / f"x.{form}"
    path.write_text(whole[:-30] if form == "json" else whole[: whole.rindex("a.1") + 1])
    reader = Reader([path], "shop", "")
    assert list(reader.statements()) == [s, s] and reader.notes() == [message("capture-cut-off", n=1)]
    # In the middle it is another file.
    path.write_text("nonsense\n" + whole)
    with pytest.raises(UsageError, match="PostgreSQL's"):
        list(Reader([path], "shop", "").statements())


def test_what_a_plan_was_of_is_read(tmp_path: Path) -> None:
    """auto_explain writes the query and its plan."""
    plan = "Index Scan using t_pkey on t  (cost=0.15..8.17 rows=1 width=36)\n  Index Cond: (a = 7)"
    message = f"duration: 8.7 ms  plan:\nQuery Text: select *\nfrom t where a = 7\n{plan}"
    path = tmp_path / "x.log"
    path.write_text(as_stderr([("shop", "LOG", message, "")], "77", "%m [%p] "))
    (found,) = Reader([path], "shop", "%m [%p] ").statements()
    assert found.text == "select *\nfrom t where a = 7"


def test_why_there_is_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(as_csv([("other", *said(Statement("a.1", "select 1", {}), "en"))] * 3, "a.1"))
    reader = Reader([path], "shop", "")
    assert not list(reader.statements())
    known = {"n": 3, "database": Name("shop"), "others": Name("other")}
    assert message("capture-log-of-others", **known) in reader.notes()
    path = tmp_path / "x.log"
    path.write_text("nothing that PostgreSQL writes\n")
    with pytest.raises(UsageError, match="log_line_prefix"):
        list(Reader([path], "shop", "%m ").statements())
