// Overview: notices, then cards that are drawn by the files after this one.

const MANY_RUNS = 4; // with more, the overview shows one run at a time
// The run that the overview is about at first: the first model, else what comes next.
const ROLES = ["model", "baseline", "planner", "colours", "floor", "ceiling"];
let chosenRun = ROLES.map((role) => runs.findIndex((run) => run.role === role)).find((at) => at >= 0);

function notices() {
  const lines = [
    ...head.differences.map((text) => `These runs are not comparable: ${text}.`),
    ...head.notes,
    head.without_detail > 0 &&
      `${count(head.without_detail, "record")} ${head.without_detail === 1 ? "is" : "are"} listed without details, to keep the file small. To see all details, run agrotools view ${runs[0].folder}`,
    20 * head.missing_pictures > head.n_pictures &&
      `${count(head.missing_pictures, "picture")} could not be embedded (the reason stands in place of each). If the benchmark was moved, give its folder with --data-root.`,
  ].filter(Boolean);
  if (!lines.length) return null;
  const [first, ...rest] = lines;
  return el(
    "div.warning",
    { role: "note" },
    el("p", {}, first),
    rest.length > 0 &&
      el(
        "details",
        {},
        el("summary", {}, `${rest.length} more`),
        rest.map((line) => el("p", {}, line)),
      ),
  );
}

// Cards in two columns that the browser fills evenly, so that none leaves a hole. The user's own photos come first.
function columnsOfCards() {
  const [lost, worth, tasks, checks] = [lostCard(), worthCard(), tasksCard(), checksCard()];
  if (runs.length > MANY_RUNS) return [checks, lost, tasks, worth]; // the table of tasks needs the whole width
  const cards = head.own_photos ? [worth, tasks, checks, lost] : [lost, worth, tasks, checks];
  return [el("div.columns", {}, cards.filter(Boolean))];
}

function drawOverview() {
  byId("overview").replaceChildren(
    ...[
      notices(),
      head.scope && el("p.dim", {}, head.scope),
      runsCard(),
      ...columnsOfCards(),
      el(
        "p.dim",
        {},
        el("button.more", { type: "button", onclick: () => openHelp() }, "Keys and terms"),
        " · more terms: ",
        el("code", {}, "agrotools docs glossary"),
      ),
    ].filter(Boolean),
  );
}
