// Editor of a question and its trace: the reviewer writes words and calls, the server runs them.

import { button, make, options } from "./elements.js";
import { argumentForm } from "./editor_arguments.js";
import { partFor, partsView } from "./editor_parts.js";
import { chooser, picturesView } from "./editor_pictures.js";
import { resultView } from "./editor_results.js";
import * as work from "./editor_state.js";
import { isReference, looksAhead, reference, renumber, stepsIn } from "./references.js";
import { ask, away, awayText, trouble } from "./saving.js";
import { keepSetting, uuid } from "./store.js";

const pane = document.getElementById("sample");
const EMPTY = { query: "", task_type: "", files: [], steps: [], parts: [] };
const MOST_TILES = 60; // pictures of the folder that are shown at once

let about = null; // tools, task types and files of the folder
let page = null; // what is shown: results by call, the parts after the last run, what waits for a click
let host = null; // main.js: saved(id), closed(key)

export const isOpen = () => page !== null;
export const connect = (functions) => { host = functions; };
export const newKey = () => `new-${uuid().slice(0, 12)}`;

// --- opening and closing ---------------------------------------------------------------------------------------------

export async function open(key, reviewer) {
  if (isOpen()) close(false);
  let found;
  try {
    about ??= await (await ask("editor")).json();
    found = await (await ask(`editor/work/${encodeURIComponent(key)}?reviewer=${encodeURIComponent(reviewer)}`)).json();
  } catch (error) {
    trouble(`the editor cannot be opened: ${away(error) ? awayText(error, "show") : error.message}`);
    return false;
  }
  const isGoingOn = work.begin(key, reviewer, found, EMPTY);
  page = { key, reviewer, found, results: new Map(), parts: null, warnings: [], ranFor: "", armed: null, opened: new Set(), picked: 0, tiles: MOST_TILES, running: false, search: "" };
  page.stands = new Set(found.stands);
  if (found.written) found.results.forEach((result, number) => page.results.set(signature(found.written, number), result));
  keepSetting("editing", key);
  document.body.classList.add("editing-trace");
  render();
  pane.scrollTop = 0;
  if (state().steps.length && (isGoingOn || found.written)) run();
  return true;
}

export function close(tell = true) {
  const key = page?.key;
  work.end();
  leave();
  if (tell) host.closed(key);
}

function leave() {
  page = null;
  keepSetting("editing", null);
  document.body.classList.remove("editing-trace");
  trouble("");
}

const state = () => work.current().state;
const isNew = () => !page.found.written;

function files() {
  if (!isNew()) return page.found.files;
  return state().files.flatMap((chosen) => {
    const file = about.files.find((each) => each.sample === chosen.sample && each.name === chosen.name);
    return file ? [{ ...file, as: chosen.as }] : [];
  });
}

// --- changes --------------------------------------------------------------------------------------------------------

function change(act, merge = "") {
  work.change(act, merge);
  if (merge) refresh();
  else render();
}

function setAt(target, path, value) {
  const place = path.slice(0, -1).reduce((at, key) => at[key] ??= {}, target);
  if (value === undefined) delete place[path.at(-1)];
  else place[path.at(-1)] = value;
}

function addStep(tool) {
  const first = files()[0]?.as;
  const properties = about.tools.find((each) => each.name === tool).parameters;
  const image = (properties.required ?? []).includes("image") && first ? { image: first } : {};
  change((now) => now.steps.push({ tool, arguments: image, thought: "", was: null }));
  page.picked = state().steps.length - 1;
  focusAt(`steps.${page.picked}.tool`);
}

function removeStep(number) {
  const places = state().steps.map((_, at) => (at === number ? null : at > number ? at - 1 : at));
  change((now) => { now.steps.splice(number, 1); renumber(now, places); });
}

function moveStep(number, by) {
  const to = number + by;
  if (to < 0 || to >= state().steps.length) return;
  const places = state().steps.map((_, at) => (at === number ? to : at === to ? number : at));
  const tried = work.copy(state());
  [tried.steps[number], tried.steps[to]] = [tried.steps[to], tried.steps[number]];
  renumber(tried, places);
  if (looksAhead(tried.steps)) {
    trouble(`step ${Math.max(number, to) + 1} uses the result of step ${Math.min(number, to) + 1}, so that they cannot swap`, "editor");
    return;
  }
  change((now) => Object.assign(now, tried));
  page.picked = to;
  focusAt(`steps.${to}`);
}

