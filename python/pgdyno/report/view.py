"""What a report says, before it is said in any form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pgdyno.analysis.compare import MARGIN
from pgdyno.diagnosis import explain
from pgdyno.diagnosis.finding import Finding
from pgdyno.diagnosis.recorded import Recorded
from pgdyno.format import printable
from pgdyno.judge.axes import AxisComparisons, along_axes
from pgdyno.judge.groups import Group, groups_of
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
from pgdyno.store.reading import RunData

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
    #: Why the run ended early; stands at the top.
    error: str
    #: What --shrink changed; stands there too.
    shrunk: list[str]
    #: What to beware of: text, remedy, how many trials.
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


def build(data: RunData, *, with_charts: bool = True, lang: str = "en", margin: float = MARGIN) -> View:
    """The view of a run, in one of words.LANGUAGES."""
    m = data.manifest
    groups = groups_of(data)
    diagnosis = explain.of_run(data, groups)
    found_causes = diagnosis.findings
    along = along_axes(data, groups, margin)
    every = [
        findings.table(data, found_causes),
        tables.capacity(data),
        comparisons.table(along),
        tpcc.figures(data, groups),
        tpcc.paced(data, groups),
        tpcc.limits(data, groups),
        replication.table(data, groups),
        replication.reads(data, groups),
        tables.main(data, groups),
        tables.ingest(groups),
        tables.detail(data, groups),
        tables.over_time(data, groups),
        tables.scripts(data, groups),
        fidelity.table(data, groups),
        tables.statements(data, groups),
        outcomes.activity(groups),
        resources.devices(data, groups),
        resources.processes(data, groups),
        resources.statements(data, groups),
        resources.buffers(data, groups),
        resources.locks(data, groups),
        resources.growth(data, groups),
        facts.loading(data),
        facts.sizes(data),
        facts.storage(data),
        facts.syncs(data),
        tpcc.drawn(data, groups),
        tpcc.checks(data),
        outcomes.outcomes(data),
        outcomes.trials(data),
    ]
    # Before the heading is made: it names the files that could not be read, of which some are found on the way.
    pictures = [*_timelines(data, groups), *_charts(data, groups, along)] if with_charts else []
    found = [t for t in every if t.cells]
    view = View(
        title=m.title or m.name or "run",
        subtitle=heading.subtitle(data),
        answer=answered(data, groups, along, found_causes, lang),
        error=heading.error(data),
        shrunk=m.shrunk,
        caveats=heading.caveats(data),
        why=findings.explained(found_causes, groups),
        not_judged=[n.sentence for n in diagnosis.not_judged],
        tables=found,
        environment=facts.environment(data),
        settings=facts.settings(data),
        scripts=facts.scripts(data),
        method=facts.method(data),
        command=m.command,
        charts=pictures,
    )
    view = _printable(view)
    return view if lang == "en" else words.translated(view, data, lang)


def answered(
    data: RunData, groups: list[Group], along: AxisComparisons, causes: Sequence[Finding], lang: str = "en"
) -> list[str]:
    """The sentences that every form of a report begins with."""
    return [
        *answer.without_work(data, groups),
        *fidelity.lost(data, groups, lang),
        *answer.without_one_level(data, groups),
        *tpcc.sentences(data, groups),
        *replication.sentences(data, groups),
        *answer.of_run(data, groups, along),
        *(words for _, words in findings.of_comparisons(data, data, along.rows) if data.manifest.capacity is None),
        *findings.sentences(causes, groups),
        *fidelity.sentences(data, groups, lang),
        *fidelity.gained(data, groups, lang),
    ]


def _printable(view: View) -> View:
    """Without what would steer a terminal: titles, statements and messages are somebody else's words."""

    def cell(c: str | Cell) -> str | Cell:
        return printable(c) if isinstance(c, str) else replace(c, text=printable(c.text))

    return replace(
        view,
        title=printable(view.title),
        subtitle=printable(view.subtitle),
        answer=[printable(s) for s in view.answer],
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


def _timelines(data: RunData, groups: list[Group]) -> list[Chart]:
    """Of the fastest configuration of some workloads, its longest trial over time."""
    found = []
    for n, g in enumerate(findings.fastest(groups)[:_TIMELINES], 1):
        longest = max(g.trials, key=lambda t: t.summary.elapsed_s if t.summary else 0.0)
        if spec := timeline.chart(Recorded(data, longest)):
            title = f"{findings.title_of(g)}, repetition {longest.plan.repetition}"
            note = (
                "One trial on one axis. Waits: our clients, sampled from pg_stat_activity, and the kernel's scheduler: "
                "a backend that waits for a processor may be idle for PostgreSQL. Disk: the devices under the server's "
                "files."
            )
            found.append(Chart(f"timeline-{n}", printable(title), note, spec))
    return found


def _charts(data: RunData, groups: list[Group], along: AxisComparisons) -> list[Chart]:
    found = [Chart(*c) for c in charts.all_charts(data, groups)]
    if curve := curves.latency_by_throughput(data):
        note = "Each point is a trial at a rate; the dashed line is the objective."
        # What was asked for comes first, and a search has nothing to show over clients.
        return [Chart("capacity", "Latency by throughput", note, curve), *found[1:]]
    if ratios := curves.ratios(along):
        note = (
            "Lines: the interval that the verdict stands on; dots: the ratio. Of TPS more is better, of all others "
            "less. Dashed: no difference."
        )
        found.insert(0, Chart("ratios", "Each ratio with its interval", note, ratios))
    if beside := _sides(data, along):
        found.insert(1 if ratios else 0, beside)
    if law := curves.scaling(groups):
        note = (
            "Points: repetitions. Line: the Universal Scalability Law, fitted; band: its 95% interval, by levels as "
            "units, beyond the last point by prediction; triangle: its knee."
        )
        found.insert(1, Chart("scaling", "Throughput by clients", note, law))
    return found


def _sides(data: RunData, along: AxisComparisons) -> Chart | None:
    """Of the first pair that is compared along an axis, what its two sides did over time."""
    pair = next((r.pair for r in along.rows if r.pair.axis), None)
    if pair is None or data.manifest.run.is_duet:
        return None
    spec = sides.chart(data, pair)
    note = (
        "The longest trial of each, on equal scales; below the throughput the device that was used most. Shaded: "
        "checkpoints."
    )
    return Chart("sides", f"Beside each other: {printable(pair.label)}", note, spec) if spec else None
