// Overview: runs between floor and ceiling, where the points went, tasks, and samples worth a look.

const SHAPES = ["circle", "square", "diamond", "triangle"];
const MANY_RUNS = 4;
const FEW = 5; // fewer samples than these are grey
const ROLES = ["model", "baseline", "planner", "colours", "floor", "ceiling"];
let chosenRun = ROLES.map((role) => runs.findIndex((run) => run.role === role)).find((at) => at >= 0);

const shapeOf = (at) => `dot run${at % SHAPES.length} ${SHAPES[at % SHAPES.length]}`;
const onScale = (share) => ((head.measure?.out_of ?? 100) === 100 ? points(share) : (head.measure.out_of * share).toFixed(2));

// Floors, planner and ceiling: runs of the page, and baselines that were computed for it.
function marks() {
  const known = runs.map((run) => ({ role: run.role, score: run.score, name: run.label, tasks: run.tasks }));
  const shown = [...known, ...head.references].filter((each) => ["floor", "colours", "planner", "ceiling"].includes(each.role) && each.score);
  const most = Math.max(...known.map((each) => each.score?.[3] ?? 0));
  return shown.map((each) => ({ ...each, part: each.score[3] < most ? ` (n = ${each.score[3]})` : "" }));
}

// One line with the scores of one or several runs: an interval and a dot for each, and ticks for floor and ceiling.
function scale(entries, ticks, title) {
  const place = (share) => `${100 * Math.min(1, Math.max(0, share))}%`;
  return el("span.scale", { role: "img", "aria-label": title },
    el("span.axis"),
    ticks.map((tick) => el(`span.tick.${tick.role}`, { style: { left: place(tick.score[0]) }, title: `${tick.role} ${estimateText(tick.score)}` })),
    entries.map(([at, [, low, high]]) => low !== null && el(`span.interval.run${at % SHAPES.length}`, { style: { left: place(low), width: `calc(${place(high)} - ${place(low)})` } })),
    entries.map((entry) => {
      const [at, [value]] = entry, near = entries.filter(([, [other]]) => Math.abs(other - value) < 0.03);
      const top = `${5 + 7 * (near.indexOf(entry) - (near.length - 1) / 2)}px`; // marks at one place are drawn one above the other
      return el(`span.${shapeOf(at).replaceAll(" ", ".")}`, { style: { left: place(value), top }, title: `${runs[at].label} ${onScale(value)}` });
    }));
}

function estimateText([value, low, high, n]) {
  const interval = low === null ? "no interval: fewer than 10 clusters" : `95 % interval ${onScale(low)} to ${onScale(high)}`;
  return `${onScale(value)}, ${interval}, n = ${n}`;
}

const rangeText = ([, low, high]) => (low === null ? "" : `(${onScale(low)} to ${onScale(high)})`);

function figure(run) {
  if (!run.score) return el("span.figure.none", { title: run.withheld }, run.withheld ? "withheld" : "no score");
  return el("span.figure", { title: estimateText(run.score) }, el("b", {}, onScale(run.score[0])), el("small", {}, rangeText(run.score)));
}

function spent(run) {
  const parts = [
    run.usd !== null && [dollars(run.usd), "cost"],
    run.tokens > 0 && [`${amount(run.tokens)} tokens`, run.token_parts],
    run.seconds > 0 && [`${duration(run.seconds)} a sample`, "mean time of a sample, as in the run statistics; several samples run at the same time"],
    [count(run.records, "record"), "samples times modes times epochs"],
    run.invalid > 0 && [`${run.invalid} invalid`, "no reply was received; excluded from all averages"],
    run.missing > 0 && [`${run.missing} missing`, "planned and not finished; run the same agrotools eval command to resume"],
  ];
  return el("span.spent.dim", {}, parts.filter(Boolean).map(([text, title], at) => [at > 0 && " · ", el("span", { title }, text)]));
}

const yardstickBadge = () => el("abbr.badge", { title: head.terms[head.yardstick] }, head.yardstick);

