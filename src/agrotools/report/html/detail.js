// One sample: question and pictures, steps as a timeline, answer, scores, and what the model was sent.

const SHORT = 240;
const FEW_ROWS = 8;
const FEW_ABSENT = 1; // more files without a picture would push the steps down
let stage = null;

// Long content is shortened on the page and shown whole on demand; nothing is lost.
function longText(text, limit = SHORT) {
  if (text.length <= limit) return text;
  const box = el("span", {}, `${text.slice(0, limit)}… `);
  box.append(el("button.more", { type: "button", onclick: () => box.replaceChildren(harmless(text)) }, `show all ${text.length.toLocaleString("en")} characters`));
  return box;
}

const isTable = (value) => Array.isArray(value) && value.length > 0 && value.every((item) => item && typeof item === "object" && !Array.isArray(item));
const plain = (value) => (typeof value === "number" ? String(Math.abs(value) >= 1e15 || Number.isInteger(value) ? value : Number(value.toPrecision(5))) : typeof value === "boolean" ? (value ? "yes" : "no") : String(value));

function valueView(value) {
  if (value === null) return el("span.dim", {}, "none");
  if (typeof value !== "object") return longText(plain(value));
  if (isTable(value)) {
    const columns = [...new Set(value.flatMap(Object.keys))];
    return tableView([columns, ...value.map((row) => columns.map((column) => (row[column] === undefined || row[column] === null ? "" : typeof row[column] === "object" ? JSON.stringify(row[column]) : plain(row[column]))))], value.length);
  }
  if (Array.isArray(value)) return longText(value.every((item) => typeof item !== "object") ? value.map(plain).join(", ") : JSON.stringify(value).replaceAll(",", ", "));
  return fieldList(Object.entries(value));
}

const fieldList = (entries) => el("dl.fields", {}, entries.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, typeof value === "string" ? longText(value) : valueView(value)))));

function tableView(rows, total) {
  const [header, ...body] = rows;
  const draw = (some) => el("table.data", {}, el("thead", {}, el("tr", {}, header.map((cell) => el("th", { scope: "col" }, cell)))), el("tbody", {}, some.map((row) => el("tr", {}, row.map((cell) => el("td", {}, longText(String(cell), 120)))))));
  const box = el("div.scroll", { tabindex: "0", role: "region", "aria-label": "Table" }, draw(body.slice(0, FEW_ROWS)));
  const note = body.length < total ? ` The file has ${count(total, "row")}.` : "";
  if (body.length <= FEW_ROWS) return box;
  const more = el("p", {}, el("button.more", { type: "button", onclick: () => { box.replaceChildren(draw(body)); more.replaceChildren(note); } }, `show all ${count(body.length, "row")}`), note);
  return el("div", {}, box, more);
}

const labelled = (lines) => lines.length > 0 && el("dl.labelled", {}, lines.map(([label, text, style]) => el("div", {}, el("dt", {}, label), el("dd", { class: { dim: "dim", yellow: "odd", red: "bad", green: "good", "bold red": "bad" }[style] ?? "" }, longText(text, 600)))));

function fold(title, make, className = "") {
  const box = el(`details${className}`, {}, el("summary", {}, title));
  box.addEventListener("toggle", async () => { if (box.open && box.children.length === 1) box.append(...[await make()].flat()); });
  return box;
}

const rawText = (text) => el("pre.raw", { tabindex: "0" }, text);

// --- question -------------------------------------------------------------------------------------------------------

function fileParts(data) {
  const pictures = data.files.filter((file) => file.picture);
  const layers = data.steps.flatMap((step) => (step.files ?? []).filter((file) => file.picture).map((file) => ({ ...file, from: `${step.n}` })));
  const others = data.files.filter((file) => !file.picture);
  const absent = others.filter((file) => !file.rows);
  stage = pictures.length ? pictureStage({ files: pictures, layers: layers.filter((each) => each.kind === "overlay" || each.kind === "mask"), shapes: shapesOf(data) }) : null;
  return [stage, others.filter((file) => file.rows).map(fileView),
    absent.length > FEW_ABSENT ? fold(`${absent.length} files are not shown`, () => absent.map(fileView)) : absent.map(fileView)];
}

