"""Pages that are made from the catalogues: a page for each cause of a bottleneck, and the list of all errors."""

from __future__ import annotations

import ast
import json
import re
import textwrap
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from pgdyno import i18n
from pgdyno.diagnosis.cause import Cause
from pgdyno.diagnosis.causes import every_cause

from tests.support import causes as injections

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python" / "pgdyno"
GUIDE = ROOT / "docs" / "guide" / "causes"
#: Written by `benches/causes.py --json`.
VALIDATED = ROOT / "benches" / "results" / "causes.json"
#: The same of servers under a load that is not pgdyno's.
OBSERVED = ROOT / "benches" / "results" / "observed.json"
_WIDTH = 118
#: Headings and sentences of the pages that no program prints.
_TEXTS = {
    "en": {
        "causes": "Causes",
        "index": "What `pgdyno explain` and the report can name. A *limit* is met by every server in the end; an "
        "*avoidable* cause need not be there.",
        "cause": "cause", "name": "name", "kind": "kind", "limit": "limit", "trouble": "avoidable",
        "other": "中文", "all": "All causes",
        "seen": "How it is seen", "cost": "How its cost is measured", "told": "What the report says",
        "try": "What to do", "validated": "How it was validated",
        "made": "made", "first": "named first", "also": "then", "none": "nothing", "not": "instead of",
        "page": "`benches/causes.py` makes the cause on a real server and notes what is named first. "
        "One round on two cores:",
        "observed": "`benches/observing.py` makes the cause under the load of pgbench, observes the server for 16 s, "
        "and notes what is named first. One round on two cores:",
        "how": "How \"{name}\" is made ({clients}, {seconds:g} s)", "clients": "{n} clients", "client": "1 client",
        "tpcc": "TPC-C with {n} warehouses",
        "again": "Meanwhile another session executes `{sql}` every {every_s:g} s.",
        "always": "Meanwhile another session executes `{sql}` again and again.",
        "once": "After {after_s:g} s another session executes `{sql}`.",
        "held": "After {after_s:g} s another session begins a transaction with `{sql}` and leaves it open.",
        "quota": "The client may use {n:g} of a CPU.", "server_cpus": "The server may use {n:g} of a CPU.",
        "delay": "A proxy between client and server delays each message by {n} ms.",
        "holds_back": "A proxy lets each message wait until the one before has been acknowledged.",
        "_throttled": "The device under the data takes 150 writes a second.",
        "_slow_checkpoints": "The device under the data takes 24 MiB/s, and another session executes `checkpoint` "
        "every 4 s.",
        "_slow_writes": "The device under the data takes 48 MiB/s.",
        "_burners": "Meanwhile two other processes for each CPU compute without a pause.",
        "_standby": "A synchronous standby (`pg_receivewal`) confirms WAL once a second.",
        "_sleeping_trigger": "A trigger sleeps for 20 ms in one of 100 updates.",
        "_frozen": "The backends of the clients are stopped twice (SIGSTOP, then SIGCONT).",
        "on_slow_disk": "The data lie on a disk that is slow to flush.",
        "never": "It is not made by the bench: what it names is what no rule explains.",
        "summary": "The bench makes {made} scenarios of these causes. In one round of each, on two cores with nothing "
        "else at work, the cause was named first in all; so at least {least} come first (95% confidence, two-sided). "
        "Of {calm} calm runs none had an avoidable cause of high confidence (limits are always there); so fewer than "
        "46% have one. Of the last 19 causes drawn at random, 18 were named first ([all results](../../blind.md)). "
        "Avoidable causes come before limits; costs overlap, so they can add up to more than 100%.",
        "notes": "Slow commits are made by a disk behind FUSE whose flushes take longer, a slow network by a proxy "
        "that delays each message, a throttled device and a CPU quota by limits of cgroups, a standby by "
        "pg_receivewal. A run beside which other programs were at work is made again. What was not sampled is not "
        "found; a wait without a rule is `other-waits`. The rules: [Diagnosis](../../math.md#diagnosis).",
        "cut": "Names and figures are shown as …",
        "errors": "Errors",
        "errors-intro": "Every error of pgdyno with its remedy, by its text. Names and figures are shown as …",
    },
    "zh": {
        "causes": "原因",
        "index": "`pgdyno explain` 和报告可能指出的原因。"
        "“固有瓶颈”是每台服务器最终都会遇到的；“可避免的问题”可以消除。",
        "cause": "原因", "name": "名称", "kind": "类别", "limit": "固有瓶颈", "trouble": "可避免的问题",
        "other": "English", "all": "全部原因",
        "seen": "如何识别", "cost": "影响如何测量", "told": "报告中的说法",
        "try": "如何处理", "validated": "如何验证",
        "made": "注入", "first": "首先指出", "also": "其次", "none": "无", "not": "而不是",
        "page": "`benches/causes.py` 在真实服务器上制造该原因，并记录首先被指出的原因。双核机器，一轮：",
        "observed": "`benches/observing.py` 在 pgbench 的负载下制造该原因，观察服务器 16 秒，"
        "并记录首先被指出的原因。双核机器，一轮：",
        "how": "“{name}”的注入方法（{clients}，{seconds:g} 秒）", "clients": "{n} 个客户端", "client": "1 个客户端",
        "tpcc": "{n} 个仓库的 TPC-C",
        "again": "同时，另一个会话每 {every_s:g} 秒执行一次 `{sql}`。",
        "always": "同时，另一个会话反复执行 `{sql}`。",
        "once": "{after_s:g} 秒后，另一个会话执行 `{sql}`。",
        "held": "{after_s:g} 秒后，另一个会话以 `{sql}` 开始一个事务并保持打开。",
        "quota": "客户端只能使用 {n:g} 个 CPU。", "server_cpus": "服务器只能使用 {n:g} 个 CPU。",
        "delay": "客户端与服务器之间的代理把每条消息延迟 {n} 毫秒。",
        "holds_back": "代理让每条消息等到前一条被确认之后才转发。",
        "_throttled": "数据所在设备每秒只能写 150 次。",
        "_slow_checkpoints": "数据所在设备每秒只能写 24 MiB，另一个会话每 4 秒执行一次 `checkpoint`。",
        "_slow_writes": "数据所在设备每秒只能写 48 MiB。",
        "_burners": "同时，每个 CPU 上有两个其他进程不停计算。",
        "_standby": "同步备库（`pg_receivewal`）每秒只确认一次 WAL。",
        "_sleeping_trigger": "触发器在 1% 的更新中休眠 20 毫秒。",
        "_frozen": "客户端的后端进程两次被暂停（SIGSTOP，然后 SIGCONT）。",
        "on_slow_disk": "数据位于刷盘很慢的磁盘上。",
        "never": "基准不制造它：它指的是没有规则能解释的情况。",
        "summary": "基准制造了这些原因的 {made} 种情形，各一轮都排在第一位（双核，无其他负载）。"
        "由此推断，同类原因排在第一位的概率不低于 {least}（95% 置信，双侧）。"
        "{calm} 次无注入的对照运行没有报告高可信度的可避免原因"
        "（固有瓶颈总是存在），误报率上限为 46%。"
        "最近随机抽取的 19 个问题中 18 个排在第一位（[全部结果](../../blind.md)）。"
        "可避免的原因排在固有瓶颈之前；影响可以重叠，合计可超过 100%。",
        "notes": "慢提交由 FUSE 后面刷盘变慢的磁盘制造，慢网络由延迟每条消息的代理制造，"
        "限速设备和 CPU 配额由 cgroup 限制制造，备库由 pg_receivewal 制造。运行时若有其他程序工作则重做。"
        "没有采样的就不会被发现；没有规则的等待归入 `other-waits`。规则和公式见 [Diagnosis](../../math.md#diagnosis)。",
        "cut": "名称和数值以 … 表示",
        "errors": "错误",
        "errors-intro": "pgdyno 的全部错误及处理办法，按文字排列。名称和数值以 … 表示。",
    },
}  # fmt: skip