function runsCard() {
  const references = marks().filter((mark) => mark.role !== "planner" || runs.length === 1);
  const ticks = references.map((mark) => ({ role: mark.role, score: mark.score }));
  const order = runs.map((run, at) => at);
  if (runs.length > MANY_RUNS) order.sort((a, b) => (runs[b].score?.[0] ?? -1) - (runs[a].score?.[0] ?? -1));
  const rows = order.map((at) => [runs[at], at]).map(([run, at]) => el(`div.run${run.role === "model" ? "" : ".baseline"}`, {},
    el("span.name", {},
      el("button.pick", { type: "button", "aria-pressed": String(at === chosenRun), title: "show this run below", onclick: () => { chosenRun = at; drawOverview(); } },
        el(`span.${shapeOf(at).replaceAll(" ", ".")}.still`), run.label),
      run.privileged && [" ", yardstickBadge()],
      run.unsealed && [" ", el("span.badge", { title: "not isolated, so it could have read the answers" }, "unsealed")]),
    figure(run),
    run.score ? scale([[at, run.score]], ticks.filter((tick) => tick.role !== run.role), `${run.label}: ${estimateText(run.score)}`)
      : el("span.dim", {}, run.possible ? `between ${onScale(run.possible[0])} and ${onScale(run.possible[1])} if all invalid ones are counted` : ""),
    spent(run)));
  const heads = head.measure && el("div.run.heads", { "aria-hidden": "true" },
    el("span.name.dim", {}, head.measure.mode.replaceAll("-", " ")),
    el("span.figure.dim", {}, term(head.measure.label)),
    el("span.scale.labels", {}, references.every((mark) => mark.score[0] >= 0.05) && el("span.end", {}, "0"), scaleLabels(references), el("span.end.right", {}, (head.measure?.out_of ?? 100))),
    el("span.spent"));
  return el(`section.card.runs${runs.length > MANY_RUNS ? ".many" : ""}`, { "aria-label": "Runs" }, heads, rows, pairLine());
}

// The names of the ticks, each at its place, or in one row where these would cover each other.
function scaleLabels(references) {
  const shown = [...references].sort((a, b) => a.score[0] - b.score[0]);
  const crowded = shown.some((mark, at) => at && mark.score[0] - shown[at - 1].score[0] < 0.7 / (shown.length - 1));
  const labels = shown.map((mark, at) => el(`span.${crowded ? "" : "label."}${mark.role}`, { style: { left: `${100 * mark.score[0]}%` } }, `${crowded && at ? " · " : ""}${mark.role} ${onScale(mark.score[0])}${mark.part}`));
  return crowded ? el("span.side", { style: { left: `${100 * Math.min(0.1, shown[0].score[0])}%` } }, labels) : labels;
}

// --- differences ----------------------------------------------------------------------------------------------------

const isModel = (at) => runs[at].role === "model";

// The pair of the two best models. Baselines are yardsticks, so that they are never one of the two.
function mainPair() {
  const pairs = head.pairs.filter((pair) => isModel(pair.first) && isModel(pair.second) && (!head.measure || (pair.mode === head.measure.mode && pair.label === head.measure.label)));
  const score = (at) => runs[at].score?.[0] ?? -1;
  return pairs.sort((a, b) => score(b.first) + score(b.second) - score(a.first) - score(a.second))[0];
}

function pairLine() {
  const pair = mainPair();
  if (!pair) return runs.filter((_, at) => isModel(at)).length > 1 && el("p.pair.dim", {}, "This page has no difference of these runs. agrotools compare shows it, or says why there is none. ", el("a", { href: "#compare" }, "samples that differ"));
  const flips = flipped(pair.first, pair.second, pair.mode);
  return el("p.pair", {}, verdictLine(pair),
    flips.up.length + flips.down.length > 0 && `. ${runs[pair.second].label} scores higher on ${count(flips.up.length, "sample")}, lower on ${flips.down.length}, the same on ${flips.same}`,
    ". ", el("a", { href: address("compare", { a: pair.first, b: pair.second }) }, "Details"));
}

const verdictLine = (pair) => el(`strong.${pair.differs ? "shown" : "unshown"}`, { title: pair.p === null ? "" : `p = ${pair.p.toPrecision(2)}, adjusted for all pairs (Holm)` }, pair.verdict);

// --- where the points went ------------------------------------------------------------------------------------------

// What people read of a cause: its label, and for a tool also its name. A narrow bar shows a tool by its name alone.
const causeOf = (part) => (part.startsWith("tool:") ? "tool:" : part);
const toolsOf = (part) => part.slice(5).split("+").join(", ");
const partWord = (part) => { const { label } = head.parts[causeOf(part)]; return part.startsWith("tool:") ? `${label} (${toolsOf(part)})` : label; };
const barWord = (part) => (part.startsWith("tool:") ? toolsOf(part) : partWord(part));
const partTitle = (part) => head.parts[causeOf(part)].meaning;
const partOrder = (part) => Object.keys(head.parts).indexOf(causeOf(part));
const kindOf = (part) => (part.startsWith("tool:") ? "tool" : part);

