"""Whole command lines, answered by the installed pgbench 18 and by ours: exit code, standard output and standard error
must be the same but for figures that differ from run to run.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.server import Server
from tests.support.twins import Case, compare

VARIABLES = (
    "-Dfoo=bla -Dnull=null -Dtrue=true -Done=1 -Dzero=0.0 -Dbadtrue=trueXXX -Dmaxint=9223372036854775807 "
    "-Dminint=-9223372036854775808 -Dempty_is_not=0 -Dt=t -Df=of -Dd=1e3 -Doct=007"
)


def named(cases: list[Case]) -> list[object]:
    return [pytest.param(c, id=c.name.replace(" ", "-")) for c in cases]


@pytest.fixture(scope="module")
def pgbench(server: Server) -> Path:
    return server.bin / "pgbench"


@pytest.fixture(scope="module")
def tpcb(server: Server) -> Iterator[str]:
    """A database with pgbench's tables."""
    server.sql("create database twins")
    import subprocess

    subprocess.run(
        [server.bin / "pgbench", "-i", "-q", "-h", server.socket, "-p", str(server.port), "-U", "postgres", "twins"],
        check=True, capture_output=True,
    )  # fmt: skip
    server.sql("create table marks (n int)", dbname="twins")
    yield "twins"
    server.sql("drop database twins with (force)")


COMMAND_LINE = [
    Case("unknown long option", "-h home -p 5432 -U calvin -d --bad-option"),
    Case("unknown option", "--bad-option"),
    Case("unknown letter", "-Z"),
    Case("missing argument", "-c"),
    Case("missing long argument", "--client"),
    Case("argument too many", "--connect=yes"),
    Case("ambiguous", "--pro"),
    Case("ambiguous t", "--t=3"),
    Case("no file", "-f no-such-file"),
    Case("no name", "-f ''"),
    Case("weight alone", "-f @3"),
    Case("folder as file", "-f ."),
    Case("no builtin", "-b no-such-builtin"),
    Case("ambiguous builtin", "-b s"),
    Case("weight", "--builtin=select-only@one"),
    Case("negative weight", "-b select-only@-1"),
    Case("huge weight", "-b select-only@4294967296"),
    Case("too many scripts", "-S " * 129),
    Case("clients", "-c three"),
    Case("zero clients", "-c 0"),
    Case("huge clients", "-c 99999999999"),
    Case("jobs", "-j eleven"),
    Case("scale", "-i -s two"),
    Case("transactions", "-t zil"),
    Case("duration", "-T ten"),
    Case("blanks", "-T ' 5 x'"),
    Case("t and T", "-N -l --aggregate-interval=5 --log-prefix=notused -t 1000 -T 1"),
    Case("definition", "--define foobla"),
    Case("definition name", "-D 1x=2"),
    Case("definition empty", "-D x="),
    Case("fillfactor", "-F 1"),
    Case("query mode", "-M no-such-mode"),
    Case("progress", "--progress=0"),
    Case("rate", "--rate=0.0"),
    Case("rate text", "--rate=abc"),
    Case("limit", "--latency-limit=0.0"),
    Case("sampling", "--sampling-rate=0"),
    Case("sampling above one", "--sampling-rate=1.5"),
    Case("aggregate", "--aggregate-interval=-3"),
    Case("zero weights", "-b se@0 -b si@0 -b tpcb@0"),
    Case("init and run", "-i -S"),
    Case("run and init", "-S -F 90"),
    Case("timestamp", "--progress-timestamp"),
    Case("steps without init", "-I dtg"),
    Case("steps", "-i -I dta"),
    Case("no steps", "-i -I ''"),
    Case("seed", "--random-seed=one"),
    Case("seed of environment", "-S", env={"PGBENCH_RANDOM_SEED": "no"}),
    Case("partition method", "-i --partition-method=BAD"),
    Case("partitions", "-i --partitions -1"),
    Case("method without partitions", "-i --partition-method=hash"),
    Case("negative tries", "--max-tries -10"),
    Case("unlimited tries", "--max-tries 0"),
    Case("sampling without log", "--sampling-rate=0.01"),
    Case("sampling and aggregate", "-l --sampling-rate=0.1 --aggregate-interval=3"),
    Case("aggregate without log", "--aggregate-interval=3"),
    Case("prefix without log", "--log-prefix=x"),
    Case("aggregate above duration", "-l -T 1 --aggregate-interval=3"),
    Case("aggregate and duration", "-l -T 5 --aggregate-interval=3"),
    Case("operands", "-S one two three"),
    Case("builtins", "-b list"),
    Case("show", "--show-script se"),
    Case("show tpcb", "--show-script=tpcb"),
    Case("show unknown", "--show-script=x"),
    Case("no socket", "-h /no/such/folder -S"),
    Case("no socket for init", "-h /no/such/folder -i"),
    Case("nobody listens", "-h 127.0.0.1 -p 1 -S -n"),
    Case("conninfo", "-S 'host=/no/such/folder port=7'"),
    Case("abbreviations", "--cli=2 --trans=3 --sel --host=/no/such/folder"),
    Case("joined letters", "-nSc2 -t3 -h/no/such/folder"),
    Case("permuted", "postgres -S -h /no/such/folder"),
    Case("end of options", "-h /no/such/folder -S -- -x"),
]

