"""The report's page in Chromium: no script errors, figures lead to trials, the filter filters, 10,000 trials stay usable."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from pgdyno.report import html, view
from pgdyno.store import rundir

from tests.support import synthetic

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")

#: Before anything else: what goes wrong is written down.
WATCH = """<script>window.wrong = [];
addEventListener("error", e => wrong.push(String(e.message)));
addEventListener("unhandledrejection", e => wrong.push(String(e.reason)));
const consoleError = console.error; console.error = (...a) => { wrong.push(a.join(" ")); consoleError(...a); };</script>"""
#: After the page is there: a reader's hands.
HANDS = """<script>addEventListener("load", async () => {
  const out = {}; let failure = null;
  try { await look(out); } catch (e) { failure = String(e); }
  out.wrong = failure ? [...wrong, failure] : wrong;
  const pre = document.createElement("pre"); pre.id = "told"; pre.textContent = JSON.stringify(out); document.body.append(pre);
});
async function look(out) {
  const rows = name => document.querySelectorAll(`[data-table="${name}"] tbody tr`).length;
  out.loaded_ms = performance.now(); out.before = rows("trials");
  const input = document.querySelector('[data-filter="trials"]');
  const begun = performance.now();
  input.value = "c8-r2"; input.dispatchEvent(new Event("input"));
  out.filter_ms = performance.now() - begun;
  out.filtered = [...document.querySelectorAll('[data-table="trials"] tbody tr')].map(r => r.cells[0].textContent);
  out.folder = document.querySelector('[data-table="trials"] tbody a')?.getAttribute("href");
  const figure = document.querySelector('[data-table="detail"] tbody a');
  out.figure_of = figure.dataset.trials;
  figure.click();
  out.led_to = [...document.querySelectorAll('[data-table="trials"] tbody tr')].map(r => r.id);
  let csv = "";
  const make = URL.createObjectURL; URL.createObjectURL = blob => { csv = blob; return make.call(URL, blob); };
  document.querySelector('[data-csv="detail"]').click();
  out.csv = await csv.text();
  for (let i = 0; i < 100 && document.querySelectorAll(".chart svg").length < document.querySelectorAll(".chart").length; i++)
    await new Promise(r => setTimeout(r, 50));
  out.charts = document.querySelectorAll(".chart svg").length;
  out.wanted = document.querySelectorAll(".chart").length;
}</script>"""


def opened(page: str, tmp_path: Path) -> dict[str, Any]:
    """What the page's reader saw."""
    path = tmp_path / "page.html"
    before, _, after = page.replace("<head>", f"<head>{WATCH}", 1).rpartition("</body>")
    path.write_text(f"{before}{HANDS}</body>{after}")
    assert CHROMIUM is not None
    with tempfile.TemporaryDirectory(prefix="pgdyno-test-") as profile:
        argv = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
        argv += ["--virtual-time-budget=60000", "--dump-dom", f"file://{path}"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True)
    told = re.search(r'<pre id="told">(.*?)</pre>', done.stdout, re.S)
    assert told, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(unescape(told[1]))
    return found


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_page_is_drawn_filtered_and_leads_to_trials(tmp_path: Path, lang: str) -> None:
    plans = synthetic.plans([1, 2, 4, 8], 3, workload="read </script> only", settings=[True, False])
    run = synthetic.make_run(tmp_path, plans, lambda p, i, r: 1000 * p.clients * r.uniform(0.9, 1.1))
    told = opened(html.render(view.build(rundir.read(run), lang=lang)), tmp_path)
    assert told["wrong"] == []
    assert told["charts"] == told["wanted"] == 5
    assert told["before"] == 24
    assert len(told["filtered"]) == 2 and all("c8-r2" in name for name in told["filtered"])
    assert told["folder"].startswith("trials/")
    assert told["led_to"] == [f"trial-{n}" for n in told["figure_of"].split(",")] and len(told["led_to"]) == 3
    lines = told["csv"].splitlines()
    assert len(lines) == 9 and "," in lines[0] and lines[1].startswith("read </script> only,on,100%,1,")


def test_ten_thousand_trials_stay_usable(tmp_path: Path) -> None:
    plans = synthetic.plans(list(range(1, 1001)), 10)
    made = synthetic.make_run(tmp_path, plans[:30], lambda p, i, r: 1000 * r.uniform(0.9, 1.1), intervals=3)
    data = rundir.read(made)
    # All the others as the first ones: making their folders would take longer than all of this.
    copies = [
        data.trials[i % 30].__class__(p, *list(vars(data.trials[i % 30]).values())[1:]) for i, p in enumerate(plans)
    ]
    series = {p.number: data.series[i % 30 + 1] for i, p in enumerate(plans)}
    buckets = {p.number: data.buckets[i % 30 + 1] for i, p in enumerate(plans)}
    some = data.pooled[plans[0].key]
    many = type(data)(
        data.path, data.manifest, copies, series, buckets, {p.key: some for p in plans}, {p.key: [] for p in plans}
    )
    told = opened(html.render(view.build(many)), tmp_path)
    assert told["wrong"] == []
    assert told["before"] == 100, "drawn in pages"
    assert told["filtered"] and all("c8-r2" in name for name in told["filtered"])
    assert len(told["led_to"]) == 10