// Points that a run lost in the mode of the headline; without parts if it has no score of the answers.
const NOTHING_LOST = { run: { parts: {} }, unknown_results: 0 };
const lostSplit = (at) => (runs[at].withheld ? null : runs[at].lost[head.measure?.mode]) ?? NOTHING_LOST;
const lostParts = (split) => Object.entries(split.parts).filter(([, lost]) => Math.abs(lost) >= 0.05).sort((a, b) => b[1] - a[1]);

// A bar for each of a few runs, or for the chosen one of many.
function lostCard() {
  const asked = runs.length > MANY_RUNS ? [chosenRun] : runs.map((_, at) => at);
  const shown = asked.filter((at) => lostParts(lostSplit(at).run).length);
  if (!shown.length) return null;
  const whose = runs.length > MANY_RUNS ? ` ${runs[chosenRun].label} · press the name of another run to see its points` : "";
  return el("section.card.lost", {}, el("h2", {}, "Where the points went", el("small.dim", {}, whose)),
    el("p.dim", {}, "Click a lost part to see its samples."), shown.map((at) => lostOfRun(at, shown.length > 1)));
}

function lostOfRun(at, isNamed) {
  const run = runs[at];
  const { run: split, unknown_results: unknown } = lostSplit(at);
  const parts = lostParts(split);
  // A headline metric of some of the samples alone, such as the accuracy of choice questions, says nothing about the others.
  const partial = run.score && 100 * (1 - run.score[0]) < split.gap - 0.05;
  const total = parts.reduce((sum, [, lost]) => sum + Math.max(lost, 0), 0);
  const share = (size) => ({ flexGrow: size / (split.score + total), flexBasis: 0 });
  const title = (part, lost) => {
    const interval = split.intervals?.[part];
    return `${partWord(part)} ${one(lost)}: ${partTitle(part)}${interval ? `, 95 % interval ${one(interval.lower)} to ${one(interval.upper)}` : ""}`;
  };
  const href = (part) => address("samples", { run: at, mode: head.measure?.mode, lost: part });
  return el("div.of-run", {},
    isNamed && el("h3", {}, el(`span.${shapeOf(at).replaceAll(" ", ".")}.still`), run.label),
    el("p.dim", {}, `${points(split.score / 100)} of ${one(split.ceiling)} points scored, ${one(split.gap)} lost, in ${count(split.n, "sample")}${partial ? " (all that have a score; the metric above is of some of them)" : ""}.`),
    el("div.bar", {},
      split.score > 0 && el("span.part.scored", { title: `${points(split.score / 100)} points scored`, style: share(split.score) }, el("span", {}, "score"), el("b", {}, points(split.score / 100))),
      parts.filter(([, lost]) => lost > 0).map(([part, lost]) => el(`a.part.${kindOf(part)}`, { href: href(part), title: title(part, lost), style: share(lost) },
        el("span", {}, barWord(part)), el("b", {}, one(lost))))),
    el("ul.parts", {}, el("li", {}, el("i.key.scored"), "score ", el("b", {}, points(split.score / 100))), parts.map(([part, lost]) => el("li", {}, el(`i.key.${kindOf(part)}`), el("a", { href: href(part), title: title(part, lost) }, partWord(part)), " ", el("b", {}, one(lost))))),
    unknown > 0 && el("p.dim", {}, `This split is an estimate, because the results of ${count(unknown, "call")} with other arguments are not known. To make the calls, run `, el("code", {}, `agrotools attribute ${run.folder}`), "."));
}

// --- the table of own photos ----------------------------------------------------------------------------------------

// How often the tools agree with the table of whoever built the benchmark from own photos, as the build found, and how
// often each run named something on pictures of something else.
function checksCard() {
  if (!head.checks.length && !head.strangers.length) return null;
  return el("section.card.checks", {}, el("h2", {}, "Your table and the tools", head.checks.length > 0 && el("small.dim", {}, " photo by photo, when the benchmark was built")), head.checks.map(({ text, labels, photos }) => [
    el("p", {}, text),
    labels.length > 1 && labelTable(labels),
    photos.length > 0 && el("details", {}, el("summary", {}, `${count(photos.length, "photo")}, one by one`), photoTable(photos)),
  ]), head.strangers.map((text) => el("p", {}, text)));
}