function changeTool(number, name) {
  const known = about.tools.find((each) => each.name === name).parameters.properties ?? {};
  change((now) => {
    const step = now.steps[number];
    step.tool = name;
    step.arguments = Object.fromEntries(Object.entries(step.arguments).filter(([argument]) => argument in known));
  });
}

// A value in a result was clicked: it goes to what waits for it.
function pick(number, path, value) {
  const armed = page.armed;
  const found = reference(number, path);
  page.armed = null;
  if (armed?.kind === "argument") {
    if (number >= armed.step) { page.armed = armed; trouble(`choose a value of a step before step ${armed.step + 1}`, "editor"); return; }
    trouble("");
    change((now) => setAt(now.steps[armed.step].arguments, armed.path, found));
  } else if (armed?.kind === "insert") {
    armed.act(found);
    render();
  } else if (armed?.kind === "part") {
    change((now) => Object.assign(now.parts[armed.part], { from: found.$ref, value: "stands" }));
  } else if (armed?.kind === "new part" || !state().parts.length) {
    const taken = new Set(state().parts.map((part) => part.name));
    change((now) => now.parts.push({ ...partFor(path, value, files(), taken), from: found.$ref }));
  } else {
    trouble("say first where the value goes: “Choose a value” at a part of the answer, “← result” at an argument, or “Add a part”", "editor");
    return;
  }
  if (armed?.kind !== "argument" && armed?.kind !== "insert") run();
}

function arm(armed, says) {
  page.armed = armed;
  trouble(`${says} (Esc leaves it as it is)`, "asks");
  render();
}

function draw(number, name, kind) {
  const step = state().steps[number];
  const own = Object.values(step.arguments).find((value) => files().some((file) => file.as === value));
  const done = (file, numbers) => {
    page.armed = null;
    trouble("");
    change((now) => setAt(now.steps[number].arguments, [name], numbers));
  };
  arm({ kind: "drawing", drawing: { kind, file: own ?? null, done } }, kind === "box" ? "draw a box on the picture" : "click on the picture");
  pane.querySelector(".drawing")?.scrollIntoView({ block: "nearest" });
}

// --- runs -----------------------------------------------------------------------------------------------------------

// What the result of a call depends on: itself, the files, and the calls that it uses.
function signature(of, number) {
  const step = of.steps[number];
  const used = [...new Set(stepsIn(step.arguments))].filter((at) => at < number);
  return JSON.stringify([of.files, step.tool, bare(step.arguments), used.map((at) => signature(of, at))]);
}

function bare(value) {
  if (isReference(value)) return { $ref: value.$ref };
  if (Array.isArray(value)) return value.map(bare);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, item]) => [name, bare(item)]));
}

const wholeSignature = () => JSON.stringify([state().steps, state().parts, state().files]);

async function run() {
  if (!page || page.running || !state().steps.length) return;
  const mine = page;
  const before = work.copy(state());
  const asked = wholeSignature();
  mine.running = true;
  refresh();
  try {
    const found = await work.run();
    if (page !== mine) return;
    found.steps.forEach((result, number) => mine.results.set(signature(before, number), result));
    mine.parts = found.parts;
    mine.warnings = found.warnings;
    mine.ranFor = asked;
    mine.running = false;
    trouble("");
  } catch (error) {
    if (page !== mine) return;
    mine.running = false;
    trouble(`the steps were not run: ${away(error) ? awayText(error, "run") : error.message}`, "editor");
  }
  if (wholeSignature() === asked) render();
  else refresh();
  if (mine.savesNext) { mine.savesNext = false; save(); }
}

async function save() {
  if (page.running) { page.savesNext = true; return; }
  const mine = page;
  mine.saveId ??= uuid();
  mine.running = true;
  refresh("running the steps again, and saving…");
  try {
    const { saved, warnings } = await work.save(mine.saveId, mine.warnings);
    if (!saved) {
      mine.running = false;
      mine.warnings = warnings;
      render();
      trouble("not saved yet: read the warning above the answer, and save again if the numbers are right", "asks");
      return;
    }
    leave();
    host.saved(saved);
  } catch (error) {
    mine.running = false;
    mine.saveId = away(error) ? mine.saveId : null;
    refresh();
    trouble(`not saved: ${away(error) ? awayText(error) : error.message}`, "editor");
  }
}

