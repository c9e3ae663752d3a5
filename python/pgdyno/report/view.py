"""Content of a report, independent of its output format."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pgdyno.diagnosis.recorded import Recorded
from pgdyno.format import printable
from pgdyno.report import (
    answer,
    charts,
    comparisons,
    curves,
    facts,
    fidelity,
    findings,
    heading,
    outcomes,
    replication,
    resources,
    sides,
    tables,
    timeline,
    tpcc,
    words,
)
from pgdyno.report.cells import Cell, Table
from pgdyno.report.findings import Explained
from pgdyno.results.analysis import RunAnalysis

#: Trials that are drawn over time with all that was collected.
_TIMELINES = 2


@dataclass(frozen=True)
class Chart:
    """A chart as a Vega-Lite description."""

    name: str
    title: str
    note: str
    spec: dict[str, object]


@dataclass(frozen=True)
class View:
    """A report."""

    title: str
    subtitle: str
    #: What came of it, in sentences.
    answer: list[str]
    #: The answer in short lines; empty: the sentences are short enough.
    headline: list[str]
    #: What limits the fastest configurations, and why compared ones differ; also part of the answer.
    reasons: list[str]
    #: Why the run ended early; stands at the top.
    error: str
    #: What --shrink changed; stands there too.
    shrunk: list[str]
    #: Texts of the caveats that say what went wrong.
    wrong: list[str]
    #: What to beware of: text, remedy, how many trials; what went wrong first.
    caveats: list[tuple[str, str, str]]
    #: Why: what was found of some configurations.
    why: list[Explained]
    #: Causes that could not be judged, in sentences.
    not_judged: list[str]
    #: In the order of reading, without empty ones.
    tables: list[Table]
    environment: list[tuple[str, str]] = field(default_factory=list)
    #: Settings of the server that are not its defaults.
    settings: list[tuple[str, str]] = field(default_factory=list)
    #: Of each workload: its name, and its scripts: name, weight in words, text.
    scripts: list[tuple[str, list[tuple[str, str, str]]]] = field(default_factory=list)
    #: How it was measured, in sentences.
    method: list[str] = field(default_factory=list)
    #: What to type for the same again; empty: not recorded.
    command: str = ""
    charts: list[Chart] = field(default_factory=list)
    lang: str = "en"

    def table(self, name: str) -> Table | None:
        """One of the tables."""
        return next((t for t in self.tables if t.name == name), None)


def build(run: RunAnalysis, *, with_charts: bool = True, lang: str = "en") -> View:
    """Build the view of a run in one of words.LANGUAGES."""
    data, groups, m = run.data, run.groups, run.data.manifest
    found_causes = run.diagnosis.findings
    every = [
        findings.table(data, found_causes),
        tables.capacity(data),
        comparisons.table(run.comparisons),
        tpcc.figures(run),
        tpcc.paced(run),
        tpcc.limits(run),
        replication.table(run),
        replication.reads(run),
        tables.main(run),
        tables.ingest(groups),
        tables.detail(run),
        tables.over_time(run),
        tables.scripts(run),
        fidelity.table(run),
        tables.statements(run),
        outcomes.activity(groups),
        resources.devices(run),
        resources.processes(run),
        resources.statements(run),
        resources.buffers(run),
        resources.locks(run),
        resources.growth(run),
        facts.loading(data),
        facts.sizes(data),
        facts.storage(data),
        facts.syncs(data),
        tpcc.drawn(run),
        tpcc.checks(data),
        outcomes.outcomes(data),
        outcomes.trials(data),
    ]
    # Before the heading is made: it names the files that could not be read, of which some are found on the way.
    pictures = [*_timelines(run), *_charts(run)] if with_charts else []
    found = [t for t in every if t.cells]
    view = View(
        title=m.title or m.name or "run",
        subtitle=heading.subtitle(data),
        answer=answered(run, lang),
        headline=_headline(run, lang),
        reasons=_reasons(run, lang),
        error=heading.error(data),
        shrunk=m.shrunk,
        wrong=heading.wrong(data),
        caveats=heading.caveats(data),
        why=findings.explained(found_causes, groups, lang=lang),
        not_judged=[n.sentence(lang) for n in run.diagnosis.not_judged],
        tables=found,
        environment=facts.environment(data),
        settings=facts.settings(data, lang),
        scripts=facts.scripts(data),
        method=facts.method(data),
        command=m.command,
        charts=pictures,
    )
    view = _printable(view)
    return view if lang == "en" else words.translated(view, data, lang)


def answered(run: RunAnalysis, lang: str = "en") -> list[str]:
    """Return the sentences that every form of a report begins with."""
    return run.once(f"answer.{lang}", lambda: _answered(run, lang))


def _answered(run: RunAnalysis, lang: str) -> list[str]:
    return [
        *answer.without_work(run),
        *fidelity.lost(run, lang),
        *answer.without_one_level(run),
        *tpcc.sentences(run),
        *replication.sentences(run),
        *answer.of_run(run),
        *_reasons(run, lang),
        *fidelity.sentences(run, lang),
        *fidelity.gained(run, lang),
    ]


def _reasons(run: RunAnalysis, lang: str) -> list[str]:
    rows = run.comparisons.rows if run.data.manifest.capacity is None else []
    of_pairs = findings.of_comparisons(run, run, rows, lang=lang)
    return [*(text for _, text in of_pairs), *findings.sentences(run.diagnosis.findings, run.groups, lang)]


def _headline(run: RunAnalysis, lang: str) -> list[str]:
    before = [*answer.without_work(run), *answer.without_one_level(run), *tpcc.sentences(run)]
    before += replication.sentences(run)
    levels = answer.short_levels(run, lang)
    return [*fidelity.lost(run, lang), *(words.said(s, lang) for s in before), *levels] if levels else []


def _printable(view: View) -> View:
    """Without what would steer a terminal: titles, statements and messages are somebody else's words."""

    def cell(c: str | Cell) -> str | Cell:
        return printable(c) if isinstance(c, str) else replace(c, text=printable(c.text))

    return replace(
        view,
        title=printable(view.title),
        subtitle=printable(view.subtitle),
        answer=[printable(s) for s in view.answer],
        headline=[printable(s) for s in view.headline],
        reasons=[printable(s) for s in view.reasons],
        error=printable(view.error),
        shrunk=[printable(s) for s in view.shrunk],
        not_judged=[printable(s) for s in view.not_judged],
        caveats=[(printable(a), printable(b), printable(c)) for a, b, c in view.caveats],
        tables=[replace(t, cells=[[cell(c) for c in row] for row in t.cells]) for t in view.tables],
        environment=[(printable(a), printable(b)) for a, b in view.environment],
        settings=[(printable(a), printable(b)) for a, b in view.settings],
        scripts=[(printable(w), [(printable(n), p, printable(t)) for n, p, t in of]) for w, of in view.scripts],
        command=printable(view.command),
    )


