"""Commands whose help has groups of options and examples, in the language of the output.

English texts stand where a command or an option is declared, Chinese ones in the catalogue's `help.ftl`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from typer.core import TyperCommand, TyperGroup

from pgdyno.cli import mistakes, streams
from pgdyno.cli.options import PANELS
from pgdyno.errors import UsageError, msg
from pgdyno.message import Message, Name, listed, message

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
    "watch": ("pgdyno watch", "pgdyno watch runs/20261123T093000Z-quick"),
    "runs": ("pgdyno runs", "pgdyno runs --experiment nightly --tag new-disk"),
    "report": (
        "pgdyno report runs/20261123T093000Z-quick --lang zh",
        "pgdyno report runs/20261123T093000Z-quick --figure tps.svg",
    ),
    "explain": (
        "pgdyno explain runs/20261123T093000Z-quick",
        "pgdyno explain runs/20261123T093000Z-quick --verify --budget 10m",
    ),
    "compare": (
        "pgdyno compare runs/A runs/B --page compared.html",
        "pgdyno compare runs/A1 runs/A2 runs/A3 --side-b runs/B1 --side-b runs/B2 --side-b runs/B3",
        'pgdyno compare --live "host=db1 dbname=bench" "host=db2 dbname=bench"',
    ),
    "history": ("pgdyno history runs --experiment nightly --fail-if worse",),
    "judge": (
        "pgdyno judge pgbench.log",
        "pgdyno judge before.txt after.txt",
        "pgdyno judge a1.txt a2.txt a3.txt --side-b b1.txt --side-b b2.txt --side-b b3.txt",
    ),
    "observe": (
        'pgdyno observe --target "host=db1 dbname=shop" --for 60',
        'pgdyno observe --target "host=db1 dbname=shop" --every 10m',
    ),
    "scaling": ("pgdyno scaling runs/20261123T093000Z-quick --predict-to 128",),
    "capacity": ("pgdyno capacity quick --workload read-write --slo 'p99<5ms'",),
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
    "watch": "Watch a run that was started elsewhere.",
    "runs": "List the runs in a folder.",
    "report": "Show and rewrite the report of a run.",
    "explain": "Explain what limits a run.",
    "compare": "Compare two runs or two running servers.",
    "history": "Find the run from which an experiment became slower.",
    "judge": "Judge results of other tools: steady, long enough?",
    "observe": "Observe a running server; read only, no load.",
    "scaling": "Find the number of clients with most throughput.",
    "capacity": "Find the highest rate under a latency objective.",
    "drill": "Inject faults and count lost commits.",
    "sql": "Query run directories with SQL (DuckDB).",
    "export": "Export time series for other tools.",
}
#: Names of an earlier version, which work for one more release.
DEPRECATED = ("--with", "--until", "--plan")
#: Group of options that belong to no other.
_REST = "Options"


class _Helped:
    """Help and mistakes of a command or a group of commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read arguments. Raise UsageError."""
        try:
            return super().parse_args(ctx, args)  # type: ignore[misc, no-any-return]
        except Exception as e:
            if not mistakes.is_usage(e):
                raise
            raise mistakes.explained(e, ctx) from e

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        """Write the usage line."""
        pieces = " ".join(self.collect_usage_pieces(ctx))  # type: ignore[attr-defined]
        formatter.write_usage(ctx.command_path, pieces, prefix=f"{_text('help-usage', 'Usage:')} ")

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write what the command does."""
        text = _text(command_id(ctx), inspect.cleandoc(self.help or ""))  # type: ignore[attr-defined]
        if text:
            formatter.write_paragraph()
            with formatter.indentation():
                _paragraph(formatter, text)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then options by group; those of no group come last."""
        arguments: list[tuple[str, str]] = []
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):  # type: ignore[attr-defined]
            record = param.get_help_record(ctx)
            if record is None:
                continue
            names, text = record[0], _described(ctx, param, record[1])
            for old in DEPRECATED:
                names = names.replace(f", {old}", "")
            if param.param_type_name == "argument":
                arguments.append((names.partition(" <")[0], text))
            else:
                groups.setdefault(getattr(param, "rich_help_panel", None) or _REST, []).append((names, text))
        if arguments:
            with _section(formatter, _text("help-arguments", "Arguments")):
                _definitions(formatter, arguments)
        own = [p for p in groups if p not in (*PANELS, _REST)]
        for panel in (*PANELS[:1], *own, *PANELS[1:], _REST):
            if panel not in groups:
                continue
            with _section(formatter, _text(f"help-panel-{panel.lower().replace(' ', '-')}", panel)):
                _definitions(formatter, groups[panel])


class Command(_Helped, TyperCommand):
    """A command whose help has groups of options and examples."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        examples = EXAMPLES.get(_path(ctx), ())
        if not examples:
            return
        formatter.write_paragraph()
        formatter.write(f"{_text('help-examples', 'Examples:')}\n")
        for line in examples:
            formatter.write(f"  {line}\n")