def shown(text: str) -> str:
    """Return a text of the catalogues with its arguments as dots."""
    return re.sub(r"(?:…)+", "…", re.sub(r"\{\s*\"([^\"]*)\"\s*\}", r"\1", re.sub(r"\{\s*\$\w+\s*\}", "…", text)))


def _name(path: Path, lang: str) -> Path:
    return path if lang == "en" else path.with_suffix(".zh.md")


def _other(path: Path, lang: str) -> str:
    other = path.name if lang == "zh" else path.with_suffix(".zh.md").name
    return f"[{_TEXTS[lang]['other']}]({other})"


def _paragraph(text: str) -> str:
    if any("\u4e00" <= c <= "\u9fff" for c in text):
        # A line break between Chinese characters would be shown as a blank.
        return text
    return "\n".join(textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False))


def _item(text: str) -> str:
    return _paragraph(f"- {text}").replace("\n", "\n  ")


def messages_of(path: Path) -> list[str]:
    """Return the ids of the messages that a module names, in their order."""
    found: dict[str, None] = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "message" and node.args:
            for part in ast.walk(node.args[0]):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    found[part.value] = None
    return list(found)


def cause_pages() -> dict[Path, str]:
    """Return the pages of all causes and their index, in each language."""
    results: list[dict[str, Any]] = json.loads(VALIDATED.read_text(encoding="utf-8"))
    pages: dict[Path, str] = {}
    for lang in i18n.LANGUAGES:
        pages[_name(GUIDE / "README.md", lang)] = _index(results, lang)
        for cause in every_cause():
            pages[_name(GUIDE / f"{cause.name}.md", lang)] = _page(cause, results, lang)
    return pages


