// Samples: the list with its filters. Only the rows in sight are in the document.

let records = [];
let shown = [];
let current = null;
const FILTERS = ["run", "mode", "task", "type", "state", "agree", "lost"];
const DEFAULT_SORT = "worst";
const STATES = { wrong: 0, partial: 1, right: 2, invalid: 3, unscored: 4 };
const ROW_PX = 66;
let filters = { q: "", sort: DEFAULT_SORT };
let deep = { query: "", found: new Set(), done: true };

// Rows as objects. In the file each row is a list, to keep the page small; `columns` names its values (page.py).
const namedRows = ({ columns, rows }) => rows.map((row) => Object.fromEntries(columns.map((name, at) => [name, row[at]])));

// Read the list of samples: numbers of modes, samples and parts become what they stand for.
// A record that the page has already stays the same object, so that its row and the choice of it survive new records.
function readIndex(index) {
  const samples = namedRows(index.samples);
  const known = new Map(records.map((record) => [keyOf(record), record]));
  records = namedRows(index.records).map((row, place) => {
    const mode = index.modes[row.mode];
    const sample = samples[row.sample];
    const record = {
      ...row,
      place,
      mode,
      sample,
      lost: Object.fromEntries(row.lost.map(([part, points]) => [index.parts[part], points])),
      state: row.value === null && !row.invalid ? "unscored" : stateOf(row.value),
      link: [runs[row.run].name, mode, sample.id, row.epoch].map(encodeURIComponent).join("/"),
    };
    return Object.assign(known.get(keyOf(record)) ?? {}, record);
  });
  markDisagreements();
}

// The block tells a record from the invalid one that it replaces.
const keyOf = (record) => `${record.link} ${record.block}`;

// Runs disagree on a sample if its best and worst scores are at least half apart; privileged baselines do not count.
function markDisagreements() {
  const ends = new Map();
  for (const record of records) {
    if (record.value === null || runs[record.run].privileged) continue;
    const key = `${record.mode} ${record.sample.id}`;
    const end = ends.get(key) ?? ends.set(key, { low: record.value, high: record.value }).get(key);
    end.low = Math.min(end.low, record.value);
    end.high = Math.max(end.high, record.value);
  }
  for (const record of records) {
    const end = ends.get(`${record.mode} ${record.sample.id}`);
    record.disagree = Boolean(end) && end.high - end.low >= 0.5;
  }
}

const lostBy = (record, part) => (record.lost[part] ?? 0) > 0;
const sampleAddress = (record) => address("samples", { ...addressFilters({ run: runs.length > 1 ? record.run : "" }), id: decodeURIComponent(record.link) });

// --- filters --------------------------------------------------------------------------------------------------------

const CHOICES = {
  run: { label: "run", of: (record) => String(record.run), text: (value) => runs[value].label },
  mode: { label: "mode", of: (record) => record.mode },
  task: { label: "task", of: (record) => record.sample.task },
  type: { label: "answer", of: (record) => record.sample.type },
  state: { label: "score", of: (record) => record.state },
  agree: { label: "agreement of runs", of: (record) => (record.disagree ? "runs disagree" : "runs agree"), text: (value) => value },
};
const SORTS = { worst: "worst first", best: "best first", id: "by id", task: "by task", slow: "slowest first", tokens: "most tokens", calls: "most calls" };

function matches(record) {
  for (const name of Object.keys(CHOICES)) if (filters[name] && CHOICES[name].of(record) !== filters[name]) return false;
  if (filters.lost && !lostBy(record, filters.lost)) return false;
  return !filters.q || textMatches(record);
}

function textMatches(record) {
  record.words ??= `${record.sample.id} ${record.sample.query} ${record.reason} ${words(record.sample.task)}`.toLowerCase();
  return record.words.includes(filters.q) || (deep.query === filters.q && deep.found.has(record.place));
}

const byName = (a, b) => (a.sample.id < b.sample.id ? -1 : a.sample.id > b.sample.id ? 1 : a.run - b.run || a.epoch - b.epoch);
const ORDERS = {
  worst: (a, b) => STATES[a.state] - STATES[b.state] || a.value - b.value || byName(a, b),
  best: (a, b) => (b.value ?? -1) - (a.value ?? -1) || byName(a, b),
  id: byName,
  task: (a, b) => (a.sample.task < b.sample.task ? -1 : a.sample.task > b.sample.task ? 1 : byName(a, b)),
  slow: (a, b) => b.seconds - a.seconds,
  tokens: (a, b) => b.tokens - a.tokens,
  calls: (a, b) => b.calls - a.calls,
};

