"""Constants become parameters by PostgreSQL's lexical rules: the server is asked whether a statement still means the
same, and nothing of a constant stays in the text.
"""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from pgdyno.capture import logs
from pgdyno.capture.catalog import Catalog
from pgdyno.capture.lexical import Casts, general
from pgdyno.capture.logfiles import Statement
from pgdyno.capture.write import write
from pgdyno.cluster import administration
from pgdyno.message import Name

from tests.support.schemas import target_of
from tests.support.server import Server
from tests.unit.capture.test_logfiles import as_csv, said

SCHEMA = """
create table t (a int primary key, b text, c timestamptz, j jsonb, arr int[], n numeric(9, 2), d date, r int4range);
insert into t select i, case when i % 7 = 0 then 'Q' || i || '''s' else 'plain ' || i end, '2024-01-01'::timestamptz
  + i * interval '1 hour', jsonb_build_object('k', i % 3, 't', array['x', 'y']), array[i, i + 1, i + 2], i / 3.0,
  '2024-01-01'::date + i, int4range(i, i + 3) from generate_series(1, 60) i;
"""
#: {s}: a string, {n}: a number, {d}: a day, {m}: many numbers. What must stay a constant is written out.
TEMPLATES = (
    "select a, b from t where b = {s} or a = {n} order by 1, 2 desc limit {n}",
    "select a from t where a in ({m}) and b <> {s} -- {s}\n order by a",
    "select {s} as x, {n} + 1, -{n}, {n}.5 from t where a < {n} order by a limit 3",
    "select date {d}, timestamp {d}, timestamp with time zone {d}, interval '1 day', interval '30' day",
    "select to_char(c, 'YYYY-MM-DD HH24:MI'), extract('year' from d), extract(day from d) from t where d = {d}",
    "select arr[1], arr[{n}], (array[{m}])[2:3], substring(b from 2 for 3) from t where a = {n}",
    "select r @> 3, int4range(1, {n}) && r from t order by a limit 4",
    "select j -> 'k', j ->> 't', j ? 'k', j @> {j}::jsonb, b || {s} from t where a between 3 and {n} order by a",
    "select count(*) from generate_series(1, {n}) g where g % 3 = 1",
    "select cast({s} as varchar(9)), n::numeric(5, 1), {n}::numeric(8, 3), {s}::text from t order by a "
    "fetch first 2 rows only",
    "select b, count(*) from t where b like 'p%' and b not like {s} escape '!' group by 1 "
    "having count(*) > {n} - {n} order by 1",
    "select $tag$a ' {raw} $$ b$tag$ || {s}, 'it''s' || 'b'\n  'c', a from t where a = 1_0 or a = 0x1F order by a",
    "/* trace:{raw} /* nested */ */ select a /* {raw} */ from t /*x*/ where a = {n} -- end",
    "select B'101' | B'010', X'1F', U&'d\\0061t\\+000061', {s} < b from t where a = 7",
    "with x as (select a, row_number() over (partition by a % {p} order by a) from t where a > {n}) "
    "select * from x order by 1, 2",
    "select * from (values ({n}, {s}), ({n}, {s})) v (x, y) order by 1",
    "select case when a > {n} then {s} else 'no' end, coalesce(b, {s}) from t order by a limit {n} offset 1",
    "select a from t where c >= timestamptz {d} and c < now() + interval '1 day' * {n} and \"b\" <> {s} order by a",
    "select a from t where (a, b) > ({n}, {s}) and not (a = {n}) and b ilike {s} || '%' order by a",
    "update t set b = b || {s}, n = n + {n} where a = {n} returning a, b, n",
    "insert into t (a, b, d) values ({n} + 100000, {s}, {d}) on conflict (a) do update set b = {s} returning b",
    "delete from t where a = {n} and b = {s} returning a",
)  # fmt: skip