// Photos by label: how many of them were named right, and what else happened; a column without a number is left out.
function labelTable(labels) {
  const others = ["named otherwise", "not named"].map((name, at) => ({ name, at: at + 2 })).filter(({ at }) => labels.some((row) => row[at] > 0));
  const columns = ["named right", ...others.map(({ name }) => name)];
  return el("div.scroll", { tabindex: "0", role: "region", "aria-label": "Photos by label" }, el("table.numbers", {},
    el("thead", {}, el("tr", {}, el("td"), columns.map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, labels.map((row) => {
      const [label, right, otherwise, notNamed] = row;
      return el("tr", {}, el("th", { scope: "row" }, label), el("td", {}, `${right} of ${right + otherwise + notNamed}`), others.map(({ at }) => el("td", {}, row[at] > 0 && String(row[at]))));
    }))));
}

// What the table says of each photo, what the tool returned, and whether both agree; first those that differ.
function photoTable(photos) {
  return el("div.scroll", { tabindex: "0", role: "region", "aria-label": "Photos one by one" }, el("table.numbers.photos", {},
    el("thead", {}, el("tr", {}, head.photo_columns.map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, photos.map(([photo, ...cells]) => el("tr", {}, el("th", { scope: "row" }, photo), cells.map((cell) => el("td", {}, cell)))))));
}

// --- tasks ----------------------------------------------------------------------------------------------

function tasksCard() {
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.tasks)))].sort();
  if (!names.length) return null;
  const references = marks().filter((mark) => ["floor", "ceiling"].includes(mark.role) && mark.tasks);
  const other = head.other_floor; // of the tasks in which it is higher than the floor
  if (other) references.push({ role: "other floor", tasks: other.tasks });
  const signs = references.map((mark) => ` · ${mark.role === "ceiling" ? "┃" : mark.role === "floor" ? "┊" : "┆"} ${mark.role === "other floor" ? `${other.name}, where it is higher` : mark.role}`).join("");
  const few = names.some((task) => Math.max(...runs.map((run) => run.tasks[task]?.[3] ?? 0)) < FEW) ? ` · grey: fewer than ${FEW} samples` : "";
  const title = el("h2", {}, "By task", head.measure && el("small.dim", {}, ` ${head.measure.label}${signs}${few}`));
  if (runs.length > MANY_RUNS) return el("section.card.tasks.wide", {}, title, heatTable(names));
  const shown = runs.map((run, at) => at).filter((at) => runs[at].role !== "floor" && runs[at].role !== "ceiling");
  const dots = shown.length ? shown : runs.map((run, at) => at);
  return el("section.card.tasks", {}, title, el("table.chart", {}, dots.length > 1 && el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "task"), el("td"), dots.map((at) => el("th.sign", { scope: "col", title: runs[at].label }, el(`span.${shapeOf(at).replaceAll(" ", ".")}.still`, { role: "img", "aria-label": runs[at].label }))))), el("tbody", {}, names.map((task) => {
    const ticks = references.filter((mark) => mark.tasks[task]).map((mark) => ({ role: mark.role === "other floor" ? "colours" : mark.role, score: mark.tasks[task] }));
    const own = dots.filter((at) => runs[at].tasks[task]);
    const most = Math.max(0, ...own.map((at) => runs[at].tasks[task][3]));
    return el(`tr${most < FEW ? ".few" : ""}`, {},
      el("th", { scope: "row" }, el("a", { href: address("samples", { task, mode: head.measure.mode, run: runs.length > 1 ? chosenRun : undefined }) }, words(task))),
      el("td.scales", {}, scale(own.map((at) => [at, runs[at].tasks[task]]), ticks, `${words(task)}: ${own.map((at) => `${runs[at].label} ${estimateText(runs[at].tasks[task])}`).join("; ")}`)),
      dots.map((at) => el("td.number", {}, runs[at].tasks[task] && el("span", { title: `${runs[at].label}: ${estimateText(runs[at].tasks[task])}` }, onScale(runs[at].tasks[task][0]), el("small", {}, ` ${rangeText(runs[at].tasks[task])}`)))), el("td.number.dim", { title: "samples" }, `n ${most}`));
  }))), dots.length > 1 && el("p.dim.key-line", {}, dots.map((at) => el("span.name", {}, el(`span.${shapeOf(at).replaceAll(" ", ".")}.still`), runs[at].label))));
}

// Many runs: a table whose cells are tinted by the score.
function heatTable(names) {
  const order = runs.map((run, at) => at).sort((a, b) => (runs[b].score?.[0] ?? -1) - (runs[a].score?.[0] ?? -1));
  return el("div.scroll", { tabindex: "0", role: "region", "aria-label": "Scores by task" }, el("table.heat", {},
    el("thead", {}, el("tr", {}, el("td"), names.map((task) => el("th", { scope: "col" }, words(task))))),
    el("tbody", {}, order.map((at) => el("tr", {}, el("th", { scope: "row" }, runs[at].label), names.map((task) => {
      const estimate = runs[at].tasks[task];
      if (!estimate) return el("td");
      return el(`td${estimate[3] < FEW ? ".few" : ""}`, { title: estimateText(estimate), style: { background: `color-mix(in srgb, var(--run0) ${Math.round(45 * estimate[0])}%, var(--card))` } },
        el("a", { href: address("samples", { task, run: at, mode: head.measure.mode }) }, onScale(estimate[0])), el("small", {}, ` n ${estimate[3]} ${rangeText(estimate)}`));
    }))))));
}

