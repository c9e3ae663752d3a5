"""Schemas as the world has them: each is made and filled without an edit, or refused with a reason that holds."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, seed, settings
from pgdyno.cluster.binaries import wheel_folder
from pgdyno.errors import PgdynoError, SpecError

from tests.support import schemas
from tests.support.cli import environment, pgdyno
from tests.support.messages import text
from tests.support.schemas import MadeUp, as_dataset, made, of_folder
from tests.support.server import Server
from tests.support.tells import tells

CASES = Path(__file__).parents[1] / "cases"
FORMS = sorted((CASES / "forms").glob("*.sql"))
BRIEF = ("--duration", 0.5, "--warmup", 0.2, "--repetitions", 1, "--clients", 2)
#: Tables and rows, what must hold of them, and what is said; or why it is refused.
RIGHT: dict[str, tuple[dict[str, int], str, str]] = {
    "01-restrict-in-files": ({"note": 100}, "", ""),
    "02-restrict-in-dump": ({"note": 0}, "", ""),
    "05-owner-of-nobody": ({"post": 10}, "", 'left out: ALTER TABLE public.post OWNER TO app_owner; (role "app_owner"'),
    "06-owner-of-nobody-dump": ({"post": 0}, "", ""),
    "08-composite-foreign-key": (
        {"node": 1000, "node_tag": 1000}, "(select count(distinct (node_id, version)) from node_tag) > 200",
        "their default in all rows: node_tag.v (''::text)",
    ),
    "09-self-reference": ({"employee": 400_000}, "(select count(reports_to) from employee) >= 399999", ""),
    "10-natural-text-key": (
        {"country": 100, "currency": 50, "price": 1000},
        "(select count(distinct country) > 90 and count(distinct currency) = 50 from price)", "",
    ),
    "11-partial-unique": (
        {"account": 1000}, "(select count(*) from account where is_primary) > 100", "account.username",
    ),
    "12-domains": ({"film": 100}, "(select max(length(title)) = 5 and count(distinct year) > 30 from film)", ""),
    "13-range-partitions": (
        {"payment": 1000}, "(select count(distinct date_trunc('month', paid_at)) = 12 from payment)", "",
    ),
    "14-expression-unique-exclude": ({"booking": 100}, "(select count(distinct during) from booking) = 100", ""),
    "15-inline-copy-data": ({"lang": 2, "film": 100}, "(select count(distinct lang) from film) = 2", ""),
    "16-dump-with-backslash-in-text": ({"page": 1}, "(select body from page) ~ 'section'", ""),
    "17-files-with-backslash-in-text": ({"page": 1}, "(select body from page) ~ 'section'", ""),
    "18-check-constraints": (
        {"track": 1000}, "(select count(distinct stars) = 5 and count(distinct country) > 50 from track)", "",
    ),
    "19-fk-on-partitions": (
        {"customer": 100, "payment": 1000}, "(select count(distinct customer_id) from payment) > 90", "",
    ),
    "21-self-reference-small": ({"employee": 5000}, "(select count(reports_to) from employee) = 4999", ""),
    "23-nullable-fk-to-empty": (
        {"access": 100}, "(select count(refresh_id) from access) = 0", "access.refresh_id: NULL",
    ),
    "24-quoted-names": (
        {'"Sales"."Order Details"': 1000},
        '(select count(distinct "Product ID") from "Sales"."Order Details") = 77', "",
    ),
    "25-mixed-case-table": ({'"User"': 1000}, '(select count(distinct email) from "User") = 1000', ""),
    "26-mixed-case-script-only": ({'"User"': 100}, "", ""),
    "46-bom-in-schema": ({"t": 1}, "", ""),
}  # fmt: skip
REFUSED = {
    "03-begin-commit-onerrorstop": r"schema\.sql:3:1: BEGIN: .* one transaction",
    "04-create-database-connect": r"schema\.sql:1:1: DROP DATABASE: the database is that of --target.*\\c\.",
    "20-text-key-circular-hint": r"language, which has no rows.*dataset\.fill\.language",
    "22-smallint-key-many-rows": r"tag\.columns\.id: 40,000 different values from 1 on do not fit smallint",
}


@pytest.mark.parametrize("case", sorted(p.name for p in CASES.iterdir() if (p / "case.toml").exists()))
def test_schemas_from_outside(server: Server, database: str, case: str) -> None:
    data = of_folder(CASES / case)
    if case in REFUSED:
        with pytest.raises(PgdynoError) as refused:
            made(server, database, data)
        assert re.search(REFUSED[case], f"{refused.value.message} {refused.value.remedy}"), refused.value
        return
    tables, holds, said = RIGHT[case]
    notes = made(server, database, data)
    assert said in "\n".join(notes), notes
    for table, rows in tables.items():
        assert server.sql(f"select count(*) from {table}", dbname=database) == [(rows,)], table
    if holds:
        assert server.sql(f"select {holds}", dbname=database) == [(True,)], holds


@pytest.mark.slow
@pytest.mark.parametrize(
    "form", [pytest.param(p.stem, marks=[] if p.stem == "tenants" else [pytest.mark.slow]) for p in FORMS]
)
def test_a_schema_runs_as_it_is(tmp_path: Path, form: str) -> None:
    """`new --from` and `run`, and nothing between; no table stays empty."""
    file = tmp_path / f"{form}.toml"
    written = pgdyno("new", file, "--from", CASES / "forms" / f"{form}.sql")
    assert written.code == 0 and "empty:" not in written.out, written.out + written.err
    done = pgdyno("run", file, "--embedded", *BRIEF, "--runs", tmp_path, "--json", timeout=170)
    assert done.code == 0, done.err
    assert done.json["trials"][0]["summary"]["tps"] > 0
    nowhere = pgdyno("new", tmp_path / "no" / "x.toml", "--from", CASES / "forms" / f"{form}.sql")
    assert nowhere.code == 2 and tells(nowhere.err, "error-there-no-folder-nothing-was"), nowhere.err
    again = pgdyno("new", file, "--from", CASES / "forms" / f"{form}.sql")
    assert again.code == 2 and tells(again.err, "error-there-already-nothing-was-written-2")


@pytest.mark.slow
def test_a_database_and_a_dump_run_as_they_are(server: Server, database: str, tmp_path: Path) -> None:
    server.sql(
        'create table a (id int primary key, "Say" text); '
        "create table b (id uuid primary key default gen_random_uuid(), a int not null references a); "
        "insert into a select i, 'secret' from generate_series(1, 400) i; "
        "insert into b (a) select 1 + i % 400 from generate_series(1, 1200) i; analyze",
        dbname=database,
    )
    written = pgdyno("new", tmp_path / "live.toml", "--from", server.conninfo(dbname=database))
    assert written.code == 0, written.err
    text = (tmp_path / "live.toml").read_text() + (tmp_path / "live-schema.sql").read_text()
    # Sizes as there, and no value of it.
    assert (
        "[dataset.fill.a]\nrows = 400\n" in text and "[dataset.fill.b]\nrows = 1_200\n" in text and "secret" not in text
    )
    done = pgdyno("run", tmp_path / "live.toml", "--embedded", *BRIEF, "--runs", tmp_path, "--json")
    assert done.code == 0, done.err
    folder = wheel_folder()
    assert folder is not None
    at = ["-h", str(server.socket), "-p", str(server.port), "-U", "postgres"]
    for form in ("c", "p"):
        dump = tmp_path / f"shop.{form}"
        subprocess.run([folder / "pg_dump", *at, f"-F{form}", "-f", dump, database], check=True, env=environment())
        written = pgdyno("new", tmp_path / f"{form}.toml", "--from", dump)
        assert written.code == 0, written.err
        done = pgdyno("run", tmp_path / f"{form}.toml", "--embedded", *BRIEF, "--runs", tmp_path, "--json")
        assert done.code == 0, done.err


#: Why a random schema may be refused: more rows than values, or nothing to refer to.
_HOLDS = re.compile(
    r"has [\d,]+ combinations|different values from|it is unique, and|which has no rows|"
    r"needs a different value in each row|shares columns with another one|values of type xml cannot be generated"
)


def check(server: Server, database: str, tables: list[MadeUp], folder: Path) -> bool:
    """Make and fill a schema; whether it could be."""
    server.sql(
        "drop schema public cascade; create schema public; grant all on schema public to public", dbname=database
    )
    try:
        made(server, database, as_dataset(tables, folder))
    except SpecError as e:
        assert _HOLDS.search(e.message), f"{e.message}\n{(folder / 'schema.sql').read_text()}"
        return False
    for t in tables:
        name = schemas.quoted(t.name)
        assert server.sql(f"select count(*) from {name}", dbname=database) == [(t.rows,)], t.sql
        # What refers to others uses them.
        for line in t.constraints:
            if match := re.match(r"foreign key \((.*)\) references (\S.*) \((.*)\)$", line):
                own, other, _ = match.groups()
                if t.rows >= 50 and other != name:
                    (n,) = server.sql(f"select count(distinct ({own})) from {name}", dbname=database)[0]
                    (of,) = server.sql(f"select count(*) from {other}", dbname=database)[0]
                    assert n >= min(of, t.rows) * 0.4 or of == 0, f"{n} of {of} rows: {line}\n{t.sql}"
    return True


def tried(server: Server, database: str, folder: Path, number: int, examples: int) -> None:
    done = [0, 0]

    @seed(number)
    @settings(max_examples=examples, derandomize=False, database=None, suppress_health_check=list(HealthCheck))
    @given(schemas.schemas())
    def one(tables: list[MadeUp]) -> None:
        done[not check(server, database, tables, folder)] += 1

    one()
    # Most of them can be filled.
    assert done[0] > done[1], done


@pytest.mark.slow
def test_some_random_schemas_are_filled(server: Server, database: str, tmp_path: Path) -> None:
    tried(server, database, tmp_path, 20260901, 25)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", range(int(os.environ.get("PGDYNO_TEST_SCHEMAS", "5"))))
def test_random_schemas_are_filled(server: Server, database: str, tmp_path: Path, number: int) -> None:
    tried(server, database, tmp_path, number, 400)


#: Scripts with their calls, and what is said.
CAPTURED: dict[str, tuple[list[tuple[str, int]], str]] = {
    "30-jdbc-fetch": ([("select-acct", 2), ("select-users", 1)], text("capture-fetches", n="5")),
    "31-rollback-to-savepoint": ([("update-acct", 4)], ""),
    "32-marginalia-comments": ([("select-relations-users", 40)], ""),
    "33-stderr-log": ([("select-acct", 1)], ""),
    "35-param-lists": ([("select-slot", 5)], text("capture-lengths", n=5)),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", sorted(CAPTURED))
def test_logs_from_outside(server: Server, database: str, tmp_path: Path, case: str) -> None:
    server.sql("drop database if exists shop", dbname="postgres")
    server.sql("create database shop")
    server.sql((CASES / "shop.sql").read_text(), dbname="shop")
    (log,) = (p for p in (CASES / case).iterdir() if p.suffix in (".csv", ".log"))
    target = server.conninfo(dbname="shop")
    done = pgdyno("capture", "--target", target, "--log", log, "-o", tmp_path / "out")
    assert done.code == 0 and "100% of the transactions in the log; 0 left out" in done.out, done.err
    readme = (tmp_path / "out" / "README.md").read_text()
    scripts, said = CAPTURED[case]
    assert re.findall(r"^\| \d+-(\S+) \| (\d+) \|", readme, re.M) == [(name, str(n)) for name, n in scripts]
    assert said in readme
    texts = [p.read_text() for p in (tmp_path / "out").glob("*.sql")]
    assert not any("correlation_id" in t for t in texts)
    if case.startswith("31"):
        assert "SAVEPOINT s1;" in texts[0] and "ROLLBACK TO SAVEPOINT s1;" in texts[0]
    if not case.startswith("31"):
        return
    (file,) = (tmp_path / "out").glob("*.toml")
    ran = pgdyno("run", file, "--target", target, *BRIEF, "--runs", tmp_path, "--json")
    assert ran.code in (0, 1) and not ran.json["trials"][0]["summary"]["failed"], ran.err