def literal(rng: random.Random, mark: str) -> str:
    """A string that has the mark, in one of the forms that strings have."""
    plain = f"{mark}{rng.choice(['', ' x', ':y', '$1', ' -- z', '/*', '%', '(', ';'])}"
    form = rng.choice(["plain", "quoted", "escape", "dollar", "tag", "unicode", "national"])
    return {
        "plain": f"'{plain}'", "quoted": f"'{plain}''s'", "escape": f"E'{plain}\\'\\n\\\\ '", "dollar": f"$${plain}$$",
        "tag": f"$q${plain}'$q$", "unicode": f"U&'{plain.replace('%', '')}\\0021'", "national": f"N'{plain}'",
    }[form]  # fmt: skip


def written(rng: random.Random, template: str, number: int) -> tuple[str, list[str]]:
    """A statement, and the marks in it."""
    marks: list[str] = []

    def mark() -> str:
        marks.append(f"MaRk{number}q{len(marks)}")
        return marks[-1]

    out, at = [], 0
    while (begin := template.find("{", at)) >= 0:
        end = template.index("}", begin)
        slot = template[begin + 1 : end]
        out.append(template[at:begin])
        at = end + 1
        if slot == "s":
            out.append(literal(rng, mark()))
        elif slot == "raw":
            out.append(mark())
        elif slot == "j":
            out.append("'{\"k\": 1}'")
        elif slot == "d":
            out.append(f"'2024-01-{rng.randint(10, 28)}'")
        elif slot == "m":
            out.append(", ".join(str(rng.randint(1, 60)) for _ in range(rng.randint(3, 9))))
        else:
            out.append(str(rng.randint(2, 40)))
    return "".join([*out, template[at:]]), marks


@pytest.mark.parametrize(("seed", "count"), [(1, 120), pytest.param(2, 2000, marks=pytest.mark.slow)])
def test_statements_mean_what_they_meant(server: Server, database: str, seed: int, count: int) -> None:
    server.sql(SCHEMA, dbname=database)
    rng = random.Random(seed)
    with psycopg.connect(server.conninfo(dbname=database), autocommit=True) as conn:
        for number in range(count):
            text, marks = written(rng, rng.choice(TEMPLATES), number)
            conn.execute("begin")
            whole = conn.pgconn.exec_(text.encode())
            assert not whole.error_message, (text, whole.error_message)
            conn.execute("rollback")
            for casts in (Casts.NUMBERS, Casts.ALL):
                shown, values = general(text, casts)
                assert not any(m in shown for m in marks), (text, shown)
                conn.execute("begin")
                parts = conn.pgconn.exec_params(shown.encode(), [v.encode() for v in values])
                conn.execute("rollback")
                if not parts.error_message:
                    break
            assert not parts.error_message, (text, shown, parts.error_message)
            rows = [[[r.get_value(i, n) for n in range(r.nfields)] for i in range(r.ntuples)] for r in (whole, parts)]
            assert rows[0] == rows[1], (text, shown)


#: Where else a value can stand that is nobody's business.
SECRETS = (
    "insert into users(name,password) values ({s},{s})", "insert into users values (default,{s},{s})",
    "update users set (name, password) = ({s}, {s}) where id = {n}", "select login({s},{s})",
    "insert into users (name, password) select {s}, md5({s}) where {n} > 1", "notify channel, {s}",
    "select set_config('app.secret', {s}, false)", "select * from dblink_connect('host=x password=' || {s})",
    "merge into users u using (values ({s}, {n})) v (p, i) on u.id = v.i when matched then update set name = v.p",
    "select * from users where name = {s} /* user {raw} */ and id = {n} -- {raw}", "set application_name = {s}",
    "select {s} over and out {s}", "create role x password {s}", "copy users from {s}", "select {s}::text::bytea",
    "select * from t where b = any(array[{s}, {s}]) or j @> jsonb_build_object({s}, {n})", "call nightly({s})",
    "do $x$ begin perform {raw}; end $x$", "select 'it''s ' || {s} \n 'and' || {s}",
    "select * from t where b = {s} and (",
    "execute p({s})", "explain select * from t where b = {s}", "declare c cursor for select * from t where b = {s}",
)  # fmt: skip