SYNTAX = {
    "missing endif": "\\if 1",
    "elif alone": "\\elif 1",
    "else alone": "\\else",
    "endif alone": "\\endif",
    "elif after else": "\\if 1\n\\else\n\\elif 0\n\\endif",
    "else after else": "\\if 1\n\\else\n\\else\n\\endif",
    "if without condition": "\\if\n\\endif\n",
    "bad elif": "\\if 0\n\\elif +\n\\endif\n",
    "else with argument": "\\if 0\n\\else BAD\n\\endif\n",
    "endif with argument": "\\if 0\n\\endif BAD\n",
    "least": "\\set i least()\n",
    "greatest": "\\set i greatest()\n",
    "hash few": "\\set i hash()\n",
    "hash many": "\\set i hash(1,2,3)\n",
    "permute few": "\\set i permute(1)\n",
    "permute many": "\\set i permute(1, 2, 3, 4)\n",
    "bigint overflow": "\\set i 100000000000000000000\n",
    "double overflow": "\\set d 1.0E309\n",
    "double overflow 2": "\\set d .1E310\n",
    "operand missing": "\\set i 1 +\n",
    "operand missing later": "SELECT 1;\n\n  \\set i 1 *\nSELECT 2;",
    "parenthesis": "\\set i (1 + 2\n",
    "parenthesis too many": "\\set i 1 + 2)\n",
    "function": "\\set i noSuchFunction()",
    "character": "\\set i ;",
    "character 2": "\\set i 1 ? 2\n",
    "set alone": "\\set",
    "set name alone": "\\set i",
    "case": "\\set i CASE TRUE THEN 1 ELSE 0 END",
    "case unfinished": "\\set i CASE WHEN TRUE THEN 1",
    "comparison chain": "\\set b 1 < 2 < 3\n",
    "is what": "\\set b 1 is 2\n",
    "sleep alone": "\\sleep",
    "sleep many": "\\sleep too many args",
    "sleep unit": "\\sleep 1 week",
    "sleep word": "\\sleep soon",
    "sleep joined unit": "\\sleep 10weeks",
    "shell alone": "\\shell",
    "setshell alone": "\\setshell",
    "setshell name alone": "\\setshell var",
    "shell many": "\\shell echo " + "arg " * 255,
    "gset alone": "\\gset",
    "gset without SQL": "\\set i +1\n\\gset",
    "gset twice": "SELECT 1 AS i \\gset\n\\gset",
    "gset many": "SELECT 1 \\gset a b",
    "aset alone": "\\aset",
    "unknown": "\\nosuchcommand",
    "unknown with arguments": "SELECT 1;\n\\nosuchcommand 1 2",
    "startpipeline argument": "\\startpipeline x\n",
    "endpipeline argument": "\\endpipeline x\n",
    "empty": "",
    "only comments": "-- nothing\n\n",
    "minimum without its sign": "\\set a 9223372036854775808",
    "continued": "\\set i \\\n  1 +\\\n  *\n",
    # Of several mistakes pgbench names the last one that it can lex, up to the line's end: also of a continued one.
    "characters": "\\set a 1 $$ 2\n",
    "quotes": '\\set a "abc"\n',
    "mistakes of two kinds": "\\set a 1 + ) $ 5\n",
    "mistakes of three kinds": "\\set a 99999999999999999999 + $ 1e999 \n",
    "colon": "\\set a 1 : 2 & $ x\n",
    "psql's separator": "\\set VERBOSITY terse \\\\\nSELECT 1;\n",
    "letters beyond ASCII": "\\set a é(1)\n",
    "letters alone": "\\set a é\n",
    "in a condition": "\\if 1 $ 2\nselect 1;\n\\endif\n",
}