def _timelines(run: RunAnalysis) -> list[Chart]:
    """Return charts over time of the longest trial of the fastest configuration, for some workloads."""
    found = []
    for n, g in enumerate(findings.fastest(run.groups)[:_TIMELINES], 1):
        longest = max(g.trials, key=lambda t: t.summary.elapsed_s if t.summary else 0.0)
        if spec := timeline.chart(Recorded(run.data, longest)):
            title = f"{findings.title_of(g)}, repetition {longest.plan.repetition}"
            note = (
                "One trial on one axis. Waits: our clients, sampled from pg_stat_activity, and the kernel's scheduler: "
                "a backend that waits for a processor may be idle for PostgreSQL. Disk: the devices under the server's "
                "files."
            )
            found.append(Chart(f"timeline-{n}", printable(title), note, spec))
    return found


def _charts(run: RunAnalysis) -> list[Chart]:
    found = [Chart(*c) for c in charts.all_charts(run)]
    if curve := curves.latency_by_throughput(run.data):
        note = "Each point is a trial at a rate; the dashed line is the objective."
        # What was asked for comes first, and a search has nothing to show over clients.
        return [Chart("capacity", "Latency by throughput", note, curve), *found[1:]]
    if ratios := curves.ratios(run.comparisons):
        note = (
            "Lines: the interval that the verdict stands on; dots: the ratio. Of TPS more is better, of all others "
            "less. Dashed: no difference."
        )
        found.insert(0, Chart("ratios", "Each ratio with its interval", note, ratios))
    if beside := _sides(run):
        found.insert(1 if ratios else 0, beside)
    if law := curves.scaling(run.groups):
        note = (
            "Points: repetitions. Line: the Universal Scalability Law, fitted; band: its 95% interval, by levels as "
            "units, beyond the last point by prediction; triangle: its knee."
        )
        found.insert(1, Chart("scaling", "Throughput by clients", note, law))
    return found


def _sides(run: RunAnalysis) -> Chart | None:
    """Return a chart over time of both sides of the first pair that is compared along an axis."""
    pair = next((r.pair for r in run.comparisons.rows if r.pair.axis), None)
    if pair is None or run.data.manifest.run.is_duet:
        return None
    spec = sides.chart(run, pair)
    note = (
        "The longest trial of each, on equal scales; below the throughput the device that was used most. Shaded: "
        "checkpoints."
    )
    return Chart("sides", f"Beside each other: {printable(pair.label)}", note, spec) if spec else None