@pytest.mark.parametrize("count", [120, pytest.param(1500, marks=pytest.mark.slow)])
def test_no_value_is_written(
    server: Server, database: str, tmp_path: Path, count: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whatever a log has of texts: none of it stands in a script, in the README, or goes to the terminal."""
    server.sql(SCHEMA + "create table users (id int primary key, name text, password text);", dbname=database)
    rng = random.Random(count)
    entries = []
    for number in range(count):
        text, _ = written(rng, rng.choice(TEMPLATES + SECRETS), number)
        entries.append(("x", *said(Statement("a", text, {}), "en")))
        values: dict[int, str | None] = {1: f"MaRk{number}", 2: "MaRk%"}
        bound = Statement("a", f"select a, {number % 7} from t where b = $1 or b like $2", values)
        entries.append(("x", *said(bound, "en")))
    log = tmp_path / "x.csv"
    log.write_text(as_csv(entries, "a"))
    with closing(administration.connect(target_of(server, database))) as conn:
        found = logs.read_log([log], "x", Catalog(conn), top=10_000, read_only=False)
        assert len(found.scripts) > 15 and found.covered > 0.5
        write(found, tmp_path / "out", source=Name("x"), when="now")
    texts = {p.name: p.read_text() for p in (tmp_path / "out").iterdir()}
    texts["terminal"] = "".join(capfd.readouterr())
    for name, text in texts.items():
        assert "mark" not in text.lower(), (name, [x for x in text.splitlines() if "mark" in x.lower()][:3])


#: Statements of transactions in the forms that drivers write, and what their scripts must have.
MESSAGES = (
    ("BEGIN; update t set b = 'MaRk1' where a = {n}; COMMIT", "update t set b = "),
    ("BEGIN /*application='x',request_id='MaRk{n}'*/|select b from t where a = {n}|COMMIT /*MaRk{n}*/",
     "select b from t where a = "),
    ('BEGIN|SAVEPOINT "s1398_x{n}"|delete from t where a = -{n}|RELEASE SAVEPOINT "s1398_x{n}"|COMMIT', "savepoint s1"),
    ("update t set n = {n} where a = {n}; select count(*) from t where b <> 'MaRk'", "update t set n = "),
    ("BEGIN|SET LOCAL statement_timeout = 5000|select a from t where a = {n}|END", "set local statement_timeout"),
)  # fmt: skip


@pytest.mark.parametrize(("messages", "has"), MESSAGES)
def test_transactions_in_all_forms_are_one_script(server: Server, tmp_path: Path, messages: str, has: str) -> None:
    """However often they come, with whatever names and comments; and no session hangs in one of them."""
    server.sql("drop table if exists t; " + SCHEMA)
    sent: list[str] = []
    for n in range(1, 41):
        sent += [*messages.replace("{n}", str(n)).split("|"), f"select a from t where a = {n} and b <> 'other'"]
    entries = [("postgres", *said(Statement("a", text, {}), "en")) for text in sent]
    (tmp_path / "x.csv").write_text(as_csv(entries, "a"))
    with closing(administration.connect(target_of(server, "postgres"))) as conn:
        found = logs.read_log([tmp_path / "x.csv"], "postgres", Catalog(conn), top=30, read_only=False)
    write(found, tmp_path / "out", source=Name("x"), when="now")
    texts = [p.read_text() for p in sorted((tmp_path / "out").glob("*.sql"))]
    assert len(texts) == 2 and not found.left_out and sum(s.calls for s in found.scripts) == 80, (texts, found.left_out)
    assert any(has in t.lower() for t in texts), texts
    for path in (tmp_path / "out").iterdir():
        assert "mark" not in path.read_text().lower(), path