#: With a server: the script fails while it runs.
RUNTIME = {
    "sql syntax": "SELECT 1 + ;\n",
    "no table": "SELECT 1;\nSELECT * FROM no_such_table;\n",
    "division in server": "SELECT 1/0;\n",
    "shell fails": "\\shell no-such-command",
    "shell of a variable": "\\set v 4\n\\shell :v",
    "shell too long": "\\shell echo " + "x" * 300,
    "setshell of a word": "\\setshell i echo x",
    "setshell name": "\\setshell 1a echo 1",
    "empty text": "SELECT '' AS e \\gset\n\\set x :e + 1\n",
    "inner query": "do $$begin perform nosuch(1); end$$;\n",
    "gset of none": "select 1 as a \\; begin \\gset\n",
    "gset of the last": "begin \\; select 1 as a \\; end \\gset\n",
    "gset name of the second": "select 1\\;\nselect 2\n\\gset\n",
    "shell variable": "\\shell echo ::foo :nosuchvariable\n",
    "setshell word": "\\setshell i echo -n one",
    "setshell nothing": "\\setshell i true",
    "set name": "\\set . 1",
    "division": "\\set i 1/0",
    "modulo": "\\set i 1%0",
    "undefined": "\\set i :nosuchvariable",
    "undefined in if": "SELECT 1;\n\\if :nosuchvariable\n\\endif\n",
    "many arguments": "\\set i least(0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16)",
    "empty range": "\\set i random(5,3)",
    "large range": "\\set i random(:minint, :maxint)",
    "gaussian": "\\set i random_gaussian(0, 10, 1.0)",
    "exponential": "\\set i random_exponential(0, 10, 0.0)",
    "zipfian 1": "\\set i random_zipfian(0, 10, 1)",
    "zipfian large": "\\set i random_zipfian(0, 10, 1000000)",
    "non numeric": "\\set i :foo + 1",
    "bad boolean": "\\set b :badtrue or true",
    "not a boolean": "\\set b NOT 0.0",
    "null is no int": "\\set i NULL + 1\n\\set j random(:i, 2)\n\\if :j\n\\endif\n\\set k int(:null)\n",
    "not an int": "\\set i TRUE + 2",
    "not a double": "\\set d ln(TRUE)",
    "random of booleans": "\\set b random(FALSE, TRUE)",
    "double to int": "\\set i int(1E32)",
    "add": "\\set i (1<<62) + (1<<62)",
    "sub": "\\set i 0 - (1<<62) - (1<<62) - (1<<62)",
    "mul": "\\set i 2 * (1<<62)",
    "div": "\\set i :minint / -1",
    "sleep variable": "\\sleep :nosuchvariable",
    "sleep text": "\\sleep :foo ms",
    "permute": "\\set i permute(0, 0)",
    "gset none": "SELECT WHERE FALSE \\gset",
    "gset two": "SELECT 5432 AS fail UNION SELECT 5433 ORDER BY 1 \\gset",
    "gset no select": "DROP TABLE IF EXISTS no_such_table \\gset",
    "gset name": "SELECT 1 \\gset",
    "gset odd name": 'SELECT 1 AS "bad name!" \\gset',
    "aset none": "SELECT 5432 AS i8 WHERE FALSE \\aset\n\\set i debug(:i8)\n",
    "copy in": "COPY marks FROM STDIN;\n",
    "copy out": "COPY marks TO STDOUT;\n",
    "left open": "BEGIN;\nSELECT 1;\n",
    "pipeline simple": "\\startpipeline\nSELECT 1;\n\\endpipeline\n",
    "raised": "DO $$ BEGIN RAISE EXCEPTION 'so' USING DETAIL = 'why', HINT = 'how'; END $$;\n",
    "second of two": "SELECT 1 \\; SELECT 1/0 \\; SELECT 2;\n",
    "exit of backend": "SELECT pg_terminate_backend(pg_backend_pid());\n",
}

