"""A report's page in Chromium, with a reader's hands: what it showed, what went wrong in it, and how long it took."""

from __future__ import annotations

import json
import queue
import shutil
import subprocess
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import resources
from pathlib import Path
from typing import Any

#: Checks a page's accessibility.
AXE = Path(str(resources.files("axe_core_python").joinpath("axe.min.js")))
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

#: Before anything else: what goes wrong is written down.
WATCH = """<script>window.wrong = [];
addEventListener("error", e => wrong.push(String(e.message)));
addEventListener("unhandledrejection", e => wrong.push(String(e.reason)));
const consoleError = console.error; console.error = (...a) => { wrong.push(a.join(" ")); consoleError(...a); };</script>"""
#: After the page is there: a reader's hands. Times are real ones: of the script, and of the frame that shows what it did.
HANDS = """<script>addEventListener("load", async () => {
  const out = {}; let failure = null;
  try { await look(out); } catch (e) { failure = String(e); }
  out.wrong = failure ? [...wrong, failure] : wrong;
  fetch("http://127.0.0.1:PORT/", {method: "POST", mode: "no-cors", body: JSON.stringify(out)});
});
const frame = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));
async function timed(action) { const begun = performance.now(); action(); await frame(); return performance.now() - begun; }
async function look(out) {
  const rows = name => document.querySelectorAll(`[data-table="${name}"] tbody tr`).length;
  await frame(); out.shown_ms = performance.now(); out.before = rows("trials");
  const input = document.querySelector('[data-filter="trials"]');
  out.filter_ms = await timed(() => { input.value = "c8-r2"; input.dispatchEvent(new Event("input")); });
  out.filtered = [...document.querySelectorAll('[data-table="trials"] tbody tr')].map(r => r.cells[0].textContent);
  out.folder = document.querySelector('[data-table="trials"] tbody a')?.getAttribute("href");
  const figure = document.querySelector('[data-table="detail"] tbody a');
  out.figure_of = figure.dataset.trials;
  out.follow_ms = await timed(() => figure.click());
  out.led_to = [...document.querySelectorAll('[data-table="trials"] tbody tr')].map(r => r.id);
  let csv = "";
  const make = URL.createObjectURL; URL.createObjectURL = blob => { csv = blob; return make.call(URL, blob); };
  document.querySelector('[data-csv="detail"]').click();
  out.csv = await csv.text();
  out.wanted = document.querySelectorAll(".chart").length;
  out.charts = document.querySelectorAll(".chart:has(svg.plot)").length;
}</script>"""


#: What a page comes to at a width, on a screen or on paper.
RULER = """<script>addEventListener("load", async () => {
  const out = {};
  if (PRINTED) {
    dispatchEvent(new Event("beforeprint"));
    for (const s of document.styleSheets) for (const r of s.cssRules) if (r.media && r.media.mediaText === "print") r.media.mediaText = "all";
  }
  await new Promise(r => setTimeout(r, 300));
  out.page = document.documentElement.scrollWidth;
  out.widest = Math.max(...[...document.querySelectorAll("table, .chart svg, pre")].map(e => e.getBoundingClientRect().right));
  out.buttons = [...document.querySelectorAll("button:not(.sort), .filter")].filter(e => e.offsetParent).length;
  out.folded = [...document.querySelectorAll("details")].filter(d => !d.open).length;
  out.paper = getComputedStyle(document.body).backgroundColor;
  out.grid = getComputedStyle(document.querySelector(".chart svg .grid path")).stroke;
  out.violations = PRINTED ? [] : (await axe.run()).violations.flatMap(v => v.nodes.map(n => `${v.id}: ${n.html.slice(0, 160)}`));
  fetch("http://127.0.0.1:PORT/", {method: "POST", mode: "no-cors", body: JSON.stringify(out)});
});</script>"""