async function discard() {
  const key = page.key;
  try {
    await work.discard();
  } catch (error) {
    trouble(`not discarded: ${away(error) ? awayText(error) : error.message}`, "editor");
    return;
  }
  leave();
  host.closed(key);
}

// --- showing --------------------------------------------------------------------------------------------------------

function render() {
  if (!page) return;
  const focused = document.activeElement;
  const at = focused?.dataset?.at;
  const typed = at && "selectionStart" in focused ? { value: focused.value, from: focused.selectionStart, to: focused.selectionEnd } : null;
  const [top, left] = [...pane.querySelectorAll(".asked, .done")].map((each) => each.scrollTop);
  const scrolled = pane.scrollTop;
  const section = make("section", { className: "editor", dataset: { key: page.key }, "aria-label": "Editor" }, bar(), conflict(), make("div", { className: "panes" }, askedPane(), tracePane()));
  pane.replaceChildren(section);
  [...pane.querySelectorAll(".asked, .done")].forEach((each, number) => { each.scrollTop = [top, left][number] ?? 0; });
  pane.scrollTop = scrolled;
  if (at) focusAt(at, typed);
  refresh();
}

// Give the focus to the field of a place in the state, with the cursor and what is not yet a value, such as half a JSON.
function focusAt(at, typed = null) {
  const field = pane.querySelector(`[data-at="${CSS.escape(at)}"]`);
  field?.focus({ preventScroll: true });
  if (!field || !typed || typed.from === null) return;
  if (field.classList.contains("json")) field.value = typed.value;
  field.setSelectionRange(typed.from, typed.to);
}

// Update what depends on the state without making fields anew, so that nobody loses the cursor.
function refresh(says = page.running ? "running…" : "") {
  const set = (name, text) => { const found = pane.querySelector(`[data-shows=${name}]`); if (found) found.textContent = text; };
  set("running", says);
  pane.querySelector("[data-do=undo]").disabled = !work.canUndo();
  pane.querySelector("[data-do=redo]").disabled = !work.canRedo();
  for (const name of ["run", "save"]) pane.querySelector(`[data-do=${name}]`).disabled = page.running;
  const isCurrent = page.ranFor === wholeSignature();
  pane.querySelector(".editor").classList.toggle("stale", !isCurrent);
  pane.querySelector(".editor").classList.toggle("choosing", Boolean(page.armed) && page.armed.kind !== "drawing");
  for (const [number] of state().steps.entries()) {
    const card = pane.querySelector(`.step[data-step="${number + 1}"]`);
    card?.classList.toggle("stale", !page.results.has(signature(state(), number)));
  }
}

function bar() {
  const title = isNew() ? "New question" : `Correct ${page.key}`;
  const act = (name, text, title, run) => button(text, run, { dataset: { do: name }, title });
  return make("header", { className: "editor-bar" },
    make("h2", { textContent: title }),
    act("undo", "Undo", "Ctrl Z", () => { work.undo(); render(); }),
    act("redo", "Redo", "Ctrl Shift Z", () => { work.redo(); render(); }),
    act("run", "Run all", "Ctrl Enter", run),
    act("save", "Save", "Ctrl S", save),
    discardButton(),
    act("close", "Close", "Esc: the work is kept", () => close()),
    make("output", { className: "dim", dataset: { shows: "running" } }),
    make("output", { className: "dim", dataset: { shows: "kept" } }));
}

// The first click asks, as the work is lost for good; leaving the button takes the question back.
function discardButton() {
  const made = button("Discard", () => {
    if (made.dataset.asked) { discard(); return; }
    made.dataset.asked = "yes";
    made.textContent = "Click again to lose this work";
  }, { dataset: { do: "discard" }, title: "Forget this work" });
  made.addEventListener("blur", () => { delete made.dataset.asked; made.textContent = "Discard"; });
  return made;
}

