"""Content of a report, independent of its output format and of its language but for the charts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pgdyno import i18n
from pgdyno.format import printable
from pgdyno.message import Message, Name, Text, message
from pgdyno.report import (
    answer,
    charts,
    client_time,
    comparisons,
    curves,
    drivers,
    facts,
    fidelity,
    findings,
    heading,
    lead,
    names,
    outcomes,
    promises,
    replication,
    resources,
    sides,
    tables,
    timeline,
    tpcc,
)
from pgdyno.report.cells import Table
from pgdyno.report.charts import Chart
from pgdyno.report.findings import Explained
from pgdyno.report.heading import CaveatText
from pgdyno.report.lead import Tile
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store.manifest import Change

#: Trials that are drawn over time with all that was collected.
_TIMELINES = 2


@dataclass(frozen=True)
class View:
    """A report."""

    title: Text
    subtitle: Text
    #: What came of it, in sentences.
    answer: list[Text]
    #: The answer in short lines; empty: the sentences are short enough.
    headline: list[Text]
    #: What limits the fastest configurations, and why compared ones differ; also part of the answer.
    reasons: list[Text]
    #: Why the run ended early; stands at the top.
    error: Text | None
    #: What --shrink changed; stands there too.
    shrunk: list[Text]
    #: What to beware of; what went wrong first.
    caveats: list[CaveatText]
    #: Why: what was found of some configurations.
    why: list[Explained]
    #: Causes that could not be judged, in sentences.
    not_judged: list[Text]
    #: In the order of reading, without empty ones.
    tables: list[Table]
    environment: list[tuple[Text, Text]] = field(default_factory=list)
    #: Settings of the server that are not its defaults.
    settings: list[tuple[Text, Text]] = field(default_factory=list)
    #: Of each workload: its name, and its scripts: name, weight as text, text.
    scripts: list[tuple[str, list[tuple[str, str, str]]]] = field(default_factory=list)
    #: How it was measured, in sentences.
    method: list[Text] = field(default_factory=list)
    #: What to type for the same again; empty: not recorded.
    command: str = ""
    charts: list[Chart] = field(default_factory=list)
    #: First screen: at most two sentences, and tiles.
    short: list[Text] = field(default_factory=list)
    tiles: list[Tile] = field(default_factory=list)
    lang: str = "en"

    @property
    def lead(self) -> Chart | None:
        """Chart of the first screen."""
        return lead.chart(self.charts)

    def table(self, name: str) -> Table | None:
        """One of the tables."""
        return next((t for t in self.tables if t.name == name), None)

    @property
    def wrong(self) -> list[CaveatText]:
        """Caveats with which a run ends with exit code 1."""
        return [c for c in self.caveats if c.is_wrong]

    @property
    def say(self) -> Callable[[Text | str], str]:
        """Function that writes a text in the report's language, or a message by its id.

        Names come from servers, files and other users: characters that would steer a terminal are replaced.
        """

        def write(text: Text | str) -> str:
            return printable(i18n.text(Message(text) if isinstance(text, str) else text, self.lang))

        return write


def build(run: RunAnalysis, *, with_charts: bool = True, lang: str = "en") -> View:
    """Build the view of a run. `lang` is one of i18n.LANGUAGES."""
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
        drivers.table(run),
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
    pictures = _pictures(run, lang) if with_charts else []
    answers, headline, reasons, caveats = answered(run), _headline(run), _reasons(run), heading.caveats(run)
    return View(
        title=heading.title(data),
        subtitle=heading.subtitle(data),
        answer=answers,
        headline=headline,
        reasons=reasons,
        error=heading.error(data),
        shrunk=[x.message if isinstance(x, Change) else Name(x) for x in m.shrunk],
        caveats=caveats,
        why=findings.explained(run, run.fastest[: findings.SHOWN]),
        not_judged=[*_judged_in_part(run), *(n.message for n in run.diagnosis.not_judged)],
        tables=[t for t in every if t.cells],
        environment=facts.environment(data),
        settings=facts.settings(data),
        scripts=facts.scripts(data),
        method=facts.method(data),
        command=m.command,
        charts=pictures,
        short=lead.sentences(answers, headline, reasons, _alarms(run)),
        tiles=lead.tiles(run, caveats),
        lang=lang,
    )


def localized(v: View, run: RunAnalysis, lang: str) -> View:
    """Return the view of a run in another language: its charts are drawn anew, everything else holds texts as data."""
    return replace(v, lang=lang, charts=_pictures(run, lang) if v.charts else [])


def _pictures(run: RunAnalysis, lang: str) -> list[Chart]:
    return [*_timelines(run, lang), *_charts(run, lang)]


def answered(run: RunAnalysis) -> list[Text]:
    """Return the sentences that every form of a report begins with."""
    return run.once("answer", lambda: _answered(run))


def _answered(run: RunAnalysis) -> list[Text]:
    return [
        *answer.without_work(run),
        *promises.sentences(run),
        *fidelity.lost(run),
        *answer.without_one_level(run),
        *tpcc.sentences(run),
        *replication.sentences(run),
        *drivers.sentences(run),
        *answer.main_sentences(run),
        *_reasons(run),
        *fidelity.sentences(run),
        *fidelity.gained(run),
    ]


def _alarms(run: RunAnalysis) -> list[Text]:
    """Return the sentences of the answer that no reader may miss: why its figures cannot be used as they are."""
    broken = [x for x in tpcc.sentences(run) if isinstance(x, Message) and x.id.startswith("answer-broken")]
    broken += [x for x in promises.sentences(run) if isinstance(x, Message) and x.id == "answer-unequal-promises"]
    return [*answer.without_work(run), *fidelity.lost(run), *answer.without_one_level(run), *broken]


def _reasons(run: RunAnalysis) -> list[Text]:
    return run.once("reasons", lambda: _found_reasons(run))


def _found_reasons(run: RunAnalysis) -> list[Text]:
    rows = run.comparisons.rows if run.data.manifest.capacity is None else []
    pair_ratio = findings.comparison_reasons(run, run, rows)
    return [*(text for _, text in pair_ratio), *findings.sentences(run)]


def _headline(run: RunAnalysis) -> list[Text]:
    before = [*answer.without_work(run), *promises.sentences(run), *answer.without_one_level(run), *tpcc.sentences(run)]
    before += [*replication.sentences(run), *drivers.sentences(run)]
    levels = answer.short_levels(run)
    return [*fidelity.lost(run), *before, *levels] if levels else []


def _timelines(run: RunAnalysis, lang: str) -> list[Chart]:
    """Return charts over time of the longest trial of the fastest configuration, for some workloads."""
    found = []
    for n, g in enumerate(run.fastest[:_TIMELINES], 1):
        longest = max(g.trials, key=lambda t: t.summary.elapsed_s if t.summary else 0.0)
        if figure := timeline.chart(run.observed(g.trials).trials[g.trials.index(longest)], i18n.writer(lang)):
            repetition = longest.plan.repetition
            title = message("chart-timeline", configuration=names.configuration(g), repetition=repetition)
            found.append(Chart(f"timeline-{n}", title, message("chart-timeline-note"), figure))
    return found


def _charts(run: RunAnalysis, lang: str) -> list[Chart]:
    say = i18n.writer(lang)
    found = charts.all_charts(run, lang)
    if time := client_time.chart(run, run.fastest, say):
        found.append(time)
    if curve := curves.latency_by_throughput(run.data, say):
        capacity = Chart("capacity", message("chart-capacity"), message("chart-capacity-note"), curve)
        # What was asked for comes first, and a search has nothing to show over clients.
        return [capacity, *(c for c in found if c.name not in ("tps", "qps"))]
    if ratios := curves.ratios(run.comparisons.rows, say):
        found.insert(0, Chart("ratios", message("chart-ratios"), message("chart-ratios-note"), ratios))
    if beside := _sides(run, lang):
        found.insert(1 if ratios else 0, beside)
    if law := curves.scaling(run.groups, say):
        found.append(Chart("scaling", message("chart-scaling"), message("chart-scaling-note"), law))
    return found


def _sides(run: RunAnalysis, lang: str) -> Chart | None:
    """Return a chart over time of both sides of the first pair that is compared along an axis."""
    pair = next((r.pair for r in run.comparisons.rows if r.pair.axis), None)
    if pair is None or run.data.manifest.run.is_duet:
        return None
    figure = sides.chart(run, pair, i18n.writer(lang))
    title = message("chart-sides", pair=Name(pair.label))
    return Chart("sides", title, message("chart-sides-note"), figure) if figure else None


def _judged_in_part(run: RunAnalysis) -> list[Text]:
    """Return the sentence that says how many of very many configurations were judged."""
    judged, every = len(run.diagnosed), len(run.groups)
    return [message("not-judged-many", n=judged, of=every)] if judged < every else []
