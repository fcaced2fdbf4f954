// List of samples beside the open one. Only the rows in sight are in the document, so that 50,000 scroll with ease.

let shown = []; // records that pass the filters, in their order
let current = null; // the open one
const ROW_PX = 66; // as in page.css
const ROWS_BEYOND = 4; // rows above and below the visible ones, so that none is missing while the list scrolls
const TYPING_MS = 150; // the search waits for the next letter

function selectBox(name, label, entries) {
  return el(
    "select",
    { name, "aria-label": label, onchange: (event) => setFilter(name, event.target.value) },
    entries.map(([value, text]) => el("option", { value }, text)),
  );
}

// Boxes of filters and the frame of the list. A filter whose records all agree has no box.
function drawSamplesView() {
  const choices = Object.entries(CHOICES).map(([name, { label, of, text = words }]) => {
    const values = [...new Set(records.map(of))].sort((a, b) => (name === "run" ? a - b : a < b ? -1 : 1));
    return (
      values.length > 1 &&
      selectBox(name, label, [["", `any ${label}`], ...values.map((value) => [value, text(value)])])
    );
  });
  const parts = [...new Set(records.flatMap((record) => Object.keys(record.lost)))].sort(
    (a, b) => partOrder(a) - partOrder(b),
  );
  const lost =
    parts.length > 0 &&
    selectBox("lost", "points lost by", [
      ["", "lost by any part"],
      ...parts.map((part) => [part, `lost by ${partWord(part)}`]),
    ]);
  let waiting = 0;
  const search = el("input", {
    type: "search",
    id: "search",
    placeholder: "Search (/)",
    "aria-label": "Search in questions, answers and steps",
    autocomplete: "off",
    oninput: (event) => {
      clearTimeout(waiting);
      waiting = setTimeout(() => {
        filters.q = event.target.value.trim().toLowerCase();
        applyFilters();
        searchDetails(filters.q);
      }, TYPING_MS);
    },
  });
  byId("samples").replaceChildren(
    el(
      "div.list-pane",
      { id: "list-pane" },
      el(
        "form.filters",
        { role: "search", autocomplete: "off", onsubmit: (event) => event.preventDefault() },
        search,
        el("div.selects", {}, choices, lost, selectBox("sort", "order", Object.entries(SORTS))),
      ),
      el("p.tally", { id: "found", role: "status" }),
      el("div.list", { id: "list", tabindex: "0", role: "listbox", "aria-label": "Samples", onscroll: scheduleRows }),
    ),
    el("div.detail", { id: "detail", tabindex: "-1" }),
  );
  new ResizeObserver(scheduleRows).observe(byId("list"));
}

function drawFound() {
  const reset = el(
    "button.quiet",
    {
      type: "button",
      id: "reset",
      onclick: () => {
        resetFilters();
        applyFilters();
      },
    },
    "show all",
  );
  const active = FILTERS.some((name) => filters[name]) || filters.q;
  byId("found").replaceChildren(
    `${shown.length.toLocaleString("en")} of ${count(records.length, "record")}`,
    deep.query === filters.q && !deep.done ? ", searching…" : "",
    " ",
    el("span", {}, active ? reset : "", el("a", { href: address("table", addressFilters()) }, "as a table")),
  );
}

const rowElements = new Map(); // rows in the document, by record
let scheduled = false;

function scheduleRows() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    drawRows();
  });
}

// The canvas is as high as all rows; each row in sight is moved to its place on it.
function drawRows() {
  const list = byId("list");
  if (!list) return;
  const first = Math.max(0, Math.floor(list.scrollTop / ROW_PX) - ROWS_BEYOND);
  const last = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW_PX) + ROWS_BEYOND);
  let canvas = list.firstElementChild;
  if (!canvas) list.append((canvas = el("div.canvas", { role: "presentation" })));
  canvas.style.height = `${shown.length * ROW_PX}px`;
  const wanted = new Set(shown.slice(first, last));
  for (const [record, row] of rowElements) {
    if (wanted.has(record)) continue;
    row.remove();
    rowElements.delete(record);
  }
  for (let at = first; at < last; at += 1) {
    const record = shown[at];
    let row = rowElements.get(record);
    if (!row) {
      row = rowOf(record);
      rowElements.set(record, row);
      canvas.append(row);
    }
    row.style.transform = `translateY(${at * ROW_PX}px)`;
    row.setAttribute("aria-setsize", shown.length);
    row.setAttribute("aria-posinset", at + 1);
    row.setAttribute("aria-selected", String(record === current));
  }
  list.classList.toggle("empty", !shown.length);
}

