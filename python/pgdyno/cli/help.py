"""Help texts: options by group, and examples of each command."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from typer.core import TyperCommand

from pgdyno.cli.options import PANELS

#: Commands to type, by the command's path.
EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "run": (
        "pgdyno run quick",
        'pgdyno run quick --target "host=db1 dbname=bench" --clients 1,8,64',
        "pgdyno run quick --vary wal_compression=off,lz4",
        "pgdyno run runs/20261123T093000Z-quick     # continue an interrupted run",
    ),
    "plan": ("pgdyno plan tpcc", "pgdyno plan shop.toml --clients 8,64"),
    "experiments": ("pgdyno experiments",),
    "new": ("pgdyno new shop.toml --from schema.sql", 'pgdyno new shop.toml --from "host=db1 dbname=shop"'),
    "capture": (
        'pgdyno capture --target "host=db1 dbname=shop" --output shop --seconds 600',
        'pgdyno capture --target "host=replica dbname=shop" --log postgresql.csv --output shop',
    ),
    "load": (
        'pgdyno load tpcb --scale 1000 --target "host=db1 dbname=bench"',
        "pgdyno load tpcc --warehouses 100 --data /srv/pg/data",
    ),
    "storage": ("pgdyno storage /srv/pg",),
    "report": ("pgdyno report runs/20261123T093000Z-quick --lang zh",),
    "explain": ("pgdyno explain runs/20261123T093000Z-quick",),
    "compare": (
        "pgdyno compare runs/A runs/B",
        "pgdyno compare runs/A1 runs/A2 runs/A3 --side-b runs/B1 --side-b runs/B2 --side-b runs/B3",
        'pgdyno compare --live "host=db1 dbname=bench" "host=db2 dbname=bench"',
    ),
    "history": ("pgdyno history runs --experiment nightly --fail-if worse",),
    "scaling": ("pgdyno scaling runs/20261123T093000Z-quick --predict-to 128",),
    "capacity": ("pgdyno capacity tpcb --slo 'p99<5ms'",),
    "drill": (
        "pgdyno cluster create ha --standbys 2 --sync 'ANY 1 (*)'",
        "pgdyno drill ha --fault kill-primary,cut-primary --rounds 5",
    ),
    "sql": ('pgdyno sql "select workload, clients, avg(tps) from trials group by all"',),
    "export": ("pgdyno export runs/20261123T093000Z-quick --openmetrics --output run.om",),
    "cluster create": ("pgdyno cluster create ha --standbys 2 --sync 'ANY 1 (*)'",),
    "cluster link": ("pgdyno cluster link ha --between node1,node2 --round-trip-ms 2 --seconds 60",),
    "cluster flashback": ('pgdyno cluster flashback ha --to "2026-11-23 09:30:00+00" --into restored',),
    "cluster snapshot": ("pgdyno cluster snapshot bench --name loaded",),
    "tpcc check": ('pgdyno tpcc check --target "host=db1 dbname=bench"',),
    "tpcc acid": ("pgdyno tpcc acid --isolation 'repeatable read'",),
    "tpcc show": ("pgdyno tpcc show new-order",),
}


#: One line for each command in the list of commands.
SHORT: Mapping[str, str] = {
    "run": "Run an experiment and report it.",
    "plan": "Show what run would do; change nothing.",
    "experiments": "List the built-in experiments.",
    "new": "Write an experiment file, also from a schema.",
    "capture": "Turn the statements of a server into a workload.",
    "load": "Load a dataset at disk speed.",
    "storage": "Measure storage with pg_test_fsync and fio.",
    "report": "Show and rewrite the report of a run.",
    "explain": "Explain what limits a run.",
    "compare": "Compare two runs or two running servers.",
    "history": "Find changes of level over many runs.",
    "scaling": "Fit the Universal Scalability Law.",
    "capacity": "Find the highest rate under a latency objective.",
    "drill": "Inject faults and count lost commits.",
    "sql": "Query run directories with SQL (DuckDB).",
    "export": "Export time series for other tools.",
}
#: Names of an earlier version, which work for one more release.
DEPRECATED = ("--with", "--until", "--plan")
#: Group of options that belong to no other.
_REST = "Options"


def _without_ranges(text: str) -> str:
    """Return a help text without lower bounds, and with other ranges in words."""
    text = re.sub(r"(\[|; )x>=[\d.]+", r"\1", text)
    text = re.sub(r"([\d.]+)<=x<=([\d.]+)", r"\1 to \2", text)
    return text.replace("; ]", "]").removesuffix("  []")


class Command(TyperCommand):
    """A command whose help has groups of options and examples."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then options by group; those of no group come last."""
        arguments: list[tuple[str, str]] = []
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            names, text = record
            for old in DEPRECATED:
                names = names.replace(f", {old}", "")
            record = (names, _without_ranges(text))
            if param.param_type_name == "argument":
                arguments.append((names.partition(" <")[0], text.replace("  [required]", "")))
            else:
                groups.setdefault(getattr(param, "rich_help_panel", None) or _REST, []).append(record)
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(arguments)
        own = [p for p in groups if p not in (*PANELS, _REST)]
        for panel in (*PANELS[:1], *own, *PANELS[1:], _REST):
            if panel not in groups:
                continue
            with formatter.section(panel):
                formatter.write_dl(groups[panel])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        examples = EXAMPLES.get(ctx.command_path.partition(" ")[2], ())
        if not examples:
            return
        formatter.write_paragraph()
        formatter.write("Examples:\n")
        for line in examples:
            formatter.write(f"  {line}\n")
