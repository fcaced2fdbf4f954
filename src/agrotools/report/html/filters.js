// Filters and order of the samples, which list and table share, and their place in the address.

const FILTERS = ["run", "mode", "task", "type", "state", "agree", "lost"];
const DEFAULT_SORT = "worst";
// Worst first: what was lost, then what was won, then what tells nothing.
const STATES = { wrong: 0, partial: 1, right: 2, invalid: 3, unscored: 4 };
let filters = { q: "", sort: DEFAULT_SORT };
// Search in the details: places of the records that hold the words so far.
let deep = { query: "", found: new Set(), done: true };

const CHOICES = {
  run: { label: "run", of: (record) => String(record.run), text: (value) => runs[value].label },
  mode: { label: "mode", of: (record) => record.mode },
  task: { label: "task", of: (record) => record.sample.task },
  type: { label: "answer", of: (record) => record.sample.type },
  state: { label: "score", of: (record) => record.state },
  agree: {
    label: "agreement of runs",
    of: (record) => (record.disagree ? "runs disagree" : "runs agree"),
    text: (value) => value,
  },
};

const SORTS = {
  worst: "worst first",
  best: "best first",
  id: "by id",
  task: "by task",
  slow: "slowest first",
  tokens: "most tokens",
  calls: "most calls",
};

function matches(record) {
  for (const name of Object.keys(CHOICES)) {
    if (filters[name] && CHOICES[name].of(record) !== filters[name]) return false;
  }
  if (filters.lost && !lostBy(record, filters.lost)) return false;
  return !filters.q || textMatches(record);
}

function textMatches(record) {
  record.words ??=
    `${record.sample.id} ${record.sample.query} ${record.reason} ${words(record.sample.task)}`.toLowerCase();
  return record.words.includes(filters.q) || (deep.query === filters.q && deep.found.has(record.place));
}

const byName = (a, b) =>
  a.sample.id < b.sample.id ? -1 : a.sample.id > b.sample.id ? 1 : a.run - b.run || a.epoch - b.epoch;

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
    await new Promise((done) => void setTimeout(done)); // the page stays responsive between blocks
    if (deep !== search) return; // other words were typed meanwhile
    lines.forEach((line, at) => {
      const texts = line.toLowerCase().replace(/"[a-z_]+":/g, ""); // without the names of fields
      if (texts.includes(escaped)) search.found.add(places.get(`${number} ${at}`));
    });
  }
  search.done = true;
  applyFilters();
}

// Draw the list anew. A record that is filtered out is closed, and the first one opened in its place.
function applyFilters() {
  shown = records.filter((record) => matches(record)).sort(ORDERS[filters.sort] ?? ORDERS.worst);
  drawFound();
  drawRows();
  if (!shown.includes(current)) openSample(shown[0] ?? null, { replace: true });
  else writeAddress();
}

// Filters as values of an address: those with their default are left out.
function addressFilters(changes = {}) {
  const all = { ...filters, ...changes };
  return {
    ...Object.fromEntries(FILTERS.map((name) => [name, all[name]])),
    q: all.q,
    sort: all.sort === DEFAULT_SORT ? "" : all.sort,
  };
}

const sampleAddress = (record) =>
  address("samples", {
    ...addressFilters({ run: runs.length > 1 ? record.run : "" }),
    id: decodeURIComponent(record.link),
  });

function writeAddress() {
  const target = address("samples", { ...addressFilters(), id: current ? decodeURIComponent(current.link) : "" });
  if (readAddress().view === "samples" && target !== location.hash) history.replaceState(null, "", target);
}

function setFilter(name, value) {
  filters[name] = value;
  syncControls();
  applyFilters();
}

// Show the filters in their boxes. Words that are being typed stay as they are.
function syncControls() {
  for (const select of byId("samples").querySelectorAll("select")) select.value = filters[select.name] ?? "";
  if (document.activeElement !== byId("search")) byId("search").value = filters.q;
}

function resetFilters() {
  filters = { q: "", sort: filters.sort };
  byId("search").value = "";
  syncControls();
}

function readFilters(parameters) {
  filters = { q: (parameters.get("q") ?? "").toLowerCase(), sort: parameters.get("sort") || DEFAULT_SORT };
  for (const name of FILTERS) filters[name] = parameters.get(name) ?? "";
}