EXTENDED = {
    "sql syntax": "SELECT 1 + ;\n",
    "too many arguments": "\\set i 0\nSELECT LEAST(" + ", ".join([":i"] * 256) + ")",
    "two statements": "SELECT 1 \\; SELECT 2;\n",
    "pipeline twice": "\\startpipeline\n\\startpipeline\n",
    "pipeline not begun": "\\endpipeline\n",
    "sync not begun": "\\syncpipeline\n",
    "gset in pipeline": "\\startpipeline\nselect 1 \\gset f\n\\endpipeline\n",
    "aset in pipeline": "\\startpipeline\nselect 1 \\aset\n\\endpipeline\n",
    "pipeline left open": "\\startpipeline\nselect 1;\n",
    "mistake in pipeline": "\\startpipeline\nselect 1/0 + nosuch;\nselect 2;\n\\endpipeline\n",
    "error in pipeline": "\\startpipeline\nselect 1;\nselect 1/0;\nselect 2;\n\\endpipeline\n",
    "bad parameter": "select 42 as value1, '1a' as value2 \\gset\nselect :value1::smallint, :value2::smallint;\n",
    "prepared by the script": 'PREPARE "P_1" AS select 5;\nSELECT 1;\nSELECT 2;\n',
    "not to be prepared": "SELECT 1;\nSELECT nosuch;\nSELECT 2;\n",
    "not to be prepared in a block": "BEGIN;\nSELECT nosuch;\nEND;\n",
    "mistakes in pipeline": "\\startpipeline\nSELECT 1;\nSELECT 1 + nosuch;\nSELECT nosuch2;\nSELECT 3;\n\\endpipeline\n",
    "no text": "create function pg_temp.f() returns int language sql as 'select nosuch(1)';\n",
    "blanks before gset": "select 1, 2, 3, 4 + nosuch(1) \\gset\n",
    "forgotten": "SELECT 1;\nDEALLOCATE ALL;\nSELECT 2;\nSELECT 1;\n",
}