function fileView(file) {
  const title = el("figcaption", {}, el("b", {}, file.name), ` ${file.text ?? ""}`, file.how && ` (${file.how})`);
  if (file.rows) return el("figure.table", {}, title, tableView(file.rows, file.n_rows));
  if (!file.picture) return el("figure.absent", {}, el("figcaption", {}, el("b", {}, file.name), ` ${file.text ?? ""}: ${file.absent}`));
  const image = el("img", { alt: `${file.name}, ${file.text}`, width: file.shown[0], height: file.shown[1] });
  showPicture(image, file.picture);
  return el("figure.picture", {}, el("button.zoom", { type: "button", "aria-label": `enlarge ${file.name}`, onclick: () => enlarge({ files: [file], layers: [], shapes: new Map() }) }, image), title);
}

// --- steps ----------------------------------------------------------------------------------------------------------

function argumentTable(step) {
  if (step.args.length) return el("table.arguments", {}, el("thead", {}, el("tr", {}, ["argument", "value", step.against].map((text) => el("th", { scope: "col" }, text)))), el("tbody", {}, step.args.map(([name, value, expected, mark, detail]) => {
    const raw = step.call?.[name];
    const whole = raw !== undefined && /… \(\d+ more characters\)$/.test(value) ? longText(typeof raw === "string" ? raw : JSON.stringify(raw)) : longText(value);
    return el("tr", { class: mark === "✗" ? "wrong" : mark === "≈" ? "nearly" : "right" }, el("th", { scope: "row" }, el("span.mark", {}, mark), " ", name), el("td", {}, whole), el("td", {}, mark === "✓" ? el("span.dim", {}, "same") : longText(expected), detail && mark !== "✓" && el("span.dim", {}, ` (${detail})`)));
  })));
  if (step.call && Object.keys(step.call).length) return fieldList(Object.entries(step.call));
  return step.plain.length > 0 && fieldList(step.plain);
}

const FIRST_FIELDS = 8;

function resultView(step) {
  if (!step.result && !step.error) return null;
  const names = new Set((step.files ?? []).map((file) => file.name));
  const entries = Object.entries(step.result ?? {}).filter(([name, value]) => !names.has(value) && name !== "notes" && name !== "flags" && !(name === "spec" && step.result.summary));
  const light = (value) => value === null || typeof value !== "object" || (Array.isArray(value) && JSON.stringify(value).length < 80);
  const [short, long] = [entries.filter(([, value]) => light(value)), entries.filter(([, value]) => !light(value))];
  // A tool of another server may use these names for something else than lists.
  const listOf = (value) => (Array.isArray(value) ? value.map(String) : value ? [String(value)] : []);
  const flags = listOf(step.result?.flags), notes = listOf(step.result?.notes);
  return el("div.seen", {}, el("p.word", {}, step.word || "result"), el("div", {},
    step.error && el("p.bad", {}, el("b", {}, "✗ error "), longText(step.error, 600)),
    short.length > 0 && fieldList(short.slice(0, FIRST_FIELDS)),
    flags.length > 0 && el("p.odd", {}, flags.map((flag) => `⚑ ${flag} `)),
    notes.map((note) => el("p.dim", {}, longText(note))),
    long.map(([name, value]) => fold(`${name}${Array.isArray(value) ? ` (${value.length})` : ""}`, () => valueView(value))),
    short.length > FIRST_FIELDS && fold(`${short.length - FIRST_FIELDS} more fields`, () => fieldList(short.slice(FIRST_FIELDS))),
    step.result && fold("whole result", () => rawText(JSON.stringify(step.result, null, 1)))));
}

