"""`pgdyno report`."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pgdyno import i18n
from pgdyno.cli import as_json, console
from pgdyno.errors import UsageError, msg
from pgdyno.message import Name, message
from pgdyno.report import heading, sysbench, view, write
from pgdyno.report import whitepaper as papers
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store import reading, rundir
from pgdyno.store.writing import writing

#: What a drill's folder has, and a run's has not. What reads it is imported where it is needed: few ask for it.
_DRILL = "drill.json"
FORMATS = ("pgdyno", "sysbench")


def refuse_unknown(report_format: str, *, json_output: bool) -> None:
    """Raise UsageError if the report format is unknown, or if two formats were requested."""
    if report_format not in FORMATS:
        raise UsageError(
            msg("error-report-format-there-no", report_format=report_format),
            msg("remedy-choices", choices=", ".join(FORMATS)),
        )
    if report_format != "pgdyno" and json_output:
        raise UsageError(
            msg("error-json-report-format-contradict-each", report_format=report_format), msg("remedy-give-one-them")
        )


def refuse_other_outputs(report_format: str, *, json_output: bool, figure: Path | None) -> None:
    """Raise UsageError if --whitepaper stands beside another output."""
    if json_output or figure is not None or report_format != "pgdyno":
        raise UsageError(msg("error-whitepaper-alone"), msg("remedy-give-one-them"))


def refuse_several(paths: Sequence[Path], title: str | None) -> None:
    """Raise UsageError for what only a whitepaper takes: several runs, a title."""
    if len(paths) > 1:
        raise UsageError(msg("error-report-several"), msg("remedy-report-several"))
    if title is not None:
        raise UsageError(msg("error-title-whitepaper"), msg("remedy-report-several"))


def main(
    path: Path,
    json_output: bool,
    lang: str,
    report_format: str,
    *,
    details: bool = False,
    figure: Path | None = None,
) -> int:
    """Read a run, show its report and write the report files again.

    A report in another format than pgdyno's is only shown, not written. With `figure`, one chart is written and nothing
    else.
    """
    refuse_unknown(report_format, json_output=json_output)
    if figure is not None and (json_output or report_format != "pgdyno"):
        raise UsageError(msg("error-figure-alone"), msg("remedy-give-one-them"))
    if (path / _DRILL).is_file():
        from pgdyno.cli import drill

        if report_format != "pgdyno" or figure is not None:
            raise UsageError(msg("error-drill-report-one-form", path=path), msg("remedy-leave-report-format-out"))
        return drill.report(path, json_output=json_output, lang=lang)
    # A report keeps what it reads until it ends; looking for cycles among it takes a tenth of the time.
    gc.disable()
    data = replace(reading.read(path), under_way=rundir.is_under_way(path))
    if json_output:
        as_json.write(as_json.run_as_json(RunAnalysis(data), 0, heading.error(data)))
        return 0
    if not any(t.summary for t in data.trials):
        raise UsageError(msg("error-no-finished-trial-there-nothing-2", path=path))
    if report_format == "sysbench":
        sys.stdout.write(sysbench.text(data))
        return 0
    if data.manifest.observed:
        from pgdyno.cli import observe

        if figure is not None:
            raise UsageError(msg("error-observed-figure"))
        return observe.report(RunAnalysis(data), lang)
    v = view.build(RunAnalysis(data), lang=lang)
    if figure is not None:
        return _write_figure(v, figure)
    console.show(v, console.output(), details=details)
    if data.under_way:
        # The run writes its own report when it ends.
        sys.stderr.write(i18n.text(message("report-later", path=Name(str(path))), lang) + "\n")
        return 0
    for written in write.write(v, rundir.RunDirectory(path).write_text):
        sys.stderr.write(i18n.text(message("report-written", path=Name(str(written))), lang) + "\n")
    return 0


def whitepaper(paths: Sequence[Path], file: Path, title: str | None, lang: str) -> int:
    """Write runs and drills as one document to print."""
    if file.suffix != ".html":
        raise UsageError(msg("error-whitepaper-html", file=file), msg("remedy-whitepaper-html"))
    sources = [_source(path, lang) for path in paths]
    with writing(file):
        file.write_text(papers.render(sources, Name(title) if title else None, lang), encoding="utf-8")
    sys.stderr.write(i18n.text(message("whitepaper-written", path=Name(str(file))), lang) + "\n")
    return 0


def _source(path: Path, lang: str) -> papers.Source:
    if (path / _DRILL).is_file():
        from pgdyno.drill import drill, page

        found = drill.read(path)
        if not found.rounds:
            raise UsageError(msg("error-no-round-there-nothing-report", folder=path))
        return page.source(found, lang)
    data = replace(reading.read(path), under_way=rundir.is_under_way(path))
    if not any(t.summary for t in data.trials):
        raise UsageError(msg("error-no-finished-trial-there-nothing-2", path=path))
    return papers.source_of(view.build(RunAnalysis(data), lang=lang))


def _write_figure(v: view.View, path: Path) -> int:
    """Write the chart that the file's name names."""
    charts = {c.name: c for c in v.charts}
    if path.suffix != ".svg" or path.stem not in charts:
        names = ", ".join(f"{name}.svg" for name in charts)
        raise UsageError(msg("error-no-figure", file=path.name), msg("remedy-choices", choices=names))
    with writing(path):
        path.write_text(write.picture(charts[path.stem], v), encoding="utf-8")
    sys.stderr.write(i18n.text(message("figure-written", path=Name(str(path))), v.lang) + "\n")
    return 0
