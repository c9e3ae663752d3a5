"""`pgdyno`: the verbs. Everything heavy is imported inside them, so that --help answers at once."""

from __future__ import annotations

import sys
from typing import Annotated, NoReturn

import typer

from pgdyno.cli import options, streams, verbs_drill, verbs_find, verbs_judge, verbs_load, verbs_run
from pgdyno.cli.cluster_app import cluster
from pgdyno.cli.help import SHORT, Command, Group
from pgdyno.cli.tpcc_app import tpcc

#: What EAGAIN is about where a process or a thread is started.
_NO_PROCESS = (
    "no process or thread can be started: the account has as many as its limit allows\n"
    "Raise it (ulimit -u; of a container: pids.max), or end what runs there."
)
EXIT_CODES = """
Exit codes: 0 success; 1 finished with problems that the report names; 2 mistake in the command line, an experiment or a
script; 3 server not reachable, or it refuses; 4 a server that pgdyno started died; 5 this machine refuses (disk full,
permissions); 6 a condition of --fail-if is true; 70 defect of pgdyno; 130 Ctrl-C; 143 SIGTERM.
"""

app = typer.Typer(
    name="pgdyno",
    cls=Group,
    help="A dynamometer for PostgreSQL: how fast it is, what limits it, and whether that answer can be trusted.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from pgdyno import __version__

        print(f"pgdyno {__version__}")  # noqa: T201
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option("--version", "-V", help="Print the version and exit.", is_eager=True, callback=_version),
    ] = False,
    lang: Annotated[
        str | None, typer.Option(help="Language of all output: en or zh. Default: from the locale.", metavar="LANG")
    ] = None,
) -> None:
    """Handle the options common to all commands, and remove folders of killed pgdyno processes.

    pgdyno is a dynamometer for PostgreSQL: it shows how fast a server is, what limits it, and whether that answer can
    be trusted.
    """
    from pgdyno.cluster import registry

    if lang is not None:
        options.language(lang)
    # Whoever only asks for help changes nothing.
    if not registry.is_empty() and not {"-h", "--help"} & set(sys.argv):
        from pgdyno.cluster import leftovers

        for folder in leftovers.sweep():
            sys.stderr.write(f"pgdyno: removed {folder}, left by a pgdyno that was killed\n")


for _verb in (
    verbs_run.run,
    verbs_run.plan,
    verbs_run.experiments,
    verbs_run.new,
    verbs_run.capture,
    verbs_load.load,
    verbs_load.storage,
    verbs_find.watch,
    verbs_find.runs,
    verbs_judge.report,
    verbs_judge.explain,
    verbs_judge.compare,
    verbs_judge.history,
    verbs_judge.judge,
    verbs_judge.observe,
    verbs_judge.scaling,
    verbs_run.capacity,
    verbs_drill.drill,
    verbs_judge.sql,
    verbs_judge.export,
):
    app.command(cls=Command, short_help=SHORT[_verb.__name__])(_verb)
app.add_typer(cluster, name="cluster")
app.add_typer(tpcc, name="tpcc")


@app.command(
    add_help_option=False,
    short_help="Replacement for pgbench, with additions (pgdyno pgbench --help).",
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
def pgbench(arguments: Annotated[list[str] | None, typer.Argument(metavar="[OPTION]... [DBNAME]")] = None) -> None:
    """Run pgbench: a drop-in with its options, output, logs and exit codes, and additions (pgdyno pgbench --help)."""
    # The console script takes this way before it comes here; this one is for the list of commands.
    from pgdyno.pgbench.main import main

    raise typer.Exit(main(arguments or []))


def entry() -> NoReturn:
    """Run the console script and turn every pgdyno error into a message and an exit code, never a traceback."""
    from pgdyno.errors import EXIT_DEFECT, EXIT_SIGINT, EXIT_SIGTERM, LocalError, PgdynoError
    from pgdyno.interrupt import Terminated

    streams.prepare()
    streams.clean_warnings()
    streams.language = options.asked_for(sys.argv[1:])
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except PgdynoError as e:
        streams.say_error(e)
        code = e.exit_code
    except SystemExit as e:
        # click's way to end where whoever read our output has closed it (| head): nothing went wrong.
        code = 0 if type(sys.stdout).__name__ == "PacifyFlushWrapper" else e.code
    except (KeyboardInterrupt, typer.Abort):
        # Before a run has begun; a run winds itself up.
        streams.say("interrupted by Ctrl-C")
        code = EXIT_SIGINT
    except Terminated:
        code = EXIT_SIGTERM
    except PermissionError as e:
        streams.say(f"permission denied: {e.filename}\nUse the account that it belongs to, or root.")
        code = LocalError.exit_code
    except BlockingIOError:
        streams.say(_NO_PROCESS)
        code = LocalError.exit_code
    except BrokenPipeError:
        # Whoever read our output has closed it (| head).
        streams.give_up_output()
        code = 0
    except OSError as e:
        # Of files whoever works with them says more; what comes up to here is mostly standard output, on a full disk.
        named = f": {e.filename}" if e.filename else ""
        streams.give_up_output()
        streams.say(f"{e.strerror or e}{named}")
        code = LocalError.exit_code
    except Exception as e:
        # The command line's own mistakes know how to show themselves.
        if "can't start new thread" in str(e):
            streams.say(_NO_PROCESS)
            code = LocalError.exit_code
        elif hasattr(e, "show"):
            e.show()
            code = getattr(e, "exit_code", 2)
        else:
            streams.say(f"{type(e).__name__}: {e}\n{streams.written(streams.written_down(e))}")
            code = EXIT_DEFECT
    streams.leave(code or 0)