class Group(_Helped, TyperGroup):
    """A group of commands, with a line of help for each."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, then the commands."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a line for each command."""
        rows = []
        for name, command in self.commands.items():
            path = f"{command_id(ctx)}-{name}"
            english = command.short_help or inspect.cleandoc(command.help or "").partition("\n\n")[0]
            rows.append((name, _text(f"{path}-short", "") or _first_sentence(_text(path, english))))
        with _section(formatter, _text("help-commands", "Commands")):
            _definitions(formatter, rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the exit codes."""
        if self.epilog:
            formatter.write_paragraph()
            _paragraph(formatter, _text("help-exit-codes", inspect.cleandoc(self.epilog)))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the command that is named first. Raise UsageError for an unknown one."""
        if args[0] in self.commands or args[0].startswith("-"):
            return super().resolve_command(ctx, args)
        near = get_close_matches(args[0], self.commands)
        raise UsageError(
            msg("usage-no-command", command=args[0]),
            msg("remedy-did-mean", names=near[0]) if near else mistakes.see_help(ctx),
        )


def command_id(ctx: Any) -> str:
    """Return the id of a command's help: `help-cluster-create`."""
    return "-".join(["help", *_path(ctx).split()])


def option_ids(path: str, name: str) -> tuple[str, str]:
    """Return the ids of an option's help: that of this command alone, and that of every command."""
    name = name.strip("_").replace("_", "-")
    return "-".join(["option", *path.split(), name]), f"option-{name}"


def _path(ctx: Any) -> str:
    """Return the command as it is typed after `pgdyno`."""
    return str(ctx.command_path.partition(" ")[2])


def _described(ctx: Any, param: Any, english: str) -> str:
    """Return the help of an option with its default and range in words. `english` is the parser's text of it."""
    is_argument = param.param_type_name == "argument"
    if not _is_translated():
        english = _without_ranges(english)
        return english.replace("  [required]", "") if is_argument else english
    own, common = option_ids(_path(ctx), param.name)
    text = _text(own, "") or _text(common, param.help or "") if param.name != "help" else _text("help-help", english)
    notes = []
    if param.default not in (None, False, "", ()) and not getattr(param, "is_flag", False):
        notes.append(message("help-default", value=Name(str(param.default))))
    if getattr(param, "min", None) is not None and param.max is not None:
        notes.append(message("help-range", low=Name(f"{param.min:g}"), high=Name(f"{param.max:g}")))
    if param.required and not is_argument:
        notes.append(message("help-required"))
    return text + (_text_of(message("help-notes", notes=listed(notes, "semicolon"))) if notes else "")


def _without_ranges(text: str) -> str:
    """Return a help text without lower bounds, and with other ranges in words."""
    text = re.sub(r"(\[|; )x>=[\d.]+", r"\1", text)
    text = re.sub(r"([\d.]+)<=x<=([\d.]+)", r"\1 to \2", text)
    return text.replace("; ]", "]").removesuffix("  []")


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[。])|(?<=\.) ", text)[0]


def _is_translated() -> bool:
    from pgdyno import i18n

    return (streams.language or i18n.chosen(None)) != "en"


def _text(id: str, english: str) -> str:
    """Return the help of that id in the language of the output; in English, and where it has none, `english`."""
    if not _is_translated():
        return english
    from pgdyno import i18n

    return i18n.catalogue("zh").get(id, english)


def _text_of(m: Message) -> str:
    from pgdyno import i18n

    return i18n.text(m, "zh")


@contextmanager
def _section(formatter: Any, title: str) -> Iterator[None]:
    with formatter.section(title):
        yield


def _paragraph(formatter: Any, text: str) -> None:
    if not _is_translated():
        formatter.write_text(text)
        return
    from pgdyno.wide import wrapped

    indent = " " * formatter.current_indent
    for line in wrapped(text, formatter.width - len(indent)):
        formatter.write(f"{indent}{line}\n")


def _definitions(formatter: Any, rows: Iterable[tuple[str, str]]) -> None:
    """Write names and their texts in two columns."""
    if not _is_translated():
        formatter.write_dl(list(rows))
        return
    from pgdyno.wide import columns

    for line in columns(list(rows), formatter.width - formatter.current_indent, longest_name=30):
        formatter.write(f"{'':{formatter.current_indent}}{line}\n")