WORKING = [
    Case("tpcb", "-t 5 -Dfoo=bla -c 2 -M simple -b t -C -n -v"),
    Case("vacuum", "-t 2 -b t"),
    Case("vacuum all", "-t 2 -b t -v"),
    Case("simple update", "-t 20 -c 5 -M extended -b si -C -n -s 1"),
    Case("select only", "-t 100 -c 7 -M prepared -b se"),
    Case("default", "-n"),
    Case("two builtins", "-n -t 30 -c 2 -b se@2 -b si --random-seed=7"),
    Case("three with zero", "-n -t 30 -b se@2 -b si@0 -b tpcb@1 --random-seed=7 -r"),
    Case("per command", "-n -t 3 -r"),
    Case("per command two", "-n -t 10 -r -S -N --random-seed=3"),
    Case("tries", "-n -t 3 --max-tries=5 -r"),
    Case("detailed", "-n -t 3 --failures-detailed -S -N --random-seed=3"),
    Case("rate", "-n -S -t 50 --rate=100000 --latency-limit=1000000 -c 2 -r"),
    Case("rate alone", "-n -S -t 50 --rate=5000"),
    Case("limit alone", "-n -S -t 10 --latency-limit=100000"),
    Case("threads", "-n -S -t 4 -c 4 -j 2"),
    Case("more threads than clients", "-n -S -t 4 -c 2 -j 9"),
    Case("time", "-n -S -T 1 -s 3"),
    # With equal seeds the last transaction is due at the same time, which ends the run.
    Case("progress", "-n -S -T 2 -P 1 --rate 50 --random-seed=12", unordered=True),
    Case("seeded", "-n -S -t 1 --random-seed=5432"),
    Case("seed of environment", "-n -S -t 1", env={"PGBENCH_RANDOM_SEED": "77"}),
    Case("no such database", "no-such-database"),
    Case("no such role", "-U nobody_at_all -S"),
    Case("stdin", "-n -t 2 -f -", stdin="SELECT 1;\n"),
    Case("verbose", "-n -t 3 --verbose-errors -S"),
    Case("exit on abort", "-n -t 3 --exit-on-abort", {"abort.sql": "SELECT 1/0;"}),
    Case("notices", "-n -t 2", {"n.sql": "DO $$ BEGIN RAISE NOTICE 'hello'; RAISE WARNING 'w' USING HINT='h'; END $$;"}),
    Case("weights of files", "-n -t 100 --random-seed=1", {"one.sql@1": "SELECT 1;", "two.sql@3": "SELECT 2;"}),
    Case("doubled quotes", "-n -t 1 -r", {"q.sql": "SELECT E'a''\\'; ' AS x;\nSELECT 'a''\\';\nSELECT 2;\n"}),
    Case("two statements", "-n -t 2 -r", {"m.sql": "SELECT 1 \\; SELECT 2;\nSELECT\n 3;\n"}),
    Case("shell", "-n -t 2", {"s.sql": "\\set x 3\n\\setshell y echo :x\n\\set z debug(:y)\n\\SHELL echo :y ::y\n"}),
    Case("sleeps", "-n -t 1 -r", {"s.sql": "\\set one 1.0\n\\sleep :one ms\n\\sleep 100 us\n\\sleep 0 s\n\\sleep 1ms"}),
    Case("latency limit", "-n -t 3 -L 1", {"s.sql": "\\sleep 5 ms\nSELECT 1;"}),
    # The first is begun in time even on a busy machine; the others are long overdue when it is done.
    Case("late", "-n -t 10 --rate=1000 --latency-limit=100 -r", {"s.sql": "\\sleep 400ms"}),
    Case("continued lines", "-n -t 1 -r", {"c.sql": "\\set x \\\n 1 + \\\n 2\n\\set y debug(:x)\nSELECT 1;\n"}),
    Case(
        "gset",
        "-n -t 1",
        {
            "g.sql": "SELECT \\gset\nSELECT 0 AS i0 \\gset\n\\set i debug(:i0)\nSELECT 1 AS i1, 2 AS i2 \\gset\n"
            "\\set i debug(:i1)\n\\set i debug(:i2)\nSELECT 3 AS i3 \\gset x_\n\\set i debug(:x_i3)\n"
            "SELECT 0 AS i4, 4 AS i4 \\gset\n\\set i debug(:i4)\n"
            "\\; \\; SELECT 0 AS i5 \\; SELECT 5 AS i5 \\; \\; \\gset\n\\set i debug(:i5)\n"
            "SELECT 6.5 AS d, true AS b, NULL AS n, 'text' AS s \\gset\n\\set i debug(:d)\n\\set i debug(:b)\n"
        },
    ),
    Case(
        "aset",
        "-n -t 1",
        {
            "a.sql": "\\; SELECT 6 AS i6 \\; SELECT 7 AS i7 \\; \\aset\nSELECT 8 AS i6 UNION SELECT 9 ORDER BY 1 DESC \\aset\n"
            "\\set i debug(:i6)\n\\set i debug(:i7)\n"
        },
    ),
    Case("gset extended", "-n -t 1 -M extended", {"g.sql": "SELECT 4 AS four \\gset\n\\set i debug(:four + 1)\n"}),
    Case("gset prepared", "-n -t 2 -M prepared", {"g.sql": "SELECT 4 AS four \\gset\n\\set i debug(:four + 1)\n"}),
    Case("substitution", "-n -t 1", {"v.sql": "\\set a NULL\n\\set b TRUE\n\\set d -54.21E-2\nSELECT :a, :b, :d, ':b';\n"}),
    Case(
        "variables shared",
        "-n -t 40 --random-seed=11",
        {"one.sql": "\\set shared 5\nSELECT 1;", "two.sql": "SELECT coalesce(:one_not_needed, 1) \\gset p_\nSELECT 1;"}
        | {"two.sql": "\\set mine 1\n\\set mine :mine + 1\nSELECT :mine;"},
    ),
    Case("function body", "-n -t 1", {
        "f.sql": "CREATE OR REPLACE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; SELECT 2; END;\n"
        "SELECT pg_temp.f();"
    }),
    Case("changed since it was prepared", "-n -t 2 -M prepared -Dn=0", {
        "c.sql": "\\if :n = 0\ncreate temp table gone (a int);\n\\else\n"
        "alter table gone rename a to b;\n\\endif\n\\set n :n + 1\nselect 1, 2, 3, 4 + a from gone;\n"
    }),
    Case("conditions", "-n -t 3 -r --random-seed=4", {
        "i.sql": "\\set x random(1, 3)\n\\if :x = 1\nSELECT 1;\n\\elif :x = 2\nSELECT 2;\n\\else\n\\if :x > 5\nSELECT 5;\n"
        "\\endif\nSELECT 3;\n\\endif\n"
    }),
    Case("pipeline", "-n -t 2 -M extended -r", {
        "p.sql": "\\startpipeline\n" + "select 1;\n" * 10 + "\\syncpipeline\nselect 2;\n\\endpipeline\n"
    }),
    Case("pipeline prepared", "-n -t 3 -c 2 -M prepared", {
        "p.sql": "\\startpipeline\nBEGIN ISOLATION LEVEL SERIALIZABLE;\n" + "select 1;\n" * 10 + "END;\n\\endpipeline\n"
    }),
    Case("leading comment", "-n -t 1 -r", {"c.sql": "/*+ hint */ select 1;\n/* lone */\n\\set x 1\nselect 2;"}),
    Case("only a comment", "-n -t 1 -r", {"c.sql": "/* lone */"}),
    Case("setshell of many lines", "-n -t 1", {"s.sql": "\\setshell y yes 1\n\\set z debug(:y)\n\\setshell a echo 99999999999\n\\set z debug(:a)\n"}),
    Case("settings of the environment", "-n -t 1", {
        "s.sql": "select (current_setting('timezone')||current_setting('datestyle')||current_setting('geqo'))::int;"
    }, env={"PGTZ": "Asia/Tokyo", "PGDATESTYLE": "German", "PGGEQO": "off"}),
    Case("conninfo in the environment", "-n -t 1 -S", env={"PGDATABASE": "dbname=twins"}),
    Case("empty port", "-n -t 1 -S -p ''"),
    Case("bad timeout", "-n -t 1 -S", env={"PGCONNECT_TIMEOUT": "x"}),
    Case("limit of nothing", "-n -t 3 -S -L 0.0001"),
    Case("large seed", "-n -t 3 -S --random-seed=99999999999999999999"),
    Case("null is null is null", "-n -t 1", {"s.sql": "\\set x debug(1 is null is null)\n"}),
    Case("debug", "-n -t 2 -S -N --debug --random-seed=3"),
    Case("debug of commands", "--debug -n -t 1", {
        "d.sql": "\\set x 1\n\\if :x > 0\n\\sleep 1 ms\nselect :x;\n\\else\n\\endif\n\\shell true\n"
    }),
    Case("debug prepared", "--debug -n -t 2 -M prepared", {"d.sql": "\\set x 1\nselect :x::int;\n"}),
    Case("empty query", "-n -t 2 -r", {"e.sql": ";\n\\;\nSELECT 1;"}),
    Case("log", "-n -S -t 5 -l --log-prefix=a"),
    Case("commands in capitals", "-n -t 1", {"c.sql": "\\SET x 1\n\\Sleep 1 MS\nSELECT :x;"}),
    Case("deadlock is not retried", "-n -t 1 --failures-detailed --verbose-errors -r", {
        "d.sql": "DO $$ BEGIN RAISE 'oh' USING ERRCODE = '40P01'; END $$;\n"
    }),
    Case("serialization is retried", "-n -t 2 --max-tries 3 --failures-detailed --verbose-errors -r", {
        "s.sql": "\\set r debug(random(1, 1000))\nBEGIN;\nDO $$ BEGIN RAISE 'oh' USING ERRCODE = '40001'; END $$;\nEND;\n"
    }, env={"PGBENCH_RANDOM_SEED": "5"}),
    Case("retried with success", "-n -t 3 --max-tries 3 --failures-detailed --verbose-errors -r -P 1", {
        "s.sql": "CREATE TEMP SEQUENCE IF NOT EXISTS s;\nSELECT nextval('s') AS n \\gset\nBEGIN;\n"
        "DO $$ BEGIN IF currval('s') % 3 <> 0 THEN RAISE 'oh' USING ERRCODE = '40001'; END IF; END $$;\nEND;\n"
    }),
    Case("one client aborts", "-n -t 5 -c 3", {
        "a.sql": "\\if :client_id = 1\nSELECT 1/0;\n\\endif\nSELECT 1;\n"
    }),
]  # fmt: skip

