"""Layout of a run directory: the names of its files."""

from __future__ import annotations

#: Of a trial that is under way, and of one that has ended.
LINES, INTERVALS = "intervals.jsonl", "intervals.parquet"
#: Columns of the latter that say which trial it is of, and when each interval ended.
ADDED = ("trial", "time")
#: Of a trial that has ended: its histograms, merged over its intervals.
MERGED = "latency.merged"
#: Its histograms by interval.
LOG = "latency.hlog"
#: Of each trial: what it was, how it ended, its summary.
TRIAL = "trial.json"
#: What happened: a line an event.
EVENTS = "events.jsonl"
#: Of a run: what was found of its configurations.
FINDINGS = "findings.json"
#: In a trial's folder: what was checked in its tables afterwards.
CHECKS = "checks.json"