def _index(results: list[dict[str, Any]], lang: str) -> str:
    t, texts = _TEXTS[lang], i18n.catalogue(lang)
    path = GUIDE / "README.md"
    out = [f"# {t['causes']}", "", _other(path, lang), "", _paragraph(t["index"]), ""]
    out += [f"| {t['cause']} | {t['name']} | {t['kind']} |", "|---|---|---|"]
    for c in sorted(every_cause(), key=lambda c: (c.kind.value, c.name)):
        page = _name(Path(f"{c.name}.md"), lang)
        out.append(f"| [{texts[f'cause-{c.name}']}]({page}) | `{c.name}` | {t[c.kind.value]} |")
    made = sum(bool(r["cause"]) for r in results)
    # Exact, two-sided, of `made` without a miss.
    least = f"{0.025 ** (1 / made):.0%}"
    summary = t["summary"].format(made=made, calm=len(results) - made, least=least)
    return "\n".join(
        [
            *out,
            "",
            f"## {t['validated']}",
            "",
            _paragraph(summary),
            "",
            _paragraph(t["notes"]),
            "",
            *_table(results, lang),
            "",
        ]
    )


def _table(results: list[dict[str, Any]], lang: str) -> Iterator[str]:
    t = _TEXTS[lang]
    yield f"| {t['made']} | {t['first']} | {t['also']} |"
    yield "|---|---|---|"
    for r in results:
        found = [f"{f['cause']} {f['cost']:.0%} {f['confidence']}" for f in r["findings"]]
        first, then = found[:1] or [t["none"]], found[1:] or ["–"]
        if r["cause"] and not first[0].startswith(f"{r['cause']} "):
            first = [f"{first[0]} ({t['not']} {r['cause']})"]
        yield f"| {r['made']} | {first[0]} | {', '.join(then)} |"


def _page(cause: Cause, results: list[dict[str, Any]], lang: str) -> str:
    t, texts = _TEXTS[lang], i18n.catalogue(lang)
    ids = messages_of(PACKAGE / "diagnosis" / "causes" / f"{cause.name.replace('-', '_')}.py")
    remedies = [i for i in ids if i.endswith("-remedy") or "-remedy-" in i]
    english = i18n.catalogue("en")
    # A sentence, not a part of one.
    said = [i for i in ids if i not in remedies and re.match(r"[A-Z].{30}|.*\.$", english.get(i, ""))]
    assert said, f"{cause.name} says nothing"
    about = [texts[f"about-{cause.name}{part}"] for part in ("", "-seen", "-cost")]
    page = GUIDE / f"{cause.name}.md"
    out = [
        f"# {texts[f'cause-{cause.name}']} (`{cause.name}`)", "",
        f"{_other(page, lang)} · [{t['all']}]({_name(Path('README.md'), lang)})", "", _paragraph(about[0]), "",
        f"## {t['told']}", "", f"{t['cut']}{'.' if lang == 'en' else '。'}", "",
        *[_item(shown(texts[i])) for i in said], "",
        f"## {t['seen']}", "", _paragraph(about[1]), "",
        f"## {t['cost']}", "", _paragraph(about[2]), "",
        f"## {t['try']}", "", *[_item(shown(texts[i])) for i in remedies], "", f"## {t['validated']}", "",
    ]  # fmt: skip
    own = [r for r in results if r["cause"] == cause.name]
    how = "page"
    if not own:
        how = "observed"
        own = [r for r in json.loads(OBSERVED.read_text(encoding="utf-8")) if r["cause"] == cause.name]
    if not own:
        return "\n".join([*out, t["never"], ""])
    out += [_paragraph(t[how]), "", *_table(own, lang), ""]
    every = {i.name: i for i in (*injections.EVERY, *injections.LONG, *injections.OBSERVED)}
    for r in own:
        out += _made(every[r["made"]], lang)
    return "\n".join(out).rstrip() + "\n"