work.onKept((text) => { const found = pane.querySelector("[data-shows=kept]"); if (found) found.textContent = text; });

function conflict() {
  if (work.current().of === page.found.of) return null;
  return make("p", { className: "note" }, "Somebody saved another version of this sample after you began. ",
    button("Begin again with that version", beginAgain), " ",
    button("Replace it with mine", () => { work.rebase(page.found.of); render(); }));
}

async function beginAgain() {
  const { key, reviewer } = page;
  try {
    await work.discard();
  } catch (error) {
    trouble(`not discarded: ${away(error) ? awayText(error) : error.message}`, "editor");
    return;
  }
  page = null;
  open(key, reviewer);
}

function askedPane() {
  const box = make("section", { className: "asked", "aria-label": "Question" });
  const query = make("textarea", { value: state().query, rows: 3, maxLength: 4000, dataset: { at: "query" }, placeholder: "The question, in the words of a grower" });
  query.addEventListener("input", () => change((now) => { now.query = query.value; }, "query"));
  box.append(make("label", { className: "asks" }, "Question", query), taskChoice());
  const drawing = page.armed?.kind === "drawing" ? page.armed.drawing : null;
  if (files().length) box.append(picturesView(files(), shapes(), drawing));
  if (isNew()) box.append(fileChoice());
  if (page.warnings.length) box.append(make("p", { className: "note warning", textContent: `Check these numbers, which may be an answer that somebody wrote: ${page.warnings.join("; ")}.` }));
  box.append(make("h3", { textContent: "Answer" }), partsView(state().parts, page.parts && page.parts.length === state().parts.length ? page.parts : null, {
    stands: page.stands,
    part: (number, changes, merge = "") => { change((now) => Object.assign(now.parts[number], changes), merge); if (!merge) run(); },
    bind: (part) => arm({ kind: "part", part }, `click on the value of a result that answers “${state().parts[part].label}”`),
    remove: (part) => change((now) => now.parts.splice(part, 1)),
  }));
  box.append(button("Add a part", () => arm({ kind: "new part" }, "click on the value of a result that answers the question"), { className: "add-part" }));
  return box;
}

function taskChoice() {
  const select = make("select", { dataset: { at: "task_type" } });
  options(select, [["", "(choose)"], ...about.task_types.map((name) => [name, name.replaceAll("_", " ")])], state().task_type);
  select.addEventListener("change", () => change((now) => { now.task_type = select.value; }));
  return make("label", { className: "asks" }, "Task type", select);
}

function fileChoice() {
  const search = make("input", { type: "search", placeholder: "Search in names", value: page.search, "aria-label": "Search in pictures", dataset: { at: "file-search" } });
  search.addEventListener("input", () => { page.search = search.value; render(); });
  const words = page.search.toLowerCase();
  const found = about.files.filter((file) => `${file.name} ${file.sample}`.toLowerCase().includes(words));
  const grid = chooser(found.slice(0, page.tiles), state().files, toggleFile);
  const more = found.length > page.tiles ? button(`${found.length - page.tiles} more`, () => { page.tiles += MOST_TILES; render(); }) : null;
  return make("details", { className: "choose-files", open: !state().files.length || page.choosing === true, ontoggle: (event) => { if (page) page.choosing = event.target.open; } },
    make("summary", { textContent: `Pictures and files of the folder (${about.files.length})` }), search, grid, more);
}

function toggleFile(file, isChosen) {
  change((now) => {
    if (isChosen) { now.files = now.files.filter((each) => each.sample !== file.sample || each.name !== file.name); return; }
    const taken = new Set(now.files.map((each) => each.as));
    const dot = file.as.lastIndexOf(".");
    const [stem, suffix] = dot > 0 ? [file.as.slice(0, dot), file.as.slice(dot)] : [file.as, ""];
    let { as } = file;
    for (let number = 2; taken.has(as); number += 1) as = `${stem.replace(/_\d+$/, "")}_${number}${suffix}`;
    now.files.push({ sample: file.sample, name: file.name, as });
  });
}