#: Every control of a page, used as a reader does; and what must hold of any page.
EVERYTHING = """<script>addEventListener("load", async () => {
  const out = {tables: {}, broken: []};
  try { await use(out); } catch (e) { wrong.push(String(e.stack)); }
  out.wrong = wrong;
  fetch("http://127.0.0.1:PORT/", {method: "POST", mode: "no-cors", body: JSON.stringify(out)});
});
async function use(out) {
  const ids = [...document.querySelectorAll("[id]")].map(e => e.id);
  out.twice = ids.filter((id, i) => ids.indexOf(id) !== i);
  out.nowhere = [...document.querySelectorAll('a[href^="#"]')].map(a => a.getAttribute("href").slice(1)).filter(id => !document.getElementById(id));
  out.undrawn = document.querySelectorAll(".chart:not(:has(svg.plot))").length;
  let saved = null;
  const make = URL.createObjectURL; URL.createObjectURL = blob => { saved = blob; return make.call(URL, blob); };
  for (const details of document.querySelectorAll("details")) {
    details.querySelector("summary").click();
    await new Promise(r => setTimeout(r));
    if (!details.open) out.broken.push("details " + details.textContent.slice(0, 40));
  }
  for (const table of document.querySelectorAll("table[data-table]")) {
    const name = table.dataset.table, texts = () => [...table.tBodies[0].rows].map(r => r.textContent);
    const more = document.querySelector(`[data-more="${name}"]`), all = () => { while (more && !more.hidden) more.click(); };
    all();
    const before = texts();
    const at = c => [...table.tBodies[0].rows].map(r => r.cells[c].textContent);
    const t = out.tables[name] = {rows: before.length, sorted: 0};
    for (const button of table.querySelectorAll("thead button")) {
      const c = button.closest("th").cellIndex;
      button.click();
      const up = at(c);
      button.click();
      const down = at(c);
      // Cells without a figure ("–", "too few") stay last whichever way one sorts a column of figures.
      const figures = up.filter(x => /[0-9]/.test(x));
      if (new Set(figures.length ? figures : up.filter(x => x && x !== "–")).size > 1 && up.join("|") === down.join("|")) out.broken.push(`sort ${name} ${button.textContent}`);
      if ([...texts()].sort().join("|") !== [...before].sort().join("|")) out.broken.push(`rows of ${name}`);
      const plain = at(c).filter(x => /^[0-9][0-9,]*([.][0-9]+)?$/.test(x)).map(x => Number(x.replaceAll(",", "")));
      if (plain.some((x, i) => i && x > plain[i - 1])) out.broken.push(`order of ${name} ${button.textContent}: ${plain}`);
      t.sorted++;
    }
    saved = null;
    document.querySelector(`[data-csv="${name}"]`).click();
    if (!saved) { out.broken.push("csv " + name); continue; }
    t.csv = await saved.text();
    const input = document.querySelector(`[data-filter="${name}"]`);
    if (!input) continue;
    input.value = "no row has this"; input.dispatchEvent(new Event("input"));
    if (texts().length) out.broken.push("filter " + name);
    input.value = ""; input.dispatchEvent(new Event("input"));
    all();
    if (texts().length !== before.length) out.broken.push("filter cleared " + name);
  }
  for (const button of document.querySelectorAll("[data-save]")) {
    saved = null;
    button.click();
    for (let i = 0; i < 100 && !saved; i++) await new Promise(r => setTimeout(r, 20));
    const what = `${button.dataset.save} of ${button.closest(".chart").id}`;
    if (!saved) { out.broken.push(what); continue; }
    const bytes = new Uint8Array(await saved.arrayBuffer()), text = new TextDecoder().decode(bytes);
    if (button.dataset.save === "png" && (text.slice(1, 4) !== "PNG" || bytes.length < 2000)) out.broken.push(what);
    if (button.dataset.save === "svg" && new DOMParser().parseFromString(text, "image/svg+xml").querySelector("parsererror")) out.broken.push(what);
    if (button.dataset.save === "svg" && !text.includes(document.querySelector("h1").textContent.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;"))) out.broken.push("title in " + what);
  }
  for (const chart of document.querySelectorAll(".chart:has([data-zoom])")) {
    const labels = () => [...chart.querySelectorAll(".labels text")].map(t => t.textContent).join(" "), whole = labels();
    const press = what => chart.querySelector(`[data-zoom="${what}"]`).click();
    const boxes = () => [...chart.querySelectorAll(".part")].map(p => p.getAttribute("viewBox").split(" ").map(Number)).join();
    const all = boxes();
    press("in"); const half = labels(), part = boxes();
    if (half === whole || part === all) out.broken.push("zoom in " + chart.id);
    press("right"); if (labels() === half) out.broken.push("zoom right " + chart.id);
    press("left"); if (boxes() !== part) out.broken.push("zoom left " + chart.id);
    press("in"); press("out"); press("out");
    if (labels() !== whole || boxes() !== all) out.broken.push("zoom out " + chart.id);
    const place = chart.querySelector(".place");
    place.scrollIntoView({block: "center"});
    const box = place.getBoundingClientRect(), y = box.top + 5;
    if (!box.width) continue;
    const at = (name, x) => place.dispatchEvent(new PointerEvent(name, {bubbles: true, button: 0, pointerType: "mouse", clientX: box.left + x * box.width, clientY: y}));
    at("pointerdown", 0.5); at("pointermove", 0.6); at("pointermove", 0.75); at("pointerup", 0.75);
    const [first, last] = chart.shownPart;
    if (Math.abs(first - 0.5) > 0.02 || Math.abs(last - 0.75) > 0.02 || labels() === whole) out.broken.push("drag " + chart.id);
    place.dispatchEvent(new MouseEvent("dblclick", {bubbles: true}));
    if (labels() !== whole) out.broken.push("double click " + chart.id);
    press("in"); press("whole"); if (boxes() !== all) out.broken.push("whole " + chart.id);
  }
  for (const panel of document.querySelectorAll(".panel")) {
    if (!panel.querySelector("polyline[data-name], path[data-values], rect > title")) continue;
    panel.scrollIntoView({block: "center"});
    const lines = panel.querySelector("polyline[data-name], path[data-values]");
    const box = panel.querySelector(lines ? ".place" : "rect:has(> title)").getBoundingClientRect();
    const at = {bubbles: true, clientX: box.left + box.width / 2, clientY: box.top + box.height / 2};
    document.elementFromPoint(at.clientX, at.clientY)?.dispatchEvent(new PointerEvent("pointermove", at));
    const tip = document.querySelector(".tip");
    if (tip.hidden || !/[0-9]/.test(tip.textContent)) out.broken.push("pointer over " + panel.closest(".chart").id);
  }
  for (const a of document.querySelectorAll('table:not([data-table="trials"]) a[data-trials]')) {
    a.click();
    const shown = [...document.querySelectorAll('[data-table="trials"] tbody tr')].map(r => r.id).sort().join();
    if (shown !== a.dataset.trials.split(",").map(n => "trial-" + n).sort().join()) out.broken.push("figure " + a.textContent);
  }
}</script>"""