#: Before each initialization, ours and theirs.
GONE = "drop table if exists pgbench_accounts, pgbench_history, pgbench_tellers, pgbench_branches"

INITIALIZATION = [
    Case("plain", "-i"),
    Case("again", "-i -q", before=f"{GONE}; create table if not exists pgbench_accounts(x int)"),
    Case("scale", "-i -s 3"),
    Case("partitions", "-i --partitions=3 --partition-method=range -F 80 --unlogged-tables -q"),
    Case("hash", "-i --partitions=2 --partition-method=hash --foreign-keys -q"),
    Case("steps", "-i -I dtpvGvv --no-vacuum --foreign-keys --unlogged-tables --partitions=3"),
    Case("steps with blanks", "-i -I 'd t g p'"),
    Case("without tables", "-i -I g"),
    Case("drop", "-i -I d", before=f"{GONE}; create table if not exists pgbench_accounts(x int)"),
    Case("tables are there", "-i -I t", before=f"{GONE}; create table if not exists pgbench_history(x int)"),
    Case("no tablespace", "-i --tablespace=nowhere"),
    Case("no tables to run on", "-S -n"),
    Case("no tables to vacuum", "-t 1", {"one.sql": "SELECT 1;"}),
]  # fmt: skip


@pytest.mark.parametrize("case", named(COMMAND_LINE))
def test_the_command_line(case: Case, tmp_path: Path, pgbench: Path) -> None:
    compare(case, tmp_path, None, pgbench)