// Full texts are in compressed blocks: these are searched one after another, and the list grows.
async function searchDetails(query) {
  if (query.length < 2 || deep.query === query) return;
  const search = (deep = { query, found: new Set(), done: false });
  const places = new Map(records.map((record) => [`${record.block} ${record.line}`, record.place]));
  const escaped = JSON.stringify(query).slice(1, -1);
  const numbers = [...new Set(records.map((record) => record.block))].filter((number) => number !== null);
  for (const number of numbers) {
    const lines = await blockLines(number);
    await new Promise((done) => { setTimeout(done); });
    if (deep !== search) return;
    lines.forEach((line, at) => {
      if (line.toLowerCase().replace(/"[a-z_]+":/g, "").includes(escaped)) search.found.add(places.get(`${number} ${at}`));
    });
  }
  search.done = true;
  applyFilters();
}

function applyFilters({ keep = true } = {}) {
  shown = records.filter((record) => matches(record)).sort(ORDERS[filters.sort] ?? ORDERS.worst);
  drawFound();
  drawRows();
  if (!shown.includes(current)) openSample(shown[0] ?? null, { replace: true });
  else if (keep) writeAddress();
}

function addressFilters(changes = {}) {
  const all = { ...filters, ...changes };
  return { ...Object.fromEntries(FILTERS.map((name) => [name, all[name]])), q: all.q, sort: all.sort === DEFAULT_SORT ? "" : all.sort };
}

function writeAddress() {
  const target = address("samples", { ...addressFilters(), id: current ? decodeURIComponent(current.link) : "" });
  if (readAddress().view === "samples" && target !== location.hash) history.replaceState(null, "", target);
}

function setFilter(name, value) {
  filters[name] = value;
  syncControls();
  applyFilters();
}

function syncControls() {
  for (const select of byId("samples").querySelectorAll("select")) select.value = filters[select.name] ?? "";
  if (document.activeElement !== byId("search")) byId("search").value = filters.q;
}

// --- controls -------------------------------------------------------------------------------------------------------

function select(name, label, entries) {
  return el("select", { name, "aria-label": label, onchange: (event) => setFilter(name, event.target.value) },
    entries.map(([value, text]) => el("option", { value }, text)));
}

function drawSamplesView() {
  const choices = Object.entries(CHOICES).map(([name, { label, of, text = words }]) => {
    const values = [...new Set(records.map(of))].sort((a, b) => (name === "run" ? a - b : a < b ? -1 : 1));
    return values.length > 1 && select(name, label, [["", `any ${label}`], ...values.map((value) => [value, text(value)])]);
  });
  const parts = [...new Set(records.flatMap((record) => Object.keys(record.lost)))].sort((a, b) => partOrder(a) - partOrder(b));
  const lost = parts.length > 0 && select("lost", "points lost by", [["", "lost by any part"], ...parts.map((part) => [part, `lost by ${partWord(part)}`])]);
  let waiting = 0;
  const search = el("input", { type: "search", id: "search", placeholder: "Search (/)", "aria-label": "Search in questions, answers and steps", autocomplete: "off",
    oninput: (event) => {
      clearTimeout(waiting);
      waiting = setTimeout(() => { filters.q = event.target.value.trim().toLowerCase(); applyFilters(); searchDetails(filters.q); }, 150);
    } });
  byId("samples").replaceChildren(
    el("div.list-pane", { id: "list-pane" },
      el("form.filters", { role: "search", autocomplete: "off", onsubmit: (event) => event.preventDefault() },
        search, el("div.selects", {}, choices, lost, select("sort", "order", Object.entries(SORTS)))),
      el("p.tally", { id: "found", role: "status" }),
      el("div.list", { id: "list", tabindex: "0", role: "listbox", "aria-label": "Samples", onscroll: scheduleRows })),
    el("div.detail", { id: "detail", tabindex: "-1" }));
  new ResizeObserver(scheduleRows).observe(byId("list"));
}

function drawFound() {
  const reset = el("button.quiet", { type: "button", id: "reset", onclick: () => { resetFilters(); applyFilters(); } }, "show all");
  const active = FILTERS.some((name) => filters[name]) || filters.q;
  byId("found").replaceChildren(`${shown.length.toLocaleString("en")} of ${count(records.length, "record")}`, deep.query === filters.q && !deep.done ? ", searching…" : "", " ", el("span", {}, active ? reset : "", el("a", { href: address("table", addressFilters()) }, "as a table")));
}

