"""A whitepaper: runs and drills as one document to print, with numbered figures and tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from pgdyno import i18n
from pgdyno.format import printable
from pgdyno.message import Message, Text, listed, message
from pgdyno.report import html
from pgdyno.report.cells import Table
from pgdyno.report.charts import Chart
from pgdyno.report.view import View

#: Rows of a table; the rest is in the CSV files of the run.
MOST_ROWS = 60
#: Charts and tables of each chapter, by their names in a report.
_CHAPTERS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("storage", (), ("storage", "syncs")),
    ("loading", (), ("loading", "sizes")),
    (
        "results",
        ("ratios", "capacity", "standbys", "tps", "new-orders", "scaling", "latency"),
        (
            "capacity", "comparisons", "tpcc", "tpcc-paced", "tpcc-limits", "replication", "detail", "qps", "rows",
            "checks",
        ),
    ),
    ("over-time", ("throughput", "latency-time", "timeline-1"), ()),
)  # fmt: skip


@dataclass(frozen=True)
class Block:
    """Part of a chapter: what one run or drill contributes."""

    title: Text | None = None
    sentences: list[Text] = field(default_factory=list)
    items: list[Text] = field(default_factory=list)
    pairs: list[tuple[Text, Text]] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    code: str = ""

    @property
    def is_empty(self) -> bool:
        """True if there is nothing but a title."""
        return not (self.sentences or self.items or self.pairs or self.charts or self.tables or self.code)


@dataclass(frozen=True)
class Chapter:
    """A numbered chapter; its title is `paper-` and the name in the catalogues."""

    name: str
    blocks: list[Block]

    @property
    def title(self) -> Message:
        """The title."""
        return message(f"paper-{self.name}")


@dataclass(frozen=True)
class Source:
    """A run or a drill of a whitepaper: its title, and its blocks by chapter."""

    title: Text
    subtitle: Text
    blocks: dict[str, Block]


#: Order of all chapters.
_ORDER = (
    "summary",
    "environment",
    "storage",
    "loading",
    "results",
    "over-time",
    "limits",
    "failover",
    "method",
    "repeat",
)


def source_of(v: View) -> Source:
    """Return what a run's report contributes."""
    charts, tables = {c.name: c for c in v.charts}, {t.name: t for t in v.tables}
    wrong: list[Text] = [listed([v.error], "none")] if v.error else []
    wrong += [c.sentence for c in v.wrong]
    caveats: list[Text] = [c.sentence for c in v.caveats if not c.is_wrong]
    found = [
        message(
            "labelled",
            label=e.title,
            text=message("labelled", label=f.role, text=message("paper-remedy", finding=f.sentence, remedy=f.remedy)),
        )
        for e in v.why
        for f in e.first
    ]
    blocks = {
        "summary": Block(sentences=[*wrong, *v.shrunk, *v.answer], items=[c.text for c in v.caveats if not c.is_wrong]),
        "environment": Block(pairs=[*v.environment, *(s for s in v.settings if s[0] not in dict(v.environment))]),
        "limits": Block(items=[*found], charts=[charts["client-time"]] if "client-time" in charts else []),
        "method": Block(sentences=v.method, items=caveats),
        "repeat": Block(code=_code(v)),
    }
    for name, of_charts, of_tables in _CHAPTERS:
        blocks[name] = Block(
            charts=[charts[c] for c in of_charts if c in charts],
            tables=[tables[t] for t in of_tables if t in tables],
        )
    return Source(v.title, v.subtitle, blocks)


def _code(v: View) -> str:
    """Return the command, and the scripts of each workload."""
    scripts = [
        f"-- {workload}: {name}\n{text.strip()}" for workload, of in v.scripts for name, _, text in of if text.strip()
    ]
    return "\n\n".join(filter(None, [v.command, *scripts]))


def chapters(sources: Sequence[Source]) -> list[Chapter]:
    """Return the chapters that have content; with several sources each block has the title of its own."""
    out = []
    for name in _ORDER:
        blocks = []
        for s in sources:
            b = s.blocks.get(name)
            if b is not None and not b.is_empty:
                title = s.title if len(sources) > 1 else None
                blocks.append(replace(b, title=title))
        if blocks:
            out.append(Chapter(name, blocks))
    return out


def render(sources: Sequence[Source], title: Text | None, lang: str) -> str:
    """Return the whitepaper as one HTML file that needs no network."""
    shown = chapters(sources)
    tables = [t for c in shown for b in c.blocks for t in b.tables]
    return html.template("whitepaper.html.j2").render(
        title=title or sources[0].title,
        subtitles=[s.subtitle for s in sources],
        chapters=shown,
        most=MOST_ROWS,
        headings={id(t): t.headings(lang) for t in tables},
        texts={id(t): t.texts(lang) for t in tables},
        rest=lambda t: message("paper-rest", n=len(t.cells) - MOST_ROWS),
        figure=lambda n, c: message("paper-figure", n=n, title=c.title),
        table_title=lambda n, t: message("paper-table", n=n, title=t.title),
        lang=lang,
        say=_writer(lang),
        identity=id,
    )


def _writer(lang: str) -> Callable[[Text | str], str]:
    return lambda text: printable(i18n.text(Message(text) if isinstance(text, str) else text, lang))