@pytest.mark.parametrize("case", named([Case(n, "", {"s.sql": t}) for n, t in SYNTAX.items()]))
def test_mistakes_in_scripts(case: Case, tmp_path: Path, pgbench: Path) -> None:
    compare(case, tmp_path, None, pgbench)


@pytest.mark.parametrize("case", named([Case(n, f"-n -t 1 {VARIABLES}", {"s.sql": t}) for n, t in RUNTIME.items()]))
def test_scripts_that_fail(case: Case, tmp_path: Path, pgbench: Path, server: Server, tpcb: str) -> None:
    compare(case, tmp_path, server, pgbench, tpcb)


@pytest.mark.parametrize("mode", ["extended", "prepared"])
@pytest.mark.parametrize("case", named([Case(n, f"-n -t 1 {VARIABLES}", {"s.sql": t}) for n, t in EXTENDED.items()]))
def test_scripts_that_fail_extended(
    case: Case, mode: str, tmp_path: Path, pgbench: Path, server: Server, tpcb: str
) -> None:
    compare(Case(case.name, f"{case.options} -M {mode}", case.scripts), tmp_path, server, pgbench, tpcb)


@pytest.mark.parametrize("case", named(WORKING))
def test_runs(case: Case, tmp_path: Path, pgbench: Path, server: Server, tpcb: str) -> None:
    compare(case, tmp_path, server, pgbench, tpcb)


@pytest.mark.parametrize("case", named(INITIALIZATION))
def test_initialization(case: Case, tmp_path: Path, pgbench: Path, server: Server, database: str) -> None:
    case.before = case.before or GONE
    compare(case, tmp_path, server, pgbench, database)
