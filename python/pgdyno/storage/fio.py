"""fio: the four jobs of a database's storage, random and sequential, in pages of 8 kB, 65% reads and 35% writes.

Direct: past the page cache by libaio with a queue of 16, as databases with buffers of their own do. Buffered: through
it, one after the other, as PostgreSQL does.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pgdyno.cluster.account import Account
from pgdyno.cluster.process import run_while_we_live
from pgdyno.errors import LocalError, msg
from pgdyno.store.probe import FioJob, Stream

#: Name, title, and what differs from job to job.
JOBS = (
    ("random-direct", "random direct", ("--rw=randrw", "direct")),
    ("sequential-direct", "sequential direct", ("--rw=rw", "direct")),
    ("random-buffered", "random buffered", ("--rw=randrw", "buffered")),
    ("sequential-buffered", "sequential buffered", ("--rw=rw", "buffered")),
)
_ENGINES = {
    "direct": (
        "--direct=1", "--ioengine=libaio", "--iodepth=16", "--iodepth_batch=8", "--iodepth_low=8",
        "--iodepth_batch_complete=8",
    ),
    "buffered": ("--direct=0", "--ioengine=sync"),
}  # fmt: skip
#: Seconds before each job's measurement begins.
RAMP_S = 2
_PERCENTILES = "50:95:99:99.9"


def version(program: str) -> str:
    """Fio's version."""
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def run(
    program: str,
    folder: Path,
    account: Account,
    *,
    size: int,
    threads: int,
    seconds: float,
    watch: Callable[[str, int], object],
) -> list[FioJob]:
    """Run the fio jobs as the account, on one file of `size` bytes in `folder`.

    `watch` is called with the title and the number of each job. Raise LocalError, with fio's message, if a job fails.
    """
    results = []
    for number, (name, title, (pattern, engine)) in enumerate(JOBS):
        watch(title, number)
        argv = [
            program, f"--name={name}", f"--filename={folder / 'fio'}", f"--size={size}", f"--numjobs={threads}",
            "--thread", "--time_based", f"--runtime={seconds:g}", f"--ramp_time={RAMP_S}", "--group_reporting",
            "--randrepeat=0", "--norandommap", "--bs=8k", "--rwmixwrite=35", f"--percentile_list={_PERCENTILES}",
            "--lat_percentiles=1",
            "--clat_percentiles=0", "--output-format=json", "--fallocate=none", pattern, *_ENGINES[engine],
        ]  # fmt: skip
        done = run_while_we_live(argv, account)
        if done.returncode != 0:
            reason = " ".join((done.stderr or done.stdout).split())[:300]
            raise LocalError(
                msg("error-fio-failed-job", title=title, reason=reason), msg("remedy-there-space-may-you-write")
            )
        results.append(parse(done.stdout, name, title))
    return results


def parse(text: str, name: str, title: str) -> FioJob:
    """One job from fio's JSON, which may have warnings before it."""
    try:
        job = json.loads(text[text.index("{") :])["jobs"][0]
        return FioJob(name, title, _stream(job["read"]), _stream(job["write"]))
    except (ValueError, KeyError, IndexError, TypeError) as e:
        raise LocalError(
            msg("error-fio-s-output-not-what", reason=repr(e)), msg("remedy-which-version-fio-3-known")
        ) from e


def _stream(data: dict[str, Any]) -> Stream:
    latency = data["lat_ns"]
    percentiles = {float(k): int(v) for k, v in latency.get("percentile", {}).items()}
    return Stream(
        operations=int(data["total_ios"]),
        iops=float(data["iops"]),
        bytes_per_s=float(data["bw_bytes"]),
        mean_ns=float(latency["mean"]),
        stddev_ns=float(latency["stddev"]),
        p50_ns=percentiles.get(50.0, 0),
        p95_ns=percentiles.get(95.0, 0),
        p99_ns=percentiles.get(99.0, 0),
        p999_ns=percentiles.get(99.9, 0),
        max_ns=int(latency["max"]),
    )