def _made(i: injections.Injected, lang: str) -> list[str]:
    t = _TEXTS[lang]
    clients = t["client"] if i.clients == 1 else t["clients"].format(n=i.clients)
    out = ["### " + t["how"].format(name=i.name, clients=clients, seconds=i.seconds), ""]
    if i.warehouses:
        out += [t["tpcc"].format(n=i.warehouses), ""]
    if i.script:
        out += ["```sql", *_wrapped(i.script.strip()), "```", ""]
    if i.conf.strip():
        out += ["```ini", *_wrapped(i.conf.strip()), "```", ""]
    return out + [line for text in beside(i, lang) for line in (_paragraph(text), "")]


def beside(i: injections.Injected, lang: str) -> Iterator[str]:
    """Yield sentences on what makes a cause beside the script and the settings."""
    t = _TEXTS[lang]
    # A statement stands between backticks, in one line.
    values = {
        k: " ".join(v.split()) if isinstance(v, str) else v for k, v in getattr(i.disturb, "__dict__", {}).items()
    }
    match i.disturb:
        case injections.Repeated(every_s=every_s):
            yield t["again" if every_s else "always"].format(**values)
        case injections.Once():
            yield t["once"].format(**values)
        case injections.Held():
            yield t["held"].format(**values)
        case other if other is not nullcontext and other is not injections.synced:
            yield t[other.__name__]
    if i.place is injections.on_slow_disk:
        yield t["on_slow_disk"]
    if i.holds_back:
        yield t["holds_back"]
    for key, n in (("quota", i.quota), ("server_cpus", i.server_cpus), ("delay", i.delay_ms)):
        if n:
            yield t[key].format(n=n)


def _wrapped(code: str) -> Iterator[str]:
    for line in code.splitlines():
        yield from textwrap.wrap(line, _WIDTH, subsequent_indent="  ", break_long_words=False) or [""]


# ---------------------------------------------------------------- errors


def _pairs() -> Iterator[tuple[str, str]]:
    """Yield the ids of each error and of its remedy (may be empty), where both stand in one call."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            ids = [_id(a) for a in node.args]
            for error, remedy in zip(ids, [*ids[1:], ""], strict=False):
                if error.startswith("error-"):
                    yield error, remedy if remedy.startswith("remedy-") else ""


def _id(node: ast.expr) -> str:
    if isinstance(node, ast.Call) and ast.unparse(node.func) in {"msg", "message"} and node.args:
        first = node.args[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            return first.value
    return ""


def error_pages() -> dict[Path, str]:
    """Return the list of errors in each language."""
    pairs = sorted(set(_pairs()))
    remedied = {e for e, r in pairs if r}
    pages = {}
    path = ROOT / "docs" / "reference" / "errors.md"
    for lang in i18n.LANGUAGES:
        t, texts = _TEXTS[lang], i18n.catalogue(lang)
        rows: dict[str, list[str]] = {}
        for error, remedy in pairs:
            if remedy or error not in remedied:
                rows.setdefault(shown(texts[error]), []).append(shown(texts[remedy]) if remedy else "")
        out = [f"# {t['errors']}", "", _other(path, lang), "", t["errors-intro"], ""]
        for error in sorted(rows, key=lambda e: re.sub(r"^[^\w]+", "", e).lower()):
            remedies = [r for r in dict.fromkeys(rows[error]) if r]
            out += [f"- **{_plain(error)}**" + (f"  \n  {_plain(' / '.join(remedies))}" if remedies else "")]
        pages[_name(path, lang)] = "\n".join([*out, ""])
    return pages


def _plain(text: str) -> str:
    """Return a text that Markdown shows as it is, in one line."""
    return re.sub(r"([\\*_<>\[\]|`#])", r"\\\1", " ".join(text.split()))