function resetFilters() {
  filters = { q: "", sort: filters.sort };
  byId("search").value = "";
  syncControls();
}

// --- rows in sight --------------------------------------------------------------------------------------------------

const rowElements = new Map();
let scheduled = false;

function scheduleRows() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => { scheduled = false; drawRows(); });
}

function drawRows() {
  const list = byId("list");
  if (!list) return;
  const first = Math.max(0, Math.floor(list.scrollTop / ROW_PX) - 4);
  const last = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW_PX) + 4);
  let canvas = list.firstElementChild;
  if (!canvas) list.append((canvas = el("div.canvas", { role: "presentation" })));
  canvas.style.height = `${shown.length * ROW_PX}px`;
  const wanted = new Set(shown.slice(first, last));
  for (const [record, row] of rowElements) if (!wanted.has(record)) { row.remove(); rowElements.delete(record); }
  for (let at = first; at < last; at += 1) {
    const record = shown[at];
    let row = rowElements.get(record);
    if (!row) { row = rowOf(record); rowElements.set(record, row); canvas.append(row); }
    row.style.transform = `translateY(${at * ROW_PX}px)`;
    row.setAttribute("aria-setsize", shown.length);
    row.setAttribute("aria-posinset", at + 1);
    row.setAttribute("aria-selected", String(record === current));
  }
  list.classList.toggle("empty", !shown.length);
}

function rowOf(record) {
  const image = record.sample.picture ? el("img", { alt: "", width: "50", height: "50", loading: "lazy" }) : el("span.no-picture", { "aria-hidden": "true" }, "¶");
  if (record.sample.picture) showPicture(image, record.sample.picture);
  const where = [!filters.mode && record.mode, runs.length > 1 && !filters.run && runs[record.run].label, !filters.task && words(record.sample.task), record.epoch > 0 && `epoch ${record.epoch}`];
  return el("a.row", { href: sampleAddress(record), role: "option", tabindex: "-1", id: `row${record.place}`,
    onclick: (event) => { if (event.ctrlKey || event.metaKey || event.shiftKey) return; event.preventDefault(); openSample(record); showDetailOnPhone(true); } },
  image, el("span.text", {}, el("span.head", {}, recordBadge(record), " ", el("b", {}, record.sample.id), record.disagree && el("i.disagree", { title: "runs disagree" }, "⇄"), el("span.dim", {}, where.filter(Boolean).join(" · "))),
    el("span.ask", {}, record.reason || record.sample.query)));
}