def _profile() -> tempfile.TemporaryDirectory[str]:
    # Some of the browser's processes may still be writing when it ends.
    return tempfile.TemporaryDirectory(prefix="pgdyno-test-", ignore_cleanup_errors=True)


def measured(page: str, folder: Path, width: int, *, printed: bool = False, dark: bool = False) -> dict[str, Any]:
    """What the page comes to in a window of a width. A window has a least width: the page is shown in a frame."""
    checker = f"<script>{AXE.read_text(encoding='utf-8')}</script>"
    hands = checker + RULER.replace("PRINTED", "true" if printed else "false")
    return _shown(page, folder, hands, 120, width=width, dark=dark)


def opened(page: str, folder: Path, *, patience_s: float = 120) -> dict[str, Any]:
    """What the page's reader saw. Raises TimeoutError when the page does not answer."""
    return _shown(page, folder, HANDS, patience_s)


def used(page: str, folder: Path, *, patience_s: float = 120) -> dict[str, Any]:
    """What came of using every control of a page once."""
    return _shown(page, folder, EVERYTHING, patience_s)


def _shown(
    page: str, folder: Path, hands: str, patience_s: float, *, width: int = 1280, dark: bool = False
) -> dict[str, Any]:
    assert CHROMIUM is not None
    answers: queue.Queue[dict[str, Any]] = queue.Queue()

    class Ear(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            answers.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    path = folder / "page.html"
    before, _, after = page.replace("<head>", f"<head>{WATCH}", 1).rpartition("</body>")
    with HTTPServer(("127.0.0.1", 0), Ear) as server, _profile() as profile:
        path.write_text(f"{before}{hands.replace('PORT', str(server.server_port))}</body>{after}")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        frame = folder / "frame.html"
        style = f"width:{width}px;height:2000px;border:0"
        frame.write_text(f'<body style="margin:0"><iframe style="{style}" src="page.html"></iframe></body>')
        shown = path if width == 1280 else frame
        scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
        argv = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,900", *scheme,
                f"--user-data-dir={profile}", f"file://{shown}"]  # fmt: skip
        browser = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return answers.get(timeout=patience_s)
        except queue.Empty as e:
            raise TimeoutError("the page did not answer") from e
        finally:
            browser.terminate()
            browser.wait()
            server.shutdown()
