// Charts: values under the pointer, one crosshair over panels with the same axis, and saving as a picture.
const SVG = "http://www.w3.org/2000/svg", tip = document.createElement("div");
tip.className = "tip"; tip.hidden = true; document.body.append(tip);
const axesOf = place => (place.axes ??= JSON.parse(place.dataset.plot));
// The value at a pixel of an axis [low, high, start, end, is logarithmic], and the reverse.
const valueAt = ([low, high, start, end, log], px) => {
  const part = (px - start) / (end - start);
  return log ? low * (high / low) ** part : low + part * (high - low);
};
const digits = v => v === 0 ? "0" : Number(v.toPrecision(3)).toLocaleString("en", { maximumFractionDigits: 12 });
function pixel(place, e) {
  const svg = place.ownerSVGElement, box = svg.getBoundingClientRect();
  return (e.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
}
// Charts over time show a part of it: [first, last] of the whole axis, 0 to 1.
const partOf = chart => chart?.shownPart ?? [0, 1];
const isTime = place => place && axesOf(place).time === 1;
// A place of the whole axis, in pixels, that a pixel shows.
function original(place, px) {
  const [, , start, end] = axesOf(place).x, [first, last] = partOf(place.closest(".chart"));
  return start + (first + (px - start) / (end - start) * (last - first)) * (end - start);
}
function zoom(chart, first, last) {
  const length = Math.min(1, Math.max(last - first, 0.002));
  first = Math.min(Math.max(0, first), 1 - length);
  chart.shownPart = [first, first + length];
  for (const place of chart.querySelectorAll(".place")) {
    if (!isTime(place)) continue;
    const svg = place.ownerSVGElement, part = svg.querySelector(".part"), [low, high, start, end] = axesOf(place).x;
    const box = part.viewBox.baseVal;
    part.setAttribute("viewBox", `${start + first * (end - start)} 0 ${length * (end - start)} ${box.height}`);
    const labels = svg.querySelector(".labels"), y = labels.firstElementChild?.getAttribute("y");
    labels.whole ??= labels.innerHTML;
    if (length === 1) { labels.innerHTML = labels.whole; continue; }
    const from = low + first * (high - low), to = from + length * (high - low), raw = (to - from) / 6;
    const power = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].map(m => m * power).find(s => s >= raw);
    labels.replaceChildren();
    for (let n = Math.ceil(from / step); n * step <= to + step / 1e6; n++) {
      const text = document.createElementNS(SVG, "text");
      text.setAttribute("x", start + (n * step - from) / (to - from) * (end - start));
      text.setAttribute("y", y); text.setAttribute("text-anchor", "middle");
      text.textContent = Number((n * step).toPrecision(12)).toLocaleString("en", { maximumFractionDigits: 6 });
      labels.append(text);
    }
  }
}
document.addEventListener("click", e => {
  const button = e.target.closest("[data-zoom]");
  if (!button) return;
  const chart = button.closest(".chart"), [first, last] = partOf(chart), length = last - first, middle = (first + last) / 2;
  const [a, b] = { in: [middle - length / 4, middle + length / 4], out: [middle - length, middle + length],
    left: [first - length / 2, last - length / 2], right: [first + length / 2, last + length / 2], whole: [0, 1] }[button.dataset.zoom];
  zoom(chart, a, b);
});
// A stretch that is marked with the pointer becomes the part that is shown; a double click shows all.
let begun = null;
document.addEventListener("pointerdown", e => {
  const place = e.target.closest?.(".place");
  if (e.button === 0 && e.pointerType !== "touch" && isTime(place)) begun = { place, from: pixel(place, e), shape: null };
});
document.addEventListener("pointermove", e => {
  if (!begun) return;
  const { place, from } = begun, [, , start, end] = axesOf(place).x, to = Math.min(Math.max(pixel(place, e), start), end);
  if (!begun.shape) {
    if (Math.abs(to - from) < 4) return;
    begun.shape = place.ownerSVGElement.insertBefore(document.createElementNS(SVG, "rect"), place);
    for (const [k, v] of Object.entries({ class: "chosen", y: place.y.baseVal.value, height: place.height.baseVal.value })) begun.shape.setAttribute(k, v);
  }
  begun.to = to;
  begun.shape.setAttribute("x", Math.min(from, to)); begun.shape.setAttribute("width", Math.abs(to - from));
});
document.addEventListener("pointerup", () => {
  const done = begun; begun = null;
  if (!done?.shape) return;
  done.shape.remove();
  const [, , start, end] = axesOf(done.place).x, part = px => (original(done.place, px) - start) / (end - start);
  zoom(done.place.closest(".chart"), part(Math.min(done.from, done.to)), part(Math.max(done.from, done.to)));
});
document.addEventListener("dblclick", e => { const place = e.target.closest?.(".place"); if (isTime(place)) zoom(place.closest(".chart"), 0, 1); });
// What each line and area of a panel has nearest to an x: its name, colour, place and value.
function near(place, px) {
  const svg = place.ownerSVGElement, { y } = axesOf(place), found = [];
  for (const line of svg.querySelectorAll("polyline[data-name]")) {
    line.at ??= line.getAttribute("points").split(" ").map(p => p.split(",").map(Number));
    const point = closest(line.at, px, p => p[0]);
    if (point) found.push({ name: line.dataset.name, colour: line.getAttribute("stroke"), x: point[0], value: valueAt(y, point[1]) });
  }
  for (const area of svg.querySelectorAll("path[data-values]")) {
    area.at ??= area.dataset.at.split(",").map((x, i) => [Number(x), Number(area.dataset.values.split(",")[i])]);
    const point = closest(area.at, px, p => p[0]);
    if (point) found.push({ name: area.dataset.name, colour: area.getAttribute("fill"), x: point[0], value: point[1] });
  }
  return found;
}
function closest(points, px, of) {
  let best = null, least = Infinity;
  for (const p of points) { const d = Math.abs(of(p) - px); if (d < least) { least = d; best = p; } }
  return best;
}
function cross(chart, place, px) {
  const same = JSON.stringify(axesOf(place).x.slice(0, 2));
  for (const other of chart.querySelectorAll(".place")) {
    const svg = other.ownerSVGElement, shown = JSON.stringify(axesOf(other).x.slice(0, 2)) === same;
    let line = svg.querySelector(".cross");
    if (!line) { line = svg.insertBefore(document.createElementNS(SVG, "path"), other); line.setAttribute("class", "cross"); }
    const [, , start, end] = axesOf(other).x, [, , from, to] = axesOf(place).x;
    const x = start + (px - from) / (to - from) * (end - start);
    line.setAttribute("d", shown ? `M${x} ${other.y.baseVal.value}v${other.height.baseVal.value}` : "");
  }
}
function clear() {
  tip.hidden = true;
  document.querySelectorAll(".cross").forEach(line => line.setAttribute("d", ""));
}
function show(e) {
  const place = e.target.closest?.(".place"), marked = document.elementsFromPoint(e.clientX, e.clientY)
    .map(x => x.closest("svg.plot [class], svg.plot rect, svg.plot g, svg.plot path")?.querySelector(":scope > title")).find(Boolean);
  if (!place && !marked) return clear();
  const rows = [];
  if (place) {
    const shown = pixel(place, e), px = isTime(place) ? original(place, shown) : shown;
    const axes = axesOf(place), seen = near(place, px), [first, last] = isTime(place) ? partOf(place.closest(".chart")) : [0, 1];
    cross(place.closest(".chart"), place, shown);
    const at = seen.length ? seen.reduce((a, b) => Math.abs(a.x - px) < Math.abs(b.x - px) ? a : b).x : px;
    if (seen.length) rows.push(["", `${axes.title[0]} ${digits(valueAt(axes.x, at))}`]);
    for (const s of seen.filter(s => Math.abs(s.x - at) < 3 * (last - first)).slice(0, 12)) rows.push([s.colour, `${s.name}: ${digits(s.value)}`]);
  }
  if (marked) marked.textContent.split("\n").forEach(text => rows.push(["", text]));
  if (!rows.length) { tip.hidden = true; return; }
  tip.replaceChildren(...rows.map(([colour, text]) => {
    const row = document.createElement("div");
    if (colour) { const box = document.createElement("i"); box.style.background = colour; row.append(box); }
    row.append(text);
    return row;
  }));
  tip.hidden = false;
  const left = Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8);
  tip.style.left = `${Math.max(4, left) + scrollX}px`;
  tip.style.top = `${e.clientY + 16 + scrollY}px`;
}
document.querySelectorAll(".panels").forEach(p => {
  p.addEventListener("pointermove", show);
  p.addEventListener("pointerleave", clear);
});
// A chart as one picture, light whatever the page is: title, legend, panels where they stand, and the run below them.
function picture(chart) {
  const box = chart.getBoundingClientRect(), svg = document.createElementNS(SVG, "svg"), lines = [];
  const words = (text, x, y, kind = "") => {
    const t = document.createElementNS(SVG, "text");
    t.setAttribute("x", x); t.setAttribute("y", y); t.setAttribute("class", kind); t.textContent = text;
    lines.push(t);
  };
  const put = (element, dy) => {
    const at = element.getBoundingClientRect(), copy = element.cloneNode(true);
    copy.querySelectorAll(".place, .cross").forEach(x => x.remove());
    for (const [k, v] of Object.entries({ x: at.left - box.left, y: at.top - box.top + dy, width: at.width, height: at.height })) copy.setAttribute(k, v);
    lines.push(copy);
  };
  const head = 34, foot = [document.querySelector("h1").textContent, document.querySelector("main > .soft")?.textContent ?? ""];
  words(chart.dataset.title, 0, 18, "heading");
  for (const item of chart.querySelectorAll(".legend li")) {
    const at = item.getBoundingClientRect(), sign = item.querySelector("svg");
    if (sign) put(sign, head);
    words(item.textContent, at.left - box.left + (sign ? 22 : 0), at.top - box.top + head + 14);
  }
  chart.querySelectorAll("svg.plot").forEach(p => put(p, head));
  const below = Math.max(...[...chart.querySelectorAll("svg.plot")].map(p => p.getBoundingClientRect().bottom)) - box.top + head;
  foot.forEach((text, i) => words(text, 0, below + 16 + 15 * i, "soft"));
  const width = Math.ceil(box.width) + 24, height = Math.ceil(below + 20 + 15 * foot.length);
  for (const [k, v] of Object.entries({ xmlns: SVG, viewBox: `-12 0 ${width} ${height}`, width, height })) svg.setAttribute(k, v);
  const style = document.createElementNS(SVG, "style"), paper = document.createElementNS(SVG, "rect");
  style.textContent = document.getElementById("plot-style").textContent;
  for (const [k, v] of Object.entries({ x: -12, width, height, fill: "#ffffff" })) paper.setAttribute(k, v);
  svg.append(style, paper, ...lines);
  return { text: new XMLSerializer().serializeToString(svg), width, height };
}
function give(blob, name) {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(blob); a.download = name; a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}
async function saveChart(chart, kind) {
  const { text, width, height } = picture(chart), name = `${chart.id.replace("chart-", "")}.${kind}`;
  if (kind === "svg") return give(new Blob([text], { type: "image/svg+xml" }), name);
  const image = new Image(), canvas = document.createElement("canvas"), scale = 2;
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  await image.decode();
  canvas.width = width * scale; canvas.height = height * scale;
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob(blob => give(blob, name), "image/png");
}
document.addEventListener("click", e => {
  const button = e.target.closest("[data-save]");
  if (button) saveChart(button.closest(".chart"), button.dataset.save);
});
// On paper stands everything that the reader has unfolded or not.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(d => { d.open = true; }));
