// Tables: sort by a column, filter, show more, save as CSV; figures lead to the trials that they come from.
const TABLES = JSON.parse(document.getElementById("json-tables").textContent), PAGE = 100, state = {};
const find = (kind, name) => document.querySelector(`[data-${kind}="${name}"]`);
const drawn = name => find("filter", name) !== null;

// What a cell sorts by: its figure, else its text; a bound (">100%") lies beyond every figure.
function key(t, i, column) {
  const text = Array.isArray(t.rows[i][column]) ? t.rows[i][column][0] : t.rows[i][column];
  return t.values[i][column] ?? (text.startsWith(">") ? Infinity : text);
}
// The rows' numbers in the order that the reader has chosen; rows without a figure come last in either direction.
function order(name) {
  const t = TABLES[name], { column, descending } = state[name], rows = t.rows.map((_, i) => i);
  if (column === null) return rows;
  const keys = rows.map(i => key(t, i, column));
  const kind = key => typeof key === "number" ? 0 : key === "" || key === "–" ? 2 : 1;
  return rows.sort((a, b) => {
    const x = keys[a], y = keys[b];
    if (kind(x) !== kind(y)) return kind(x) - kind(y);
    const by = typeof x === "number" ? x - y : String(x).localeCompare(String(y), undefined, { numeric: true });
    return (descending ? -by : by) || a - b;
  });
}
function row(t, i) {
  const tr = document.createElement("tr");
  if (t.numbers) tr.id = "trial-" + t.numbers[i];
  t.rows[i].forEach((cell, c) => {
    const td = document.createElement("td"), [text, trials] = Array.isArray(cell) ? cell : [cell, null];
    if (t.numeric[c]) td.className = "num";
    const folder = c === 0 && t.folders.length ? t.folders[i] : null;
    if (folder || trials) {
      const a = document.createElement("a");
      a.textContent = text;
      a.href = folder ? encodeURI(folder) + "/" : "#trials";
      if (trials) a.dataset.trials = trials.join(",");
      td.append(a);
    } else td.textContent = text;
    tr.append(td);
  });
  return tr;
}
function draw(name) {
  const t = TABLES[name], s = state[name], body = find("table", name).querySelector("tbody");
  if (!drawn(name)) {
    body.append(...order(name).map(i => s.rows[i]));
    return;
  }
  const words = s.text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = order(name).filter(i =>
    (!s.only || s.only.has(t.numbers ? t.numbers[i] : i)) && words.every(w => t.search[i].includes(w)));
  body.replaceChildren(...found.slice(0, s.shown).map(i => row(t, i)));
  const of = found.length < t.rows.length ? ` (${t.rows.length})` : "";
  find("shown", name).textContent = `${Math.min(s.shown, found.length)} / ${found.length}${of}`;
  find("more", name).hidden = found.length <= s.shown;
}
for (const table of document.querySelectorAll("[data-table]")) {
  const name = table.dataset.table, t = TABLES[name], input = find("filter", name);
  state[name] = { text: "", only: null, shown: PAGE, column: null, descending: false, rows: [...table.tBodies[0].rows] };
  if (!input) continue;
  t.search = t.rows.map(r => r.map(c => Array.isArray(c) ? c[0] : c).join(" ").toLowerCase());
  input.addEventListener("input", () => {
    Object.assign(state[name], { text: input.value, only: null, shown: PAGE });
    draw(name);
  });
  find("more", name).addEventListener("click", () => { state[name].shown += 10 * PAGE; draw(name); });
  draw(name);
}
function sort(button) {
  const name = button.dataset.sort, column = Number(button.dataset.column), s = state[name];
  s.descending = s.column === column && !s.descending;
  s.column = column;
  for (const th of find("table", name).tHead.rows[0].cells) th.removeAttribute("aria-sort");
  button.closest("th").setAttribute("aria-sort", s.descending ? "descending" : "ascending");
  draw(name);
}
// A table for programs: numbers in base units, which the headings name.
function csv(t) {
  const quoted = text => /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  const cell = (c, i, k) => {
    if (t.values[i][k] !== null) return String(Number(t.values[i][k].toPrecision(9)));
    const text = t.plain[[i, k]] ?? (Array.isArray(c) ? c[0] : c);
    return text === "–" ? "" : quoted(text);
  };
  return [t.headings.map(quoted), ...t.rows.map((row, i) => row.map((c, k) => cell(c, i, k)))].map(row => row.join(",") + "\n").join("");
}
function save(name) {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(new Blob([csv(TABLES[name])], { type: "text/csv" }));
  a.download = name + ".csv";
  a.click();
  URL.revokeObjectURL(a.href);
}
// Copy a table as tab-separated text, which spreadsheets take, or the text of an element.
function copied(button, text) {
  const area = document.createElement("textarea"), label = button.textContent;
  area.value = text; area.style.position = "fixed"; area.style.opacity = 0;
  document.body.append(area); area.select();
  const done = document.execCommand("copy");
  area.remove(); button.focus();
  button.textContent = done ? "✓" : "✗";
  setTimeout(() => { button.textContent = label; }, 1200);
}
const tsv = name => [TABLES[name].columns, ...order(name).map(i => TABLES[name].rows[i].map(c => Array.isArray(c) ? c[0] : c))]
  .map(row => row.join("\t")).join("\n");
document.addEventListener("click", e => {
  const copy = e.target.closest("[data-copy], [data-copy-of]");
  if (copy) copied(copy, copy.dataset.copy ? tsv(copy.dataset.copy) : document.getElementById(copy.dataset.copyOf).textContent);
  const a = e.target.closest("a[data-trials]"), saved = e.target.closest("[data-csv]"), by = e.target.closest("[data-sort]");
  if (a && state.trials) {
    find("filter", "trials").value = "";
    Object.assign(state.trials, { text: "", only: new Set(a.dataset.trials.split(",").map(Number)), shown: PAGE });
    draw("trials");
  }
  if (saved) save(saved.dataset.csv);
  if (by) sort(by);
});
// On paper every row stands, whatever is filtered.
addEventListener("beforeprint", () => {
  for (const name in state) if (drawn(name)) Object.assign(state[name], { kept: state[name].shown, shown: Infinity }), draw(name);
});
addEventListener("afterprint", () => {
  for (const name in state) if (drawn(name)) state[name].shown = state[name].kept ?? PAGE, draw(name);
});
