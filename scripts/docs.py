"""Writes what the documentation quotes from the program itself: `make docs`. A test holds the files against this."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from pgdyno.spec.experiment import Experiment

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
CLUSTER = tuple(f"cluster {v}" for v in ("create", "snapshot", "restore", "list", "drop"))
JUDGING = ("compare", "capacity", "history", "scaling")
VERBS = ("run", "plan", "experiments", "load", "cluster", *CLUSTER, "storage", "report", *JUDGING, "sql")


def command_line() -> str:
    """The help of every verb."""
    out = ["# Command line", "", "Written by `make docs`; the words are the program's own.", ""]
    pgdyno = Path(sys.executable).parent / "pgdyno"
    for verb in ("", *VERBS):
        argv = [str(pgdyno), *verb.split(), "--help"]
        env = {**os.environ, "COLUMNS": "100", "TERMINAL_WIDTH": "100"}
        text = subprocess.run(argv, capture_output=True, text=True, check=True, env=env).stdout
        body = "\n".join(line.rstrip() for line in text.strip().splitlines())
        out += [f"## pgdyno {verb}".rstrip(), "", "```", body, "```", ""]
    return "\n".join(out)


def schema() -> str:
    """The JSON Schema of experiment files, for editors."""
    return json.dumps(Experiment.model_json_schema(), indent=2) + "\n"


def files() -> dict[Path, str]:
    """What is written where."""
    return {REFERENCE / "command-line.md": command_line(), REFERENCE / "experiment.schema.json": schema()}


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