function rowOf(record) {
  const image = record.sample.picture
    ? el("img", { alt: "", width: "50", height: "50", loading: "lazy" })
    : el("span.no-picture", { "aria-hidden": "true" }, "¶");
  if (record.sample.picture) showPicture(image, record.sample.picture);
  const where = [
    !filters.mode && record.mode,
    runs.length > 1 && !filters.run && runs[record.run].label,
    !filters.task && words(record.sample.task),
    record.epoch > 0 && `epoch ${record.epoch}`,
  ];
  return el(
    "a.row",
    {
      href: sampleAddress(record),
      role: "option",
      tabindex: "-1",
      id: `row${record.place}`,
      onclick: (event) => {
        // With such a key the browser opens the link in a tab or window.
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        openSample(record);
        showDetailOnPhone(true);
      },
    },
    image,
    el(
      "span.text",
      {},
      el(
        "span.head",
        {},
        recordBadge(record),
        " ",
        el("b", {}, record.sample.id),
        record.disagree && el("i.disagree", { title: "runs disagree" }, "⇄"),
        el("span.dim", {}, where.filter(Boolean).join(" · ")),
      ),
      el("span.ask", {}, record.reason || record.sample.query),
    ),
  );
}

// Scroll no further than needed to show a row whole.
function reveal(record) {
  const list = byId("list");
  const at = shown.indexOf(record);
  if (at < 0) return;
  const top = at * ROW_PX;
  if (top < list.scrollTop) list.scrollTop = top;
  else if (top + ROW_PX > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW_PX - list.clientHeight;
  byId("list").setAttribute("aria-activedescendant", `row${record.place}`);
  drawRows();
}

// Open a record beside the list. `replace`: the Back key does not return to the one before.
function openSample(record, { replace = false } = {}) {
  current = record;
  if (record) {
    reveal(record);
    drawDetail(record);
  } else {
    drawRows();
    byId("detail").replaceChildren(el("p.empty-state", {}, "No sample matches these filters."));
  }
  if (readAddress().view === "samples") {
    const target = address("samples", { ...addressFilters(), id: record ? decodeURIComponent(record.link) : "" });
    if (target !== location.hash) history[replace ? "replaceState" : "pushState"](null, "", target);
  }
}

function moveBy(by) {
  if (!shown.length) return;
  const at = shown.indexOf(current);
  openSample(shown[Math.min(Math.max(at + by, 0), shown.length - 1)], { replace: true });
}

const showDetailOnPhone = (open) => byId("samples").classList.toggle("reading", open);

// Take filters and sample from the address; a sample that the filters hide removes them.
function followAddress(parameters) {
  readFilters(parameters);
  const wanted = parameters.get("id");
  const record = wanted && records.find((each) => decodeURIComponent(each.link) === wanted);
  if (record && !matches(record)) filters = { q: "", sort: filters.sort };
  // From the tab, the list begins with the run that the overview is about.
  if (!wanted && !filters.run && !filters.mode && runs.length > 1 && ![...parameters.keys()].length)
    filters.run = String(chosenRun);
  byId("search").value = filters.q;
  syncControls();
  if (record) current = record;
  shown = records.filter((each) => matches(each)).sort(ORDERS[filters.sort] ?? ORDERS.worst);
  drawFound();
  openSample(record || (shown.includes(current) ? current : (shown[0] ?? null)), { replace: true });
  showDetailOnPhone(Boolean(record));
  if (filters.q) searchDetails(filters.q);
}