function reveal(record) {
  const list = byId("list"), at = shown.indexOf(record);
  if (at < 0) return;
  const top = at * ROW_PX;
  if (top < list.scrollTop) list.scrollTop = top;
  else if (top + ROW_PX > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW_PX - list.clientHeight;
  byId("list").setAttribute("aria-activedescendant", `row${record.place}`);
  drawRows();
}

function openSample(record, { replace = false } = {}) {
  current = record;
  if (record) { reveal(record); drawDetail(record); } else { drawRows(); byId("detail").replaceChildren(el("p.empty-state", {}, "No sample matches these filters.")); }
  if (readAddress().view === "samples") {
    const target = address("samples", { ...addressFilters(), id: record ? decodeURIComponent(record.link) : "" });
    if (target !== location.hash) history[replace ? "replaceState" : "pushState"](null, "", target);
  }
}

function move(by) {
  if (!shown.length) return;
  const at = shown.indexOf(current);
  openSample(shown[Math.min(Math.max(at + by, 0), shown.length - 1)], { replace: true });
}

const showDetailOnPhone = (open) => byId("samples").classList.toggle("reading", open);

function readFilters(parameters) {
  filters = { q: (parameters.get("q") ?? "").toLowerCase(), sort: parameters.get("sort") || DEFAULT_SORT };
  for (const name of FILTERS) filters[name] = parameters.get(name) ?? "";
}

// Take filters and sample from the address; a sample that the filters hide removes them.
function followAddress(parameters) {
  readFilters(parameters);
  const wanted = parameters.get("id");
  const record = wanted && records.find((each) => decodeURIComponent(each.link) === wanted);
  if (record && !matches(record)) filters = { q: "", sort: filters.sort };
  if (!wanted && !filters.run && !filters.mode && runs.length > 1 && ![...parameters.keys()].length) filters.run = String(chosenRun);
  byId("search").value = filters.q;
  syncControls();
  if (record) current = record;
  shown = records.filter((each) => matches(each)).sort(ORDERS[filters.sort] ?? ORDERS.worst);
  drawFound();
  openSample(record || (shown.includes(current) ? current : shown[0] ?? null), { replace: true });
  showDetailOnPhone(Boolean(record));
  if (filters.q) searchDetails(filters.q);
}

// --- table of samples -----------------------------------------------------------------------------------------------

const MOST_IN_TABLE = 500;
const textCell = (text) => el("span", { title: text }, text);
// Columns with the width that they need at least. `varies`: the column is left out if all its values are equal.
const COLUMNS = [
  { name: "sample", px: 120, of: (record) => record.sample.id, cell: (record) => el("a", { href: sampleAddress(record), title: record.sample.id }, record.sample.id) },
  { name: "score", px: 70, of: (record) => record.value, cell: ({ value, state }) => `${MARKS[state]} ${value === null ? "–" : rounded(100 * value)}` },
  { name: "question", px: 250, of: (record) => record.sample.query },
  { name: "expected", px: 160, of: (record) => record.sample.expected },
  { name: "answer", px: 160, of: (record) => record.given, cell: ({ given }) => (given ? textCell(given) : el("span.dim", {}, "none")) },
  { name: "mode", px: 105, of: (record) => record.mode },
  { name: "run", px: 130, varies: true, of: (record) => runs[record.run].label },
  { name: "lost by", px: 100, varies: true, of: (record) => (mainPart(record) ? partWord(mainPart(record)) : "") },
  { name: "calls", px: 60, varies: true, of: (record) => record.calls },
  { name: "tokens", px: 75, varies: true, of: (record) => record.tokens, cell: (record) => amount(record.tokens) },
  { name: "cost", px: 75, varies: true, of: (record) => record.usd, cell: (record) => (record.usd === null ? "" : dollars(record.usd)) },
];

function cellOf({ of, cell }, record) {
  const value = of(record);
  if (typeof value === "number") return el("td.number", {}, cell ? cell(record) : value);
  return el("td.words", {}, cell ? cell(record) : textCell(value));
}

let tableRows = new WeakMap(), tableNames = "";

function drawTable(parameters) {
  readFilters(parameters);
  const by = COLUMNS.find(({ name }) => name === parameters.get("by")) ?? COLUMNS.find(({ name }) => name === "score"), down = parameters.has("down") ? -1 : 1;
  const found = records.filter((record) => matches(record));
  const keys = new Map(found.map((record) => [record, by.of(record)]));
  const compare = (a, b) => (a === b ? 0 : a === null ? 1 : b === null ? -1 : a < b ? -down : down); // unknown last
  found.sort((a, b) => compare(keys.get(a), keys.get(b)) || byName(a, b));
  const columns = COLUMNS.filter(({ varies, of }) => !varies || new Set(records.map(of)).size > 1);
  const minWidth = `${columns.reduce((sum, { px }) => sum + px, 0)}px`;
  const names = columns.map(({ name }) => name).join();
  if (names !== tableNames) [tableRows, tableNames] = [new WeakMap(), names];
  const rowOf = (record) => tableRows.get(record) ?? tableRows.set(record, el("tr", {}, columns.map((column) => cellOf(column, record)))).get(record);
  const head = columns.map(({ name, px }) => el("th", { scope: "col", style: { width: `${px}px` }, "aria-sort": name !== by.name ? undefined : down > 0 ? "ascending" : "descending" },
    el("a", { href: address("table", { ...addressFilters(), by: name, down: name === by.name && down > 0 ? 1 : undefined }) }, name, name === by.name && (down > 0 ? " ▲" : " ▼"))));
  byId("table").replaceChildren(
    el("p.dim", { role: "status" }, `${found.length.toLocaleString("en")} of ${count(records.length, "record")}${found.length > MOST_IN_TABLE ? `; the first ${MOST_IN_TABLE} are shown` : ""}. `, el("a", { href: address("samples", addressFilters()) }, "Filter them in the list")),
    el("div.scroll", { tabindex: "0", role: "region", "aria-label": "Samples" }, el("table.data.samples", { style: { minWidth } }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, found.slice(0, MOST_IN_TABLE).map(rowOf)))));
}
