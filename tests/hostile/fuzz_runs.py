"""Damages run directories, and has every verb read them: each ends in an answer or in a message.

python -m tests.hostile.fuzz_runs SECONDS [SEED]
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from pgdyno.cli.main import app
from pgdyno.errors import PgdynoError

from tests.support import synthetic

SOURCE = Path(__file__).parents[1] / "data" / "schema-0"
#: What no reader expects.
ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    1e308,
    float("inf"),
    2**70,
    "",
    "x" * 5000,
    "\x1b[31m",
    "../..",
    [],
    {},
    [[]],
    {"a": {}},
]


def mutated(value: Any, rng: random.Random) -> Any:
    """JSON with one value replaced, removed, doubled or nested."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        way = rng.random()
        if way < 0.15:
            return {k: v for k, v in value.items() if k != key}
        if way < 0.2:
            return {**value, "unheard of": rng.choice(ODD)}
        return {**value, key: mutated(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.85:
        n = rng.randrange(len(value))
        return [*value[:n], mutated(value[n], rng), *value[n + rng.randrange(2) :]]
    return rng.choice(ODD)


def damage(run: Path, rng: random.Random) -> str:
    """Damages one file or folder; says how."""
    paths = sorted(p for p in run.rglob("*") if not p.is_symlink())
    path = rng.choice(paths)
    name = path.relative_to(run)
    if path.is_dir():
        shutil.rmtree(path)
        if rng.random() < 0.5:
            path.write_bytes(b"a file")
        return f"{name}: no folder"
    raw = path.read_bytes()
    ways = ["truncated", "flipped", "zeroed", "removed", "a folder", "a link", "noise", "empty", "doubled"]
    ways += ["json"] * 12 if path.suffix == ".json" else []
    way = rng.choice(ways)
    path.unlink()
    if way == "truncated":
        path.write_bytes(raw[: rng.randrange(len(raw) + 1)])
    elif way == "flipped":
        broken = bytearray(raw or b"\0")
        for _ in range(rng.choice([1, 1, 8, 64])):
            broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
        path.write_bytes(broken)
    elif way == "zeroed":
        at = rng.randrange(len(raw) + 1)
        path.write_bytes(raw[:at] + bytes(min(512, len(raw) - at)) + raw[at + 512 :])
    elif way == "a folder":
        path.mkdir()
    elif way == "a link":
        path.symlink_to(rng.choice([path.name, "/nonexistent", "/dev/null", "/etc"]))
    elif way == "noise":
        path.write_bytes(rng.randbytes(rng.randrange(4000)))
    elif way == "empty":
        path.write_bytes(b"")
    elif way == "doubled":
        path.write_bytes(raw + raw)
    elif way == "json":
        try:
            path.write_text(json.dumps(mutated(json.loads(raw), rng)))
        except ValueError:
            # It was damaged before.
            path.write_bytes(raw)
    return f"{name}: {way}"


def called(words: list[str]) -> str:
    """What came of a call: "done", or the first line of the message. Any other exception is a defect, and raised."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            app(words, standalone_mode=False)
        except PgdynoError as e:
            assert e.message, words
            return "refused"
        except Exception as e:
            # The command line's own.
            if not hasattr(e, "show") and type(e).__name__ != "Exit":
                raise
    return "done"


def fuzz(seconds: float, seed: int) -> Counter[str]:
    """Damages for so long; returns how many calls ended how. Raises AssertionError with what has to be mended."""
    outcomes: Counter[str] = Counter()
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="pgdyno-test-") as name:
        folder = Path(name)
        # As a pgdyno of old wrote it, and as this one does.
        wholes = [folder / "old", folder / "new"]
        shutil.copytree(SOURCE, wholes[0])
        for place in (wholes[1], *(folder / f"new-{n}" for n in range(8))):
            plans = synthetic.plans([2, 4], 2)
            synthetic.make_run(folder, plans, lambda *_: 1000.0, intervals=5).rename(place)
        while time.monotonic() < end:
            seed += 1
            rng = random.Random(seed)
            run = folder / "run"
            whole = rng.choice(wholes)
            shutil.copytree(whole, run)
            damages = [damage(run, rng) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
            verb = rng.choice(["report", "report", "compare", "sql", "history", "scaling", "run"])
            words = {
                "report": ["report", str(run), "--lang", rng.choice(["en", "zh"])],
                "compare": ["compare", *rng.sample([str(run), str(whole)], 2)],
                "sql": ["sql", "select * from trials, intervals limit 3", "--runs", str(folder)],
                "history": ["history", str(folder)],
                "scaling": ["scaling", str(run)],
                # A server that is not there: it must get as far as that, or refuse.
                "run": ["run", str(run), "--target", "host=/nonexistent", "-q"],
            }[verb] + (["--json"] if verb != "run" and rng.random() < 0.3 else [])
            try:
                outcomes[f"{verb}: {called(words)}"] += 1
            except BaseException as e:
                e.add_note(f"seed {seed}: {damages}; pgdyno {' '.join(words)}")
                raise
            finally:
                if run.is_symlink() or run.is_file():
                    run.unlink()
                else:
                    shutil.rmtree(run)
    return outcomes


if __name__ == "__main__":
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    for outcome, n in sorted(fuzz(float(sys.argv[1]), seed).items()):
        sys.stdout.write(f"{n:6} {outcome}\n")
