"""Head of a report: subject and location of the run, errors, and caveats."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from pgdyno.analysis.series import is_trend
from pgdyno.judge.canaries import host_changes
from pgdyno.message import Argument, Message, Name, Text, listed, message
from pgdyno.model import WRONG, Caveat, Key, TrialRecord
from pgdyno.report.names import clients, trials_of
from pgdyno.results.analysis import RunAnalysis
from pgdyno.store.manifest import Manifest, Place
from pgdyno.store.reading import RunData
from pgdyno.store.texts import english
from pgdyno.units import Quantity

GIB = 1024**3

#: From the first repetitions to the last.
_DRIFT = 0.1
#: With fewer repetitions no order is a sign; a large change, all in one direction, is worth a word all the same.
_FEW, _LARGE_DRIFT = 5, 0.3
#: Failed trials that the head of a report names.
_SOME = 3


def error(data: RunData) -> Text | None:
    """Return why the run ended early, if it did, which trials failed, and which files cannot be read."""
    ended = _ended(data)
    known = data.manifest.error
    failed = [t for t in data.trials if t.state == "failed" and (not known or english(t.error) not in known)]
    texts: list[Text] = [trial_error(t) for t in failed[:_SOME]]
    if len(failed) > _SOME:
        texts.append(message("more-trials-failed", n=len(failed) - _SOME))
    texts += [message("unreadable", file=Name(path), why=why) for path, why in data.unreadable]
    found = [*([ended] if ended else []), *texts]
    return listed(found, "semicolon") if found else None


def trial_error(t: TrialRecord) -> Text:
    """Return the error of a trial, with its folder."""
    return message("trial-error", folder=Name(t.plan.folder), error=t.error)


def _ended(data: RunData) -> Text | None:
    m = data.manifest
    if m.error_text is not None:
        return m.error_text
    if m.ended_at or data.under_way:
        return None
    done = sum(t.state == "finished" for t in data.trials)
    return message("cut-off", done=done, planned=_or_unknown(m.trials))


def _or_unknown(n: int | None) -> int | Name:
    return Name("?") if n is None else n


def instance(m: Manifest, place: Place | None = None) -> str:
    """Return the size of the server's machine in the notation of vendors: cores and memory.

    For a server on another machine, return the name of its host.
    """
    if not m.same_machine:
        return (m.target.host or "remote")[:14]
    cores = (place.cpus if place else None) or m.host.cores
    memory = ((place.memory_bytes if place else None) or m.host.memory_bytes) / GIB
    return f"{'?' if cores is None else f'{cores:g}'} CPU {memory:.3g} GiB"


def version_of(m: Manifest) -> str:
    """Return the server's product and version."""
    if m.server.product:
        # Behind the number stand the packager's: 10.11.19-MariaDB-0+deb12u1.
        return f"{m.server.product} {(m.server.setting('version') or '?').partition('-')[0]}"
    return f"PostgreSQL {m.server.setting('server_version') or m.server.protocol_version or '?'}"


def title(data: RunData) -> Text:
    """Return the title of the experiment; of a capacity search, what was searched for and with which load."""
    m = data.manifest
    if m.capacity is not None and m.capacity.objective and data.trials:
        t = data.trials[0].plan
        return message(
            "title-capacity", slo=Name(m.capacity.objective), where=listed([Name(t.workload), clients(t.clients)])
        )
    return Name(m.title or m.name, m.title_zh) if m.title or m.name else message("title-run")


def subtitle(data: RunData) -> Message:
    """Return the server's version, its machine, the time, and the trials."""
    m = data.manifest
    done = sum(t.state == "finished" for t in data.trials)
    args: dict[str, Argument] = {
        "version": Name(version_of(m)), "machine": Name(instance(m)), "at": Name(_minute(m.started_at)), "done": done,
        "trials": len(data.trials) if m.trials is None else m.trials,
    }  # fmt: skip
    return Message("subtitle-under-way" if data.under_way else "subtitle", args)


def _minute(at: str) -> str:
    """Return a time of the record to the minute; one that is none, as it is."""
    match = re.match(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d).*Z$", at)
    return f"{match[1]} {match[2]} UTC" if match else at


@dataclass(frozen=True)
class CaveatText:
    """A caveat as a report shows it."""

    text: Message
    remedy: Message
    #: Number of trials with it.
    trials: Message
    #: A run with it ends with exit code 1.
    is_wrong: bool

    @property
    def brief(self) -> Message:
        """The caveat without its remedy, and the number of its trials where there are others."""
        is_everywhere = self.trials.args["m"] == self.trials.args["n"]
        return self.text if is_everywhere else message("caveat-in-some", text=self.text, trials=self.trials)

    @property
    def sentence(self) -> Message:
        """The caveat in one sentence."""
        return message("caveat", text=self.text, trials=self.trials, remedy=self.remedy)


