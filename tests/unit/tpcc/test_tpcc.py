"""TPC-C without a server: what is refused, and how figures are put together."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pgdyno
import pytest
from pgdyno import _core, engine
from pgdyno.errors import SpecError, UsageError
from pgdyno.load.dataset import Dataset
from pgdyno.message import Name, listed, message
from pgdyno.report import sections, tpcc, tpcc_ranges
from pgdyno.report.tpcc import Rates, kind_of
from pgdyno.run.planning.prepared import prepare
from pgdyno.run.planning.workloads import compiled, listing
from pgdyno.spec import load
from pgdyno.spec.experiment import Tpcc
from pgdyno.store import hlog
from pgdyno.tpcc.conditions import CONSISTENCY, POPULATION
from pgdyno.tpcc.schema import TABLES, foreign_keys, named, signature, table

from tests.support import reports
from tests.support.mistakes import mistakes

ROOT = Path(pgdyno.__file__).parent


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("begin isolation level serializable", "other"),
        ("commit", "other"),
        ("rollback", "other"),
        ("select c_id from tpcc_customer for update", "read"),
        ("update tpcc_stock set s_quantity = 1", "write"),
        ("delete from tpcc_new_order", "write"),
        ("select tpcc_new_order_transaction($1)", "write"),
        ("select tpcc_order_line_delivery($1, $2)", "write"),
        ("select tpcc_orders_status($1)", "read"),
        ("select tpcc_stock3_level($1)", "read"),
        ("select tpcc_history2_payment($1)", "write"),
        ("BEGIN;", "other"),
        ("END;", "other"),
        ("START TRANSACTION", "other"),
        ("/* of an ORM */ select 1;", "read"),
        ("with x as (select 1) select * from x", "read"),
        ("with x as (delete from t returning id) select * from x", "write"),
        ("INSERT INTO t VALUES (1);", "write"),
        ("", "write"),
    ],
)
def test_statements_are_of_sysbenchs_kinds(sql: str, kind: str) -> None:
    assert kind_of(sql) == kind


def test_every_table_has_a_section_of_the_page() -> None:
    """But for the table of trials, which is the page's own; what is in none is not on the page."""
    made = set()
    # Comparisons and histories have pages of their own.
    for path in (p for p in (ROOT / "report").glob("*.py") if not p.name.endswith("_page.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Table" and node.args:
                made |= {key.value for key in node.args[:1] if isinstance(key, ast.Constant)}
    placed = {t for _, _, open_, folded in sections._PLAN for t in (*open_, *folded)}
    assert made - placed == {"trials"}, made - placed
    assert placed - made <= {"rows", "qps", "capacity", "storage", "syncs"}, placed - made


def _measured(waits: float, seconds: dict[str, float], counts: dict[str, int]) -> tuple[Any, Any]:
    """A run of one configuration, of which each transaction took so long."""
    histograms = []
    for name in counts:
        h = _core.Histogram()
        for _ in range(counts[name]):
            h.record(round(seconds.get(name, 0.1) * 1e9))
        histograms.append(h)
    scripts = [SimpleNamespace(name=name, latency=SimpleNamespace(count=n)) for name, n in counts.items()]
    group = SimpleNamespace(key="k", workload="w", clients=10, variant="", varied={}, trials=[])
    data = SimpleNamespace(
        pooled_scripts={"k": scripts},
        checks={},
        histogram=lambda tag, _: histograms[[hlog.script(n) for n in range(5)].index(tag)],
    )
    rates = Rates(group, 100, 99, 220, 0.1, 1, 1, 1, 0, waits=waits, warehouses=1, of_a_set=1)  # type: ignore[arg-type]
    return data, (group, rates)


def test_figures_with_waits_stand_in_a_table_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {"new-order": 10, "payment": 10, "order-status": 1, "delivery": 1, "stock-level": 1}
    for waits, with_, without in ((0.0, 0, 1), (1.0, 1, 0), (0.1, 1, 0)):
        data, (group, rates) = _measured(waits, {}, counts)
        monkeypatch.setattr(tpcc, "rates", lambda *_, found=rates: found)
        monkeypatch.setattr(tpcc, "variant_column", lambda _: "")
        run: Any = SimpleNamespace(data=data, groups=[group])
        plain, paced = tpcc.figures(run), tpcc.paced(run)
        assert (len(plain.cells), len(paced.cells)) == (without, with_)
        assert "waits" not in plain.keys and "waits" in paced.keys
        assert all(len(row) == len(t.columns) for t in (plain, paced) for row in t.cells)


@pytest.mark.parametrize(
    ("seconds", "less", "broken"),
    [
        ({}, {}, []),
        # Nine of ten: 5 s, and of stock-level 20 s.
        ({"new-order": 5.5, "stock-level": 19.0}, {}, ["new-order"]),
        ({"stock-level": 21.0, "delivery": 81.0}, {}, ["delivery", "stock-level"]),
        # Less than 43% payments, beyond the card that each of ten clients may still hold.
        ({}, {"payment": 300}, ["payment"]),
        ({}, {"payment": 425}, []),
    ],
)
def test_the_standards_limits_are_met_or_not(
    monkeypatch: pytest.MonkeyPatch, seconds: dict[str, float], less: dict[str, int], broken: list[str]
) -> None:
    counts = {"new-order": 440, "payment": 440, "order-status": 44, "delivery": 44, "stock-level": 44} | less
    data, (group, rates) = _measured(1.0, seconds, counts)
    monkeypatch.setattr(tpcc, "rates", lambda *_: rates)
    monkeypatch.setattr(tpcc, "variant_column", lambda _: "")
    found = tpcc.limits(SimpleNamespace(data=data, groups=[group]))
    at = found.keys.index("transaction")
    assert [row[at] for row in found.texts() if row[-1] == "not met"] == broken
    # Of them the answer tells as well.
    first, *missed = tpcc.sentences(SimpleNamespace(data=data, groups=[group]))
    assert reports.ids([first]) == ["answer-new-orders"]
    named = listed(map(Name, broken), "list")
    assert missed == ([message("answer-limits-missed", what=named)] if broken else [])


def test_a_mix_of_a_few_cards_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {"new-order": 15, "payment": 10, "order-status": 2, "delivery": 2, "stock-level": 2}
    data, (group, rates) = _measured(1.0, {}, counts)
    monkeypatch.setattr(tpcc, "rates", lambda *_: rates)
    monkeypatch.setattr(tpcc, "variant_column", lambda _: "")
    words = {row[2]: row[-1] for row in tpcc.limits(SimpleNamespace(data=data, groups=[group])).texts()}
    assert words["payment"] == "too short to say" and words["new-order"] == words["delivery"] == "met"


@pytest.mark.parametrize(
    ("change", "verdicts"),
    [
        ({}, {}),
        ({"tpcc_remote_order_lines": 11_000}, {"order-lines-of-other-warehouses": "not-met"}),
        ({"tpcc_order_lines": 960_000}, {}),
        ({"tpcc_order_lines": 940_000, "tpcc_remote_order_lines": 9_400}, {"order-lines-of-an-order": "not-met"}),
        ({"tpcc_payments_by_name": 56_500}, {"payments-by-last-name": "not-met"}),
        ({"tpcc_skipped_deliveries": 101}, {"deliveries-that-skipped-a-district": "to-report"}),
        # So few say nothing; and one of them may be skipped.
        (
            {"tpcc_new_orders": 150, "tpcc_rolled_back_new_orders": 3, "tpcc_order_lines": 1400,
             "tpcc_remote_order_lines": 18, "tpcc_deliveries": 15, "tpcc_skipped_deliveries": 1},
            {"new-orders-rolled-back": "too-short", "order-lines-of-an-order": "too-short",
             "order-lines-of-other-warehouses": "too-short"},
        ),
        ({"tpcc_deliveries": 15, "tpcc_skipped_deliveries": 2},
         {"deliveries-that-skipped-a-district": "to-report"}),
    ],
)  # fmt: skip
def test_what_is_drawn_lies_in_the_standards_ranges(change: dict[str, float], verdicts: dict[str, str]) -> None:
    drawn = {
        "new_orders": 100_000, "rolled_back_new_orders": 1_000, "order_lines": 1_000_000, "remote_order_lines": 10_000,
        "payments": 100_000, "remote_payments": 15_000, "payments_by_name": 60_000, "order_statuses": 10_000,
        "order_statuses_by_name": 6_000, "deliveries": 10_000, "skipped_deliveries": 0,
    }  # fmt: skip
    activity = {f"tpcc_{name}": float(n) for name, n in drawn.items()} | change
    group: Any = SimpleNamespace(trials=[SimpleNamespace(activity=activity), SimpleNamespace(activity={})])
    found = tpcc_ranges.ranges(group, 10)
    assert len(found) == 7 and {r.name: r.verdict for r in found if r.verdict != "met"} == verdicts
    assert [m.id for m in tpcc_ranges.missed(found)] == [
        f"range-{name}" for name, verdict in verdicts.items() if verdict == "not-met"
    ]
    # With one warehouse in a set nothing is of another.
    assert not any("other" in r.name for r in tpcc_ranges.ranges(group, 1))
    nothing: Any = SimpleNamespace(trials=[])
    assert tpcc_ranges.ranges(nothing, 10) == []


def test_names_of_sets() -> None:
    assert (table("stock", 0, 1), table("stock", 1, 3)) == ("tpcc_stock", "tpcc_stock2")
    for condition in [*CONSISTENCY, *POPULATION]:
        text = named(condition.sql, 1, 2)
        assert not any("{" + t + "}" in text for t in TABLES)
    assert len(foreign_keys(0, 1)) == 4 + 10 and all("tpcc_" in k for k in foreign_keys(0, 1))


def test_functions_are_known_by_name_and_arguments() -> None:
    functions = _core.tpcc_functions(1, 2)
    assert signature(functions[0]) == "tpcc_new_order2_transaction(int, int, int, int[], int[], int[], boolean)"
    assert signature(functions[1]) == "tpcc_history2_payment(int, int, int, int, int, text, numeric)"
    assert len({signature(f) for f in functions}) == 5


def test_the_dataset_says_what_it_is_and_what_it_cannot_be() -> None:
    assert Dataset("tpcc", 10).name == "tpcc warehouses=10"
    d = Dataset("tpcc", 10, tables_wanted=2, seed=3, foreign_keys=True, check=False)
    assert d.name == "tpcc warehouses=10 sets=2 seed=3 foreign_keys"
    # Whether it is checked is no part of what it is.
    assert d == Dataset("tpcc", 10, tables_wanted=2, seed=3, foreign_keys=True)
    for bad in (
        {"kind": "tpcc", "size": 0},
        {"kind": "tpcc", "size": 1, "tables_wanted": 5000},
        {"kind": "tpcb", "size": 1, "seed": 2},
        {"kind": "pk", "size": 1, "foreign_keys": True},
    ):
        with pytest.raises(UsageError):
            Dataset(**bad)  # type: ignore[arg-type]


def test_a_thousand_warehouses_are_a_hundred_gigabytes() -> None:
    d = Dataset("tpcc", 1000)
    assert 100e9 < d.heap_bytes + d.key_bytes < 110e9
    assert {t.name: t.end for t in d.tables}["tpcc_stock"] == 100_000_000


HEAD = 'name = "t"\ntitle = "t"\n[dataset]\n{dataset}\n[workloads.w]\ntpcc = {{ {tpcc} }}\n{rest}\n'


def parsed(dataset: str = 'kind = "tpcc"\nwarehouses = 2', tpcc: str = "", rest: str = "") -> object:
    return load.parse(HEAD.format(dataset=dataset, tpcc=tpcc, rest=rest), "t.toml")


def test_experiments_take_the_words_of_the_trade() -> None:
    e = load.parse(HEAD.format(dataset='kind = "tpcc"\nwarehouses = 7\nsets = 3', tpcc="", rest=""), "t.toml")
    d = e.all_datasets["dataset"]
    assert (d.scale, d.tables) == (7, 3)
    assert type(e).model_validate(e.model_dump()) == e


@pytest.mark.parametrize(
    ("given", "id"),
    [
        ({"tpcc": 'round_trips = "telepathy"'}, "spec-one-of"),
        ({"tpcc": "mix = [1, 1, 1]"}, "spec-more-items"),
        ({"tpcc": "mix = [0, 0, 0, 0, 0]"}, "spec-mix-zero"),
        ({"tpcc": "waits = 1.0, mix = [1, 1, 1, 1, 1]"}, "spec-mix-waits"),
        ({"tpcc": "waits = -1"}, "spec-at-least"),
        ({"dataset": 'kind = "tpcc"\nwarehouses = 2\nscale = 3'}, "spec-same-meaning"),
        ({"dataset": 'kind = "tpcb"\nsets = 2'}, "spec-of-kinds"),
        ({"dataset": 'kind = "tpcb"\nseed = 2'}, "spec-of-kinds"),
        ({"rest": '[[workloads.w.scripts]]\ntext = "select 1;"'}, "spec-either"),
        ({"rest": "[run]\nmax_tries = 0"}, "spec-at-least"),
    ],
)
def test_mistakes_are_named(given: dict[str, str], id: str) -> None:
    with pytest.raises(SpecError) as e:
        parsed(**given)
    assert id in mistakes(e.value).values(), mistakes(e.value)


def test_what_is_varied_overrides_what_is_written() -> None:
    workload = compiled([], {"warehouses": "3", "round_trips": "functions", "isolation": "serializable"}, Tpcc())
    sql = [c.sql for c in workload.commands]
    assert "begin isolation level serializable" in sql and any("tpcc_new_order_transaction" in s for s in sql)
    with pytest.raises(SpecError):
        compiled([], {"round_trips": "pigeons"}, Tpcc())


def test_samples_are_statements_with_values() -> None:
    workload = _core.Workload.tpcc([engine.Tpcc(warehouses=2)])
    found = workload.sample(0, 7)
    assert found[0][1:] == ("begin", "begin") and found[-1][2] == "commit"
    assert all("$" not in whole for _, _, whole in found)
    commands = [c for c in workload.commands if c.script == 0]
    assert all(commands[n].sql == text for n, text, _ in found)


def test_listings_are_what_runs_keep() -> None:
    texts = listing(Tpcc(mix=[1, 2, 3, 4, 5]))
    assert [w for _, _, w in texts] == [1, 2, 3, 4, 5]
    assert "-- name: payment: insert history\n" in texts[1][1]
    last_load, last_run, customer, item = _core.tpcc_constants(1)
    assert 65 <= abs(last_load - last_run) <= 119 and customer <= 1023 and item <= 8191


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"tpcc": "waits = 1.0", "rest": "[axes]\nclients = [21]"}, "10 terminals of each of 2 warehouses"),
        ({"tpcc": "waits = 1.0", "rest": "[axes]\nclients = [4]\n[run]\nrate = 5.0"}, "closed loop"),
        ({"tpcc": "waits = 1.0", "rest": '[axes]\nclients = [4]\n[run]\norder = "duet"'}, "duet"),
        ({"rest": "[axes]\nvariables = { waits = [0.0, 1.0] }"}, "with waits and without is not comparable"),
        ({"tpcc": 'round_trips = "pipelined"', "rest": '[run]\nprotocol = "simple"'}, "no pipelines"),
        ({"rest": '[axes]\nvariables = { isolation = ["chaos"] }'}, "axes.variables.isolation"),
        ({"dataset": 'kind = "tpcb"'}, "needs its own tables"),
    ],
)
def test_what_cannot_be_run_is_said_before_anything_is_made(tmp_path: Path, given: dict[str, str], words: str) -> None:
    d = {"dataset": 'kind = "tpcc"\nwarehouses = 2', "tpcc": "", "rest": ""} | given
    (tmp_path / "t.toml").write_text(HEAD.format(**d))
    with pytest.raises(SpecError) as e:
        prepare(str(tmp_path / "t.toml"), lambda x: (x, []), tmp_path)
    assert words in str(e.value)
