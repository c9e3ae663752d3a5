"""The console scripts. `pgbench` is looked at first, so that it starts without loading what it does not need."""

from __future__ import annotations

import atexit
import os
import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from types import ModuleType
from typing import Any, NoReturn


def pgdyno() -> NoReturn:
    """Run the command `pgdyno`."""
    if sys.argv[1:2] == ["pgbench"]:
        _pgbench(sys.argv[2:])
    # Pydantic looks through all installed distributions for plugins when it is imported: a tenth of the start.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    from pgdyno.cli.main import entry

    entry()


def pgbench() -> NoReturn:
    """Run the command `pgbench`."""
    _pgbench(sys.argv[1:])


def _pgbench(arguments: list[str]) -> NoReturn:
    _import_lazily("inspect")
    from pgdyno.cli import streams
    from pgdyno.pgbench.main import main

    streams.prepare()
    # Who looks for pgbench among the processes finds it by its first word, not by the interpreter's.
    _set_title(" ".join(["pgbench", *arguments]).encode("utf-8", "replace").decode())
    try:
        code = main(arguments, streams.clean_warnings)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has closed it (| head).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    except OSError as e:
        # Only what is written to the standard streams comes up to here.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.stderr.write(f"pgbench: error: could not write to standard output: {e.strerror}\n")
        code = 1
    _end(code)


def _end(code: int) -> NoReturn:
    """End the process at once: all files are closed, and taking Python down would be a tenth of a short run."""
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = code or 1
    os._exit(code)


def _import_lazily(name: str) -> None:
    """Load a module when its first attribute is read; dataclasses import `inspect` for docstrings that are missing."""

    def attribute(wanted: str) -> Any:
        if sys.modules.get(name) is module:
            del sys.modules[name]
        return getattr(import_module(name), wanted)

    # The module of `importlib.util.LazyLoader` is loaded as soon as another module imports it.
    module = ModuleType(name)
    module.__dict__["__getattr__"] = attribute
    sys.modules.setdefault(name, module)


def _set_title(title: str) -> None:
    """Set the title of the process by setproctitle's module in C; its package imports logging, a tenth of the start."""
    package = PathFinder.find_spec("setproctitle")
    found = PathFinder.find_spec("_setproctitle", package.submodule_search_locations if package else None)
    if found is not None and found.loader is not None:
        module = module_from_spec(found)
        found.loader.exec_module(module)
        module.setproctitle(title)