def caveats(run: RunAnalysis) -> list[CaveatText]:
    """Return the caveats of a run. What went wrong comes first, then what is merely to be known."""
    data = run.data
    counts = Counter(c for t in data.trials for c in t.caveats)
    levels = _levels(run, counts.pop(Caveat.NO_ONE_LEVEL, 0))
    wrong = {c for c in counts if c in WRONG}
    m = data.manifest
    if m.shrunk:
        counts[Caveat.SHRUNK] = len(data.trials)
    if m.same_machine:
        counts[Caveat.SHARED_MACHINE] = len(data.trials)
    # A duet's slices say how far they lie apart.
    if 0 < m.run.repetitions * m.run.restarts < 3 and not m.run.is_duet and m.capacity is None:
        counts[Caveat.FEW_REPETITIONS] = len(data.trials)
    for t in drifting(data):
        counts[Caveat.DRIFT] += t
    if m.not_recorded:
        counts[Caveat.NOT_RECORDED] = len(data.trials)
    if _fits_in_memory(m):
        counts[Caveat.FITS_IN_MEMORY] = len(data.trials)
    ordered = sorted(counts.items(), key=lambda x: x[0] not in WRONG)
    found = [CaveatText(c.message, c.advice, trials_of(n, len(data.trials)), c in wrong) for c, n in ordered]
    return sorted([*levels, *found, *_host_changes(data)], key=lambda c: not c.is_wrong)


def _levels(run: RunAnalysis, n: int) -> list[CaveatText]:
    """Return the caveat of `n` trials that have no one level, and of trials of a duet that have no one ratio."""
    of = len(run.data.trials)
    if not run.data.manifest.run.is_duet:
        if not n:
            return []
        c = Caveat.NO_ONE_LEVEL
        text = c.message if run.spoiling else message("caveat-levels-left-out")
        return [CaveatText(text, c.advice, trials_of(n, of), bool(run.spoiling))]
    found = []
    if uneven := run.comparisons.uneven:
        spoils = bool(run.spoiling)
        text = message("caveat-no-one-ratio")
        found.append(CaveatText(text, message("caveat-no-one-ratio-remedy"), trials_of(len(uneven), of), spoils))
    if n:
        text = message("caveat-levels-cancel")
        found.append(CaveatText(text, message("caveat-levels-cancel-remedy"), trials_of(n, of), False))
    return found


def _host_changes(data: RunData) -> list[CaveatText]:
    """Return a caveat for each figure of the machine that was not the same in all trials."""
    return [
        CaveatText(
            message(
                "caveat-host", figure=message(f"canary-{c.figure.removesuffix('_ns')}"),
                ratio=Quantity(c.ratio, "change"),
            ),
            message("caveat-host-remedy"),
            trials_of(len(c.trials), len(data.trials)),
            is_wrong=False,
        )
        for c in host_changes(data)
    ]  # fmt: skip


def drifting(data: RunData) -> list[int]:
    """Return the number of trials of each configuration whose throughput drifts over the repetitions.

    The throughput drifts if the last third differs much from the first and the order is significant. The test is
    Kendall's tau, with one false alarm in 20. With fewer than five repetitions, the change must be large instead, and
    all in one direction.
    """
    found = []
    groups: dict[Key, list[TrialRecord]] = {}
    for t in data.trials:
        if t.summary is not None and t.state == "finished" and t.parameters.get("rate") is None:
            groups.setdefault(t.plan.key, []).append(t)
    for trials in groups.values():
        tps = [t.summary.tps for t in sorted(trials, key=lambda t: t.plan.repetition) if t.summary]
        third = len(tps) // 3
        if third and sum(tps[:third]) > 0:
            ratio = sum(tps[-third:]) / sum(tps[:third])
            few = len(tps) < _FEW and tps in (sorted(tps), sorted(tps, reverse=True))
            if (abs(ratio - 1) > _DRIFT and is_trend(tps)) or (abs(ratio - 1) > _LARGE_DRIFT and few):
                found.append(len(tps))
    return found


def _fits_in_memory(m: Manifest) -> bool:
    data = sum(m.dataset.bytes.values()) if m.dataset else 0
    match = re.fullmatch(r"(\d+)\s*(kB|MB|GB|TB)", m.server.setting("shared_buffers") or "")
    if not match:
        return False
    factor = {"kB": 1024, "MB": 1024**2, "GB": 1024**3, "TB": 1024**4}[match[2]]
    return bool(data and data < int(match[1]) * factor)