function stepView(step, longest, certificates) {
  const seconds = (step.seconds ?? 0) + (step.reply?.seconds ?? 0);
  const tokens = step.reply && step.reply.tokens[0] + step.reply.tokens[1] > 0 && `${amount(step.reply.tokens[0])} + ${amount(step.reply.tokens[1])} tokens`;
  const time = [step.about, step.reply && step.reply.seconds > 0 && `model ${duration(step.reply.seconds)}`, tokens].filter(Boolean).join(", ");
  const tested = certificates[step.tool];
  const item = el(`li.step.${step.state || "plain"}`, { data: { step: step.n } },
    el("header", {}, el("span.number", {}, step.n || "–"), el("h4", {}, tested ? el("abbr", { title: tested }, step.title) : step.title), step.verdict && el(`span.verdict.${step.state || "plain"}`, {}, step.verdict),
      el("span.time.dim", {}, time, el("span.meter", { "aria-hidden": "true" }, el("i", { style: { width: `${longest ? (100 * seconds) / longest : 0}%` } })))),
    step.thought && el("p.thought", {}, longText(step.thought, 600)),
    argumentTable(step),
    step.text && el("p.text", {}, longText(step.text, 1200)),
    resultView(step),
    labelled(step.lines),
    step.scores.length > 0 && el("p.dim", {}, step.scores.map(([label, value], at) => [at > 0 && ", ", term(label), ` ${value}`])),
    (step.files ?? []).length > 0 && el("div.figures", {}, step.files.map(fileView)),
    step.reply?.text && fold("raw reply", () => rawText(step.reply.text)));
  item.addEventListener("mouseenter", () => stage?.light(step.n));
  item.addEventListener("mouseleave", () => stage?.light(null));
  return item;
}

function stepsView(data, record) {
  if (!data.steps.length) return null;
  const longest = Math.max(0, ...data.steps.map((step) => (step.seconds ?? 0) + (step.reply?.seconds ?? 0)));
  const sums = [record.seconds > 0 && duration(record.seconds), record.tokens > 0 && `${data.sent_tokens}, ${amount(data.tokens[1])} out`, data.usd !== null && dollars(data.usd), data.silent && "usage not reported by the agent"].filter(Boolean).join(", ");
  return el("section.taken", {}, el("h3", {}, record.mode === "step-by-step" ? "Predicted steps " : "Steps ", el("small.dim", {}, sums)),
    el("ol.steps", {}, data.steps.map((step) => stepView(step, longest, runs[record.run].certificates)),
      data.left > 0 && el("li.step", {}, el("p.dim", {}, `${data.left} more steps are not on this page. To see them, run agrotools explain ${runs[record.run].folder} ${record.sample.id}`))));
}

// --- answer and scores ----------------------------------------------------------------------------------------------

const pattern = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

const LONGEST_MATCHED = 240; // words that a slot was read from are cut there

// Place of the words that a slot was read from, as [start, end]. The last form of an answer counts: its words stand
// right behind the name of the slot. Without the name these are the last ones that are no part of another word.
function placeOfWords(text, name, written, isCut) {
  const words = written.split(/\s+/).map(pattern).join("\\s+");
  const whole = `(?<![\\w.])${words}${isCut ? "" : "(?![\\w]|[.,]\\d)"}`;
  const named = `(?<!\\w)${name.split("_").map(pattern).join("[_ ]")}(?!\\w)[^\\w\\n]{1,20}`;
  for (const before of [named, ""]) {
    const last = [...text.matchAll(new RegExp(`(${before})(${whole})`, "gi"))].at(-1);
    if (last) return [last.index + last[1].length, last.index + last[0].length];
  }
  return null;
}

// The answer, with the words that each slot was read from marked in it.
function answerView(data) {
  if (data.answer === null) return data.ended && el("p.bad", {}, `✗ no answer (${data.ended})`);
  const text = data.answer || "(empty)";
  const spans = [];
  for (const slot of data.slots) {
    const written = slot.matched.split(" | ").map((words) => words.trim()).filter(Boolean); // several, if they differ
    const isCut = slot.matched.length >= LONGEST_MATCHED;
    const places = written.map((words) => placeOfWords(text, slot.name, words, isCut)).filter(Boolean);
    for (const [at, end] of places) {
      if (!spans.some((span) => at < span.end && end > span.at)) spans.push({ at, end, slot });
    }
  }
  spans.sort((a, b) => a.at - b.at);
  const parts = [];
  let from = 0;
  for (const { at, end, slot } of spans) {
    parts.push(text.slice(from, at), el(`mark.${stateOf(slot.value)}`, { title: `${slot.label}, read from these words, scored ${rounded(100 * slot.value)} of 100` }, text.slice(at, end)));
    from = end;
  }
  return [el("p.answer", {}, parts, longText(text.slice(from), 4000)), data.ended && el("p.bad", {}, `✗ ${data.ended}`)];
}

