// Sample table: a row for each record. A new column is one line of COLUMNS.

const MOST_IN_TABLE = 500; // more rows make a browser slow; filters find the others
const textCell = (text) => el("span", { title: text }, text);

// Columns with the width that they need at least, and what they sort by (`of`). `cell`: what is shown, if not that.
// `varies`: the column is left out if all its values are equal.
const COLUMNS = [
  {
    name: "sample",
    px: 120,
    of: (record) => record.sample.id,
    cell: (record) => el("a", { href: sampleAddress(record), title: record.sample.id }, record.sample.id),
  },
  {
    name: "score",
    px: 70,
    of: (record) => record.value,
    cell: ({ value, state }) => `${MARKS[state]} ${value === null ? "–" : rounded(100 * value)}`,
  },
  { name: "question", px: 250, of: (record) => record.sample.query },
  { name: "expected", px: 160, of: (record) => record.sample.expected },
  {
    name: "answer",
    px: 160,
    of: (record) => record.given,
    cell: ({ given }) => (given ? textCell(given) : el("span.dim", {}, "none")),
  },
  { name: "mode", px: 105, of: (record) => record.mode },
  { name: "run", px: 130, varies: true, of: (record) => runs[record.run].label },
  { name: "lost by", px: 100, varies: true, of: (record) => (mainPart(record) ? partWord(mainPart(record)) : "") },
  { name: "calls", px: 60, varies: true, of: (record) => record.calls },
  { name: "tokens", px: 75, varies: true, of: (record) => record.tokens, cell: (record) => amount(record.tokens) },
  {
    name: "cost",
    px: 75,
    varies: true,
    of: (record) => record.usd,
    cell: (record) => (record.usd === null ? "" : dollars(record.usd)),
  },
];

function cellOf({ of, cell }, record) {
  const value = of(record);
  if (typeof value === "number") return el("td.number", {}, cell ? cell(record) : value);
  return el("td.words", {}, cell ? cell(record) : textCell(value));
}

// Rows that were drawn, by record, so that another order or filter draws none again; with other columns all are new.
let tableRows = new WeakMap();
let drawnColumns = "";

function tableRow(record, columns) {
  if (!tableRows.has(record)) {
    const cells = columns.map((column) => cellOf(column, record));
    tableRows.set(record, el("tr", {}, cells));
  }
  return tableRows.get(record);
}

// Heading of a column: a link that sorts by it, and the other way round if the table is sorted by it.
function columnHeading({ name, px }, by, isDescending) {
  const isSorted = name === by.name;
  const target = address("table", { ...addressFilters(), by: name, down: isSorted && !isDescending ? 1 : undefined });
  const order = isDescending ? "descending" : "ascending";
  return el(
    "th",
    { scope: "col", style: { width: `${px}px` }, "aria-sort": isSorted ? order : undefined },
    el("a", { href: target }, name, isSorted && (isDescending ? " ▼" : " ▲")),
  );
}

// Records in the order of a column; those without a value of it come last in either order.
function sortedBy(column, isDescending, some) {
  const keys = new Map(some.map((record) => [record, column.of(record)]));
  const compare = (a, b) => {
    if (a === b) return 0;
    if (a === null || b === null) return a === null ? 1 : -1;
    return a < b === isDescending ? 1 : -1;
  };
  return [...some].sort((a, b) => compare(keys.get(a), keys.get(b)) || byName(a, b));
}

function drawTable(parameters) {
  readFilters(parameters);
  const columnOf = (wanted) => COLUMNS.find(({ name }) => name === wanted);
  const by = columnOf(parameters.get("by")) ?? columnOf("score");
  const isDescending = parameters.has("down");
  const found = sortedBy(
    by,
    isDescending,
    records.filter((record) => matches(record)),
  );
  const columns = COLUMNS.filter(({ varies, of }) => !varies || new Set(records.map(of)).size > 1);
  const minWidth = `${columns.reduce((sum, { px }) => sum + px, 0)}px`;
  const names = columns.map(({ name }) => name).join();
  if (names !== drawnColumns) [tableRows, drawnColumns] = [new WeakMap(), names];
  const headings = columns.map((column) => columnHeading(column, by, isDescending));
  const rows = found.slice(0, MOST_IN_TABLE).map((record) => tableRow(record, columns));
  const more = found.length > MOST_IN_TABLE ? `; the first ${MOST_IN_TABLE} are shown` : "";
  byId("table").replaceChildren(
    el(
      "p.dim",
      { role: "status" },
      `${found.length.toLocaleString("en")} of ${count(records.length, "record")}${more}. `,
      el("a", { href: address("samples", addressFilters()) }, "Filter them in the list"),
    ),
    scrollBox(
      "Samples",
      el("table.data.samples", { style: { minWidth } }, el("thead", {}, el("tr", {}, headings)), el("tbody", {}, rows)),
    ),
  );
}
