"""Each sentence and remedy that a cause can write has its Chinese."""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path

import pytest
from pgdyno import diagnosis
from pgdyno.report import findings_zh, words
from pgdyno.report.findings import FindingText

_CAUSES = sorted((Path(diagnosis.__file__).parent / "causes").glob("[a-z]*.py"))
#: What stands in the holes: nothing, a figure, a figure with its interval.
_FILLED = ("", "12%", "34% (31 to 37%)")


def _texts(node: ast.expr, filled: str) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    assert isinstance(node, ast.JoinedStr), ast.dump(node)
    return "".join(str(v.value) if isinstance(v, ast.Constant) else filled for v in node.values)


def _findings(path: Path) -> list[ast.Call]:
    tree = ast.parse(path.read_text())
    return [n for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func) == "e.finding"]


def _facts(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func) == "Fact"]
    return {_texts(c.args[0], "sda") for c in calls}


@pytest.mark.parametrize("path", [p for p in _CAUSES if _findings(p)], ids=lambda p: p.stem)
def test_a_cause_is_told_in_chinese(path: Path) -> None:
    for call in _findings(path):
        sentences = [_texts(call.args[1], filled) for filled in _FILLED]
        assert any(findings_zh.sentence(s) for s in sentences), sentences
        remedies = [_texts(call.args[5], filled) for filled in _FILLED]
        assert any(findings_zh.remedy(s) != s for s in remedies), remedies
    for name in _facts(path):
        assert findings_zh.facts(f"{name} 3 ms") != f"{name} 3 ms" or name.lower() in ("steal", "postgresql", "pgdyno")


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        (
            "Commits wait for WAL to reach the disk 25% (20 to 30%) of the clients' time; 2.12 transactions a sync, which "
            "takes 0.226 ms.",
            "提交等待 WAL 落盘,占客户端时间的 25%(20 至 30%);每次同步 2.12 个事务,耗时 0.226 毫秒。",
        ),
        (
            "Autovacuum (t) takes 13% (9.1 to 17%) of the throughput: 12 runs were logged, its workers use 40% of a "
            "processor and move 3.4 MB/s.",
            "autovacuum (t)占去吞吐量的 13%(9.1 至 17%):日志中有 12 次,其工作进程使用一个处理器的 40%,读写 3.4 MB/s。",
        ),
        (
            "Whole pages after checkpoints cost up to 60% (50 to 70%) of the clients' time: 90% of the WAL is pages "
            "written whole at their first change after each of 4 checkpoints (8 kB of WAL a transaction).",
            "检查点后的整页写入至多占客户端时间的 60%(50 至 70%):WAL 的 90% 是 4 次检查点之后各页首次修改时写入的整页(每事务 WAL 8 kB)。",
        ),
        (
            "12% of the pages were not in shared buffers (62% of them of public.stock), and reading them takes 20% of the "
            "clients' time; they came from the kernel's page cache.",
            "12% 的页不在 shared_buffers 中(其中 62% 属于 public.stock),读取它们占客户端时间的 20%;它们来自内核页缓存。",
        ),
        (
            "The storage is throttled: 150 requests/s, within 2.1% from sample to sample, while clients wait for it 95% "
            "(93 to 97%) of their time; a request waits 26 ms, 52 times as long as loop0 itself takes.",
            "存储被限速:150 requests/s,各次采样相差 2.1% 以内,客户端为此等待 95%(93 至 97%) 的时间;一个请求等待 26 毫秒,是 loop0 自身耗时的 52 倍。",
        ),
    ],
)
def test_figures_stay_where_they_belong(english: str, chinese: str) -> None:
    assert findings_zh.sentence(english) == chinese


def test_a_finding_of_an_unknown_cause_is_still_told() -> None:
    told = FindingText(
        "moon-phase", "The moon is full.", "12% (10 to 14%) of the clients' time; confidence low", "", "Wait."
    )
    found = words._told(told)
    assert found.sentence.startswith("moon-phase") and "10 至 14%" in found.sentence
    assert found.remedy == "Wait." and "可信度低" in found.cost
    assert not any(re.search(r"\{\d*\}", text) for text in itertools.chain([found.sentence, found.remedy]))


def test_a_configuration_is_named_in_chinese() -> None:
    assert words._place("read-only, 10% hot, 2 clients") == "只读，热数据 10%，2 个连接"
    assert words._place("w, synchronous_commit = on, 1 client") == "w，synchronous_commit = on，1 个连接"