function slotsView(data) {
  if (!data.slots.length) return null;
  return el("section.card.slots", {}, el("h3", {}, "Scores"), data.slots.map((slot) => el("div.slot", {}, el("h4", {}, badge(slot.value), " ", slot.label, el("small.dim", {}, ` ${slot.type}`)), labelled(slot.lines))));
}

function lostView(record, data) {
  const parts = Object.entries(record.lost).filter(([, lost]) => Math.abs(lost) >= 0.05);
  if (!parts.length || record.mode !== head.measure?.mode) return null;
  return el("section.card.lost", {}, el("h3", {}, "Points lost by"), el("ul.parts", {}, parts.map(([part, lost]) => el("li", {}, el(`i.key.${kindOf(part)}`), el("span", { title: partTitle(part) }, partWord(part)), " ", el("b", {}, one(lost))))), data.twin && el("p.dim", {}, data.twin));
}

function sentView(data) {
  if (!data.sent.length) return null;
  const total = data.sent.reduce((sum, request) => sum + request.messages.length, 0);
  return fold(`What the model was sent (${count(data.sent.length, "request")}, ${count(total, "message")})`, async () => Promise.all(data.sent.map(async (request, at) => el("section.request", {},
    el("h4", {}, `Request ${at + 1}`, request.shared > 0 && el("small.dim", {}, ` after the ${count(request.shared, "message")} above`)),
    await Promise.all(request.messages.map(async (message) => el("div.message", {}, el("p.word", {}, message.role), await Promise.all(message.texts.map(async (text) => rawText(await textOf(text))))))),
    request.tools !== "" && fold("tools offered", async () => rawText(await textOf(request.tools)))))), ".card");
}

function rawReplies(data) {
  const all = data.steps.filter((step) => step.reply), replies = all.filter((step) => step.reply.text);
  const others = all.length > replies.length ? `; ${all.length - replies.length} without text` : "";
  return replies.length > 0 && fold(`Raw replies (${replies.length}${others})`, () => replies.map((step) => el("div.message", {}, el("p.word", {}, `step ${step.n}`), rawText(step.reply.text))), ".card");
}

// --- the same sample elsewhere --------------------------------------------------------------------------------------

function siblings(record) {
  return records.filter((each) => each.sample === record.sample && each !== record && (each.run !== record.run || each.mode !== record.mode || each.epoch !== record.epoch))
    .sort((a, b) => (a.mode !== record.mode) - (b.mode !== record.mode) || a.run - b.run);
}

function othersView(record, others) {
  const same = others.filter((each) => each.run !== record.run && each.mode === record.mode && each.epoch === record.epoch);
  if (!same.length) return null;
  return el("section.card.others", {}, el("h3", {}, "Same sample in other runs"), same.map((other) => {
    const place = el("p.other-answer.dim", {}, "…");
    detailOf(other).then((data) => place.replaceChildren(data ? longText(data.answer ?? (data.ended ? `no answer (${data.ended})` : data.invalid || "see its steps"), 300) : "no details on this page"));
    return el("div.other", {}, el("h4", {}, recordBadge(other), " ", el("a", { href: sampleAddress(other) }, runs[other.run].label), runs[other.run].privileged && [" ", yardstickBadge()]), place);
  }));
}

