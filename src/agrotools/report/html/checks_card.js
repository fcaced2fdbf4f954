// Card of the overview: own photos beside the table of whoever took them.

// How often the tools agree with the table of whoever built the benchmark from own photos, as the build found, and how
// often each run named something on pictures of something else.
function checksCard() {
  if (!head.checks.length && !head.strangers.length) return null;
  return el(
    "section.card.checks",
    {},
    el(
      "h2",
      {},
      "Your table and the tools",
      head.checks.length > 0 && el("small.dim", {}, " photo by photo, when the benchmark was built"),
    ),
    head.checks.map(({ text, labels, photos }) => [
      el("p", {}, text),
      labels.length > 1 && labelTable(labels),
      photos.length > 0 &&
        el("details", {}, el("summary", {}, `${count(photos.length, "photo")}, one by one`), photoTable(photos)),
    ]),
    head.strangers.map((text) => el("p", {}, text)),
  );
}

// Photos by label: how many of them were named right, and what else happened; a column without a number is left out.
function labelTable(labels) {
  const others = ["named otherwise", "not named"]
    .map((name, at) => ({ name, at: at + 2 }))
    .filter(({ at }) => labels.some((row) => row[at] > 0));
  const columns = ["named right", ...others.map(({ name }) => name)];
  const rows = labels.map((row) => {
    const [label, right, otherwise, notNamed] = row;
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, label),
      el("td", {}, `${right} of ${right + otherwise + notNamed}`),
      others.map(({ at }) => el("td", {}, row[at] > 0 && String(row[at]))),
    );
  });
  return scrollBox("Photos by label", headedTable("table.numbers", ["", ...columns], rows));
}

// What the table says of each photo, what the tool returned, and whether both agree; first those that differ.
function photoTable(photos) {
  const rows = photos.map(([photo, ...cells]) => {
    const values = cells.map((cell) => el("td", {}, cell));
    return el("tr", {}, el("th", { scope: "row" }, photo), values);
  });
  return scrollBox("Photos one by one", headedTable("table.numbers.photos", head.photo_columns, rows));
}