// --- worth a look ---------------------------------------------------------------------------------------------------

const mainPart = (record) => Object.entries(record.lost).sort((a, b) => b[1] - a[1])[0]?.[0];

// Three samples that lost points by different parts: of each part the one with the lowest score, with a picture if possible.
// Refused pairs come last: they show nothing of what the run can do.
function telling() {
  const mode = head.measure?.mode;
  const own = records.filter((record) => record.run === chosenRun && record.value !== null && record.value < 1 && (!mode || record.mode === mode));
  const refusedTwins = new Set(own.filter((record) => record.lost.twin).map((record) => record.sample.twin));
  const isOrdinary = (record) => mainPart(record) !== "twin" && !refusedTwins.has(record.sample.id);
  const rank = (record) => record.value - (record.sample.picture ? 0.5 : 0) + (isOrdinary(record) ? 0 : 2);
  own.sort((a, b) => rank(a) - rank(b));
  const parts = Object.entries(lostSplit(chosenRun).run.parts).sort((a, b) => b[1] - a[1]).map(([part]) => part);
  const firsts = [own.find((record) => record.disagree && record.value === 0), ...parts.map((part) => own.find((record) => mainPart(record) === part)), ...own];
  return [...new Map(firsts.filter(Boolean).map((record) => [record.sample, record])).values()].slice(0, 3).sort((a, b) => isOrdinary(b) - isOrdinary(a));
}

function whyTelling(record) {
  const part = mainPart(record);
  return `${record.disagree ? "runs disagree; " : ""}${part ? `${partWord(part)}: ${partTitle(part)}` : words(record.mode)}`;
}

function worthCard() {
  const found = telling();
  if (!found.length) return null;
  return el("section.worth", { "aria-label": "Worth a look" }, el("h2", {}, "Worth a look"), el("div.row", {}, found.map((record) => {
    const image = record.sample.picture && el("img", { alt: "", width: "72", height: "72" });
    if (image) showPicture(image, record.sample.picture);
    return el("a.card.telling", { href: sampleAddress(record) }, image, el("span", {}, el("b", {}, record.sample.id), " ", recordBadge(record),
      el("span.why", {}, whyTelling(record)), el("span.dim.ask", {}, record.reason || record.sample.query)));
  })));
}

function notices() {
  const lines = [
    ...head.differences.map((text) => `These runs are not comparable: ${text}.`),
    ...head.notes,
    head.without_detail > 0 && `${count(head.without_detail, "record")} ${head.without_detail === 1 ? "is" : "are"} listed without details, to keep the file small. To see all details, run agrotools view ${runs[0].folder}`,
    20 * head.missing_pictures > head.n_pictures && `${count(head.missing_pictures, "picture")} could not be embedded (the reason stands in place of each). If the benchmark was moved, give its folder with --data-root.`,
  ].filter(Boolean);
  if (!lines.length) return null;
  const [first, ...rest] = lines;
  return el("div.warning", { role: "note" }, el("p", {}, first), rest.length > 0 && el("details", {}, el("summary", {}, `${rest.length} more`), rest.map((line) => el("p", {}, line))));
}

// Cards in two columns that the browser fills evenly, so that none leaves a hole. The user's own photos come first.
function columnsOfCards() {
  const [lost, worth, tasks, checks] = [lostCard(), worthCard(), tasksCard(), checksCard()];
  if (runs.length > MANY_RUNS) return [checks, lost, tasks, worth]; // the table of tasks needs the whole width
  const cards = head.own_photos ? [worth, tasks, checks, lost] : [lost, worth, tasks, checks];
  return [el("div.columns", {}, cards.filter(Boolean))];
}

function drawOverview() {
  byId("overview").replaceChildren(...[notices(), head.scope && el("p.dim", {}, head.scope), runsCard(), ...columnsOfCards(), el("p.dim", {}, el("button.more", { type: "button", onclick: () => openHelp() }, "Keys and terms"), " · more terms: ", el("code", {}, "agrotools docs glossary"))].filter(Boolean));
}