// The record with all that this page shows of it, as agrotools explain --json prints it.
async function downloadRecord(record, data) {
  const whole = async (request) => ({ ...request, tools: await textOf(request.tools), messages: await Promise.all(request.messages.map(async (message) => ({ ...message, texts: await Promise.all(message.texts.map(textOf)) }))) });
  const { sample, mode, epoch, value, lost, reason } = record;
  const shownData = { id: sample.id, mode, epoch, task: sample.task, score: value, cause: mainPart(record) ?? "", lost, error: reason, ...data, sent: await Promise.all(data.sent.map(whole)) };
  const href = URL.createObjectURL(new Blob([JSON.stringify(shownData, null, 1)], { type: "application/json" }));
  el("a", { href, download: `${sample.id}-${mode}.json` }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}

async function copyId(button, id) {
  try { await navigator.clipboard.writeText(id); button.textContent = "copied"; } catch { getSelection().selectAllChildren(byId("sample-id")); button.textContent = "press Ctrl-C"; }
}

// --- all together ---------------------------------------------------------------------------------------------------

async function drawDetail(record) {
  const pane = byId("detail");
  let data = null, failure = "";
  try { data = await detailOf(record); } catch (error) { failure = `This part of the file cannot be read: ${error.message}`; }
  if (record !== current) return; // another one was opened meanwhile
  const run = runs[record.run];
  const others = siblings(record);
  const title = el("header.title", {},
    el("button.quiet.back", { type: "button", onclick: () => showDetailOnPhone(false) }, "‹ list"),
    el("h2", {}, recordBadge(record), " ", el("span", { id: "sample-id" }, record.sample.id), " ", el("small.dim", {}, `${record.mode}${record.epoch ? `, epoch ${record.epoch}` : ""}, ${run.label}`)),
    el("button.quiet", { type: "button", id: "copy-id", onclick: (event) => copyId(event.target, record.sample.id) }, "copy id"),
    data && el("a", { id: "download", href: sampleAddress(record), onclick: (event) => { event.preventDefault(); downloadRecord(record, data); } }, "record as JSON"),
    el("span.pager", {}, el("button.quiet", { type: "button", "aria-label": "Previous sample", title: "Previous (k)", onclick: () => move(-1) }, "‹"), el("output", {}, `${(shown.indexOf(record) + 1).toLocaleString("en")} / ${shown.length.toLocaleString("en")}`), el("button.quiet", { type: "button", "aria-label": "Next sample", title: "Next (j)", onclick: () => move(1) }, "›")),
    others.length > 0 && el("nav.siblings", { "aria-label": "Same sample" }, others.filter((other) => other.run === record.run || (other.mode === record.mode && other.epoch === record.epoch)).slice(0, 24).map((other) => el("a", { href: sampleAddress(other) }, recordBadge(other), ` ${[runs.length > 1 && other.run !== record.run && runs[other.run].label, other.mode !== record.mode && other.mode, other.epoch !== record.epoch && `epoch ${other.epoch}`].filter(Boolean).join(", ")}`))));
  const command = el("p.dim", {}, "in a terminal: ", el("code", {}, `agrotools explain ${run.folder} ${record.sample.id} --mode ${record.mode}${record.epoch ? ` --epoch ${record.epoch}` : ""}`));
  if (!data) {
    stage = null;
    pane.replaceChildren(title, el("p.query", {}, record.sample.query), el("p.warning", {}, failure || `The details of this record are not in this file, to keep it small. To see them, run agrotools view ${run.folder}`), command);
    return;
  }
  const left = el("div.asked", {},
    el("p.query", {}, longText(data.query, 2000)),
    data.invalid && el("p.bad", {}, `✗ invalid: ${data.invalid}. Excluded from all averages.`),
    fileParts(data), stepsView(data, record));
  const right = el("div.done", {},
    el("section.card.given", {}, el("h3", {}, "Answer"), answerView(data) || el("p.dim", {}, record.mode === "step-by-step" ? "the last of the steps" : "none")),
    slotsView(data), lostView(record, data), othersView(record, others), sentView(data), rawReplies(data),
    el("section.card", {}, el("h3", {}, "About"), fieldList(data.about), command));
  pane.replaceChildren(title, el("div.panes", {}, left, right));
  pane.scrollTop = 0;
  left.scrollTop = 0;
}