function shapes() {
  return state().steps.flatMap((step, number) => Object.entries(step.arguments).flatMap(([name, value]) => {
    const isShape = Array.isArray(value) && [2, 4].includes(value.length) && value.every((item) => typeof item === "number");
    const file = Object.values(step.arguments).find((other) => files().some((each) => each.as === other));
    const kind = about.tools.find((tool) => tool.name === step.tool)?.agreement[name];
    return isShape && file && (kind === "box" || value.length === 2) ? [{ file, numbers: value, label: `step ${number + 1}, ${name}` }] : [];
  }));
}

function tracePane() {
  const list = make("ol", { className: "steps" }, ...state().steps.map(stepCard));
  const select = options(make("select", { dataset: { at: "add-step" }, "aria-label": "Tool of a new step" }), [["", "Add a step…"], ...about.tools.map((tool) => [tool.name, tool.name])], "");
  select.addEventListener("change", () => { if (select.value) addStep(select.value); });
  return make("section", { className: "done", "aria-label": "Trace" }, make("h3", { textContent: "Trace" }), list, make("p", {}, select));
}

function stepCard(step, number) {
  const tool = about.tools.find((each) => each.name === step.tool);
  const select = options(make("select", { className: "tool", "aria-label": `Tool of step ${number + 1}`, dataset: { at: `steps.${number}.tool` }, title: tool?.description ?? "" }), about.tools.map((each) => [each.name, each.name]), step.tool);
  select.addEventListener("change", () => changeTool(number, select.value));
  const last = state().steps.length - 1;
  const head = make("h4", {}, make("span", { className: "number", textContent: number + 1 }), select,
    button("↑", () => moveStep(number, -1), { disabled: number === 0, "aria-label": `Move step ${number + 1} up`, title: "Alt ↑" }),
    button("↓", () => moveStep(number, 1), { disabled: number === last, "aria-label": `Move step ${number + 1} down`, title: "Alt ↓" }),
    button("Run", run, { className: "run-step", title: "Enter: run the steps" }),
    button("✕", () => removeStep(number), { "aria-label": `Remove step ${number + 1}`, title: "Delete" }));
  const card = make("li", { className: "step", tabIndex: 0, dataset: { step: number + 1, at: `steps.${number}` } }, head,
    argumentForm(step, number, tool, {
      files: files(),
      change: (path, value, merge = "") => change((now) => setAt(now.steps[number].arguments, path, value), merge),
      take: (path) => arm({ kind: "argument", step: number, path }, `click on the value of a result for ${path.at(-1)} of step ${number + 1}`),
      insert: (act) => arm({ kind: "insert", act }, "click on the value of a result"),
      draw: (name, kind) => draw(number, name, kind),
      opened: (at) => page.opened.has(at),
      setOpened: (at, isOpen) => { if (isOpen) page.opened.add(at); else page.opened.delete(at); },
    }),
    resultView(page.results.get(signature(state(), number)), number, { pick }));
  return card;
}

// --- keys -----------------------------------------------------------------------------------------------------------

// Handle a key while the editor is open; returns true for every key, as those of the review page wait.
export function key(event) {
  const isCommand = event.ctrlKey || event.metaKey;
  const field = event.target.closest?.("input, textarea, select");
  const step = event.target.closest?.(".step");
  const number = step ? Number(step.dataset.step) - 1 : -1;
  const letter = event.key.toLowerCase();
  const acts = [
    [isCommand && letter === "z" && !event.shiftKey, () => { work.undo(); render(); }],
    [isCommand && (letter === "y" || (letter === "z" && event.shiftKey)), () => { work.redo(); render(); }],
    [isCommand && event.key === "Enter", run],
    [isCommand && letter === "s", save],
    [event.altKey && event.key === "ArrowUp" && step, () => moveStep(number, -1)],
    [event.altKey && event.key === "ArrowDown" && step, () => moveStep(number, 1)],
    [event.key === "Escape", () => escape(field)],
    [event.key === "Delete" && event.target === step, () => removeStep(number)],
    [event.key === "Enter" && event.target === step, run],
    [event.key === "+" && !field, () => focusAt("add-step")],
  ];
  const found = acts.find(([applies]) => applies);
  if (found) { event.preventDefault(); found[1](); }
  return true;
}

function escape(field) {
  if (page.armed) { page.armed = null; trouble(""); render(); return; }
  if (field) { field.blur(); return; }
  close();
}
