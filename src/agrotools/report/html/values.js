// Values of any form: texts, numbers, lists, tables. Long content is shortened and shown whole on demand.

const SHORT = 240;
const FEW_ROWS = 8;

// Long content is shortened on the page and shown whole on demand; nothing is lost.
function longText(text, limit = SHORT) {
  if (text.length <= limit) return text;
  const box = el("span", {}, `${text.slice(0, limit)}… `);
  box.append(
    el(
      "button.more",
      { type: "button", onclick: () => box.replaceChildren(harmless(text)) },
      `show all ${text.length.toLocaleString("en")} characters`,
    ),
  );
  return box;
}

const isTable = (value) =>
  Array.isArray(value) &&
  value.length > 0 &&
  value.every((item) => item && typeof item === "object" && !Array.isArray(item));

const plainText = (value) =>
  typeof value === "number"
    ? String(Math.abs(value) >= 1e15 || Number.isInteger(value) ? value : Number(value.toPrecision(5)))
    : typeof value === "boolean"
      ? value
        ? "yes"
        : "no"
      : String(value);

function valueView(value) {
  if (value === null) return el("span.dim", {}, "none");
  if (typeof value !== "object") return longText(plainText(value));
  if (isTable(value)) {
    const columns = [...new Set(value.flatMap(Object.keys))];
    return tableView(
      [
        columns,
        ...value.map((row) =>
          columns.map((column) =>
            row[column] === undefined || row[column] === null
              ? ""
              : typeof row[column] === "object"
                ? JSON.stringify(row[column])
                : plainText(row[column]),
          ),
        ),
      ],
      value.length,
    );
  }
  if (Array.isArray(value))
    return longText(
      value.every((item) => typeof item !== "object")
        ? value.map(plainText).join(", ")
        : JSON.stringify(value).replaceAll(",", ", "),
    );
  return fieldList(Object.entries(value));
}

const fieldList = (entries) =>
  el(
    "dl.fields",
    {},
    entries.map(([name, value]) =>
      el("div", {}, el("dt", {}, name), el("dd", {}, typeof value === "string" ? longText(value) : valueView(value))),
    ),
  );

function tableView(rows, total) {
  const [header, ...body] = rows;
  const bodyRow = (row) =>
    el(
      "tr",
      {},
      row.map((cell) => el("td", {}, longText(String(cell), 120))),
    );
  const draw = (some) => headedTable("table.data", header, some.map(bodyRow));
  const box = scrollBox("Table", draw(body.slice(0, FEW_ROWS)));
  const note = body.length < total ? ` The file has ${count(total, "row")}.` : "";
  if (body.length <= FEW_ROWS) return box;
  const more = el(
    "p",
    {},
    el(
      "button.more",
      {
        type: "button",
        onclick: () => {
          box.replaceChildren(draw(body));
          more.replaceChildren(note);
        },
      },
      `show all ${count(body.length, "row")}`,
    ),
    note,
  );
  return el("div", {}, box, more);
}

const labelled = (lines) =>
  lines.length > 0 &&
  el(
    "dl.labelled",
    {},
    lines.map(([label, text, style]) =>
      el(
        "div",
        {},
        el("dt", {}, label),
        el(
          "dd",
          { class: { dim: "dim", yellow: "odd", red: "bad", green: "good", "bold red": "bad" }[style] ?? "" },
          longText(text, 600),
        ),
      ),
    ),
  );

function fold(title, make, className = "") {
  const box = el(`details${className}`, {}, el("summary", {}, title));
  box.addEventListener("toggle", async () => {
    if (box.open && box.children.length === 1) box.append(...[await make()].flat());
  });
  return box;
}

const rawText = (text) => el("pre.raw", { tabindex: "0" }, text);
