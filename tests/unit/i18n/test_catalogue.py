"""The catalogues of messages: English and Chinese have the same ids and arguments, and each id is used."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pgdyno import i18n
from pgdyno.figures import BY_NAME, PERCENTILES
from pgdyno.message import Listed, Message, Name, counted, listed, message, plain_data, text_from
from pgdyno.report import outcomes
from pgdyno.report.cells import column_id
from pgdyno.units import Quantity, Share

from tests.support.source import nodes, parsed

PACKAGE = Path(__file__).parents[3] / "python" / "pgdyno"
CHINESE = re.compile("[\u3400-\u9fff]")


def trees() -> Iterator[ast.AST]:
    for path in PACKAGE.rglob("*.py"):
        yield from nodes(path)


def used() -> Iterator[tuple[str, set[str] | None]]:
    """Ids in the source, with the names of the arguments; None: they are given as a mapping."""
    for node in trees():
        if not (isinstance(node, ast.Call) and node.args):
            continue
        called, first = ast.unparse(node.func), node.args[0]
        if called == "counted" and isinstance(first, ast.Constant):
            yield from ((x, {"n"}) for x in (first.value, f"{first.value}-one"))
        elif called == "column" and isinstance(first, ast.Constant):
            own = next((ast.literal_eval(k.value) for k in node.keywords if k.arg == "id"), None)
            yield f"column-{own}" if own else column_id(first.value), set()
        elif called == "Setting":
            if len(node.args) > 2 and isinstance(node.args[2], ast.Constant):
                yield f"reason-{node.args[2].value}", set()
        elif called in ("message", "Message", "msg"):
            names = {k.arg or "" for k in node.keywords} if called != "Message" else None
            # Of arguments that are given as a mapping the names are not known here.
            names = None if names is None or "" in names else names
            whole = [x for x in ast.walk(first) if isinstance(x, ast.JoinedStr)]
            parts = {id(x) for joined in whole for x in joined.values}
            for part in ast.walk(first):
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and id(part) not in parts:
                    yield part.value, names


def put_together() -> set[str]:
    """Beginnings of ids that are put together: from a kind of whole, a confidence, a number of things."""
    return {
        str(node.values[0].value)
        for node in trees()
        if isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.Constant)
        and re.fullmatch(r"[a-z][a-z0-9-]*-", str(node.values[0].value))
    }  # fmt: skip


def facts() -> set[str]:
    """Names of facts in the causes."""
    found = set()
    for path in (PACKAGE / "diagnosis").rglob("*.py"):
        for node in nodes(path):
            if (
                isinstance(node, ast.Call)
                and ast.unparse(node.func) == "Fact"
                and isinstance(node.args[0], ast.Constant)
            ):
                found.add(f"fact-{node.args[0].value}")
    return found


def test_both_languages_have_the_same_ids_and_arguments() -> None:
    english = i18n.catalogue("en")
    # English help texts stand where commands and options are declared (test_help.py).
    chinese = {k: v for k, v in i18n.catalogue("zh").items() if not re.match("(help|option)(-|$)", k)}
    assert list(english) == list(chinese)
    differ = {k: (i18n.arguments_of(t), i18n.arguments_of(chinese[k])) for k, t in english.items()}
    assert {k: v for k, v in differ.items() if v[0] != v[1]} == {}


def test_each_language_is_written_in_its_own_words() -> None:
    assert [k for k, text in i18n.catalogue("en").items() if CHINESE.search(text)] == []
    plain = {k: re.sub(r"\{.*?\}", "", text) for k, text in i18n.catalogue("zh").items()}
    assert [k for k, text in plain.items() if re.search(r"[a-z]+ [a-z]+ [a-z]+ [a-z]+", text)] == []


def test_each_id_is_there_and_used_with_its_arguments() -> None:
    texts, seen = i18n.catalogue("en"), set()
    for id_, names in used():
        if id_.startswith("help-"):
            assert id_ in i18n.catalogue("zh")
            continue
        if not re.fullmatch(r"[a-z][a-z0-9-]+", id_):
            continue
        seen.add(id_)
        assert id_ in texts, id_
        assert names is None or i18n.arguments_of(texts[id_]) <= names, (id_, names)
    # Ids that come from a table of names, or that a page's template has.
    files = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.j2")]
    quoted = set(re.findall(r"[\"']([a-z][a-z0-9-]+)[\"']", "\n".join(p.read_text() for p in files)))
    quoted |= set(re.findall("<(new-[a-z-]+)>", (PACKAGE / "cli" / "new.py").read_text()))
    begun = tuple(put_together() | {"column-", "probe-", "condition-", "job-"})
    assert {k for k in set(texts) - seen - facts() - quoted if not k.startswith(begun)} == set()
    assert {k for k in texts if k.startswith("fact-")} == facts()


def column_keys(tree: ast.AST) -> Iterator[tuple[ast.Call, list[str] | None]]:
    """Calls of `column` by a key, with its possible values; None where they are not to be seen in the source."""
    tuples = {
        ast.unparse(node.targets[0]): node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)
    }
    values: dict[int, ast.expr] = {}
    for node in ast.walk(tree):
        loops = getattr(node, "generators", [node] if isinstance(node, ast.For) else [])
        for loop in loops:
            target, over = ast.unparse(loop.target), tuples.get(ast.unparse(loop.iter), loop.iter)
            values |= {id(x): over for x in ast.walk(node) if isinstance(x, ast.Name) and x.id == target}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "column" and node.args:
            key = node.args[0]
            given = values.get(id(key), key)
            texts = given.elts if isinstance(given, ast.Tuple) else [given]
            if any(k.arg == "id" for k in node.keywords):
                continue
            if all(isinstance(x, ast.Constant) for x in texts):
                yield node, [str(ast.literal_eval(x)) for x in texts]
            else:
                yield node, None


def test_each_column_has_a_title_in_the_catalogues() -> None:
    english, unseen = i18n.catalogue("en"), []
    for path in PACKAGE.rglob("*.py"):
        for node, keys in column_keys(parsed(path)):
            if keys is None:
                unseen.append(ast.unparse(node.args[0]))
            assert [k for k in keys or [] if column_id(k) not in english] == [], f"{path}:{node.lineno}"
    # Columns of figures, which have their own list.
    assert set(unseen) == {"f.heading", "TPS.heading", "MEAN.heading", "f'{f.name} ±'"}
    shown = [*PERCENTILES, *outcomes._OF_A_TRIAL, BY_NAME["TPS"], BY_NAME["mean"]]
    assert [f for f in shown if column_id(f.heading) not in english] == []
    assert [f for f in PERCENTILES if column_id(f"{f.name} ±") not in english] == []


def test_a_message_is_written_in_each_language() -> None:
    share = Share(0.34, 0.31, 0.37)
    blocked = message("row-locks-statement", share=Quantity(0.9, "share"), statement=Name("update t -- read-only"))
    m = message("row-locks", share=share, deadlocks=None, waiting=blocked)
    assert i18n.text(m) == (
        "Transactions wait for each other's row locks during 34% (31 to 37%) of the clients' time; 90% of the waiting "
        "statements are: update t -- read-only."
    )
    # What the user wrote stays, whatever it looks like.
    assert i18n.text(m, "zh") == (
        "事务互相等待行锁，占客户端时间的 34%（31 至 37%）；等待的语句中 90% 为：update t -- read-only。"
    )
    assert m.as_json()["args"]["share"] == {"mean": 0.34, "low": 0.31, "high": 0.37}
    with pytest.raises(KeyError):
        i18n.text(Message("row-locks", {}))
    with pytest.raises(KeyError):
        i18n.text(message("moon-phase"))


def test_texts_in_a_row() -> None:
    parts = listed([Name("w"), None, counted("n-clients", 1), counted("n-clients", 8)])
    assert isinstance(parts, Listed)
    assert (i18n.text(parts), i18n.text(parts, "zh")) == ("w, 1 client, 8 clients", "w，1 个连接，8 个连接")
    # What its author wrote in Chinese is shown in Chinese.
    assert i18n.text(Name("write QPS", "写 QPS"), "zh") == "写 QPS" != i18n.text(Name("write QPS"), "zh")


@pytest.mark.parametrize(
    ("value", "unit", "english", "chinese"),
    [
        (0.0345, "share", "3.5%", "3.5%"),
        (0.345, "%", "34.5%", "34.5%"),
        (1_234_000, "ms", "1.23 ms", "1.23 毫秒"),
        (2e6, "ns", "2.00 ms", "2.00 毫秒"),
        (3e10, "ns", "30 s", "30 秒"),
        (7200, "seconds", "2 h", "2 小时"),
        (2048, "bytes", "2.0 KiB", "2.0 KiB"),
        (12e6, "MB/s", "12 MB/s", "12 MB/s"),
        (1234.5, "/s", "1,234/s", "1,234/s"),
        (12345, "count", "12,345", "12,345"),
    ],
)
def test_quantities(value: float, unit: object, english: str, chinese: str) -> None:
    q = Quantity(value, unit)  # type: ignore[arg-type]
    assert (i18n.quantity(q), i18n.quantity(q, "zh")) == (english, chinese)


def test_texts_are_made_again_of_plain_data() -> None:
    inner = listed([Name("a -- b"), 3, Share(0.3, 0.2, 0.4), None, Quantity(1.5, "fixed", 2)], "semicolon")
    m = message("row-locks", share=Share(0.34, 0.31, 0.37), deadlocks=None, waiting=inner)
    assert text_from(json.loads(json.dumps(plain_data(m)))) == m
    assert text_from("plain") == Name("plain")
    for damaged in (3, {"id": "x"}, {"nothing": 1}, [1]):
        with pytest.raises((ValueError, KeyError, TypeError)):
            text_from(damaged)


@pytest.mark.parametrize(("rate", "text"), [(1.2345e9, "1,234 MB/s"), (240e6, "240 MB/s"), (12.345e6, "12.3 MB/s")])
def test_speeds_have_no_exponents(rate: float, text: str) -> None:
    assert i18n.text(message("load-writing", speed=Quantity(rate, "bytes/s"), disk=None)).startswith(
        f"writing alone: {text},"
    )
