// Page: the current sample, keys, and storage of decisions until the server has them.

import * as editor from "./editor.js";
import { button } from "./elements.js";
import * as form from "./form.js";
import * as list from "./list.js";
import * as pictures from "./pictures.js";
import * as saving from "./saving.js";
import { ask, away, awayText, flush, trouble } from "./saving.js";
import { keepSetting, outbox, queue, setting } from "./store.js";

const byId = (id) => document.getElementById(id);
const pane = byId("sample");
const AHEAD = 3; // number of samples fetched in advance
const KEPT = 40; // number of fetched samples that are cached

let reviewer = document.body.dataset.reviewer || setting("reviewer", "");
let current = null;
let summary = null;
const fragments = new Map();

// --- fetching ------------------------------------------------------------------------------------------------------

async function loadIndex() {
  const index = await (await ask(`index?reviewer=${encodeURIComponent(reviewer)}`)).json();
  summary = index.summary;
  list.setRows(index.samples);
  showUnfinished(index.unfinished);
  for (const { decision } of outbox()) markQueued(decision);
}

// Unfinished corrections and questions of the reviewer, above the list.
function showUnfinished(works) {
  byId("unfinished").replaceChildren(...works.map((work) => {
    const what = list.rows.has(work.key) ? work.key : `New: ${work.query || "no question yet"}`;
    const item = document.createElement("li");
    item.append(button(`✎ ${what}`, () => edit(work.key), { className: "quiet", title: "Go on with unfinished work" }));
    return item;
  }));
}

function fragment(id) {
  if (!fragments.has(id)) {
    const loading = ask(`sample/${id}`).then((reply) => reply.text());
    loading.catch(() => fragments.delete(id));
    fragments.set(id, loading);
    if (fragments.size > KEPT) fragments.delete(fragments.keys().next().value);
  }
  return fragments.get(id);
}

// Fetch neighbouring samples: their text at once, their pictures after those of the current sample.
function fetchAhead(article) {
  const near = [1, 2, AHEAD, -1].map((by) => list.neighbour(current, by)).filter(Boolean);
  const texts = near.map((id) => fragment(id).catch(() => ""));
  pictures.loaded(article).then(async () => {
    for (const html of await Promise.all(texts)) {
      if (!article.isConnected) return; // another sample is shown meanwhile
      const found = new DOMParser().parseFromString(html, "text/html");
      for (const image of [...found.querySelectorAll("figure img:not(.mask)")].slice(0, 6)) new Image().src = image.getAttribute("src");
    }
  });
}

// --- showing --------------------------------------------------------------------------------------------------------

async function show(id) {
  if (!list.rows.has(id)) return;
  if (editor.isOpen()) editor.close(false);
  current = id;
  list.mark(id);
  showPosition();
  if (location.hash !== `#${id}`) history.replaceState(null, "", `#${id}`);
  keepSetting("last", id);
  let html;
  let decisions;
  try {
    const row = list.rows.get(id);
    const asks = row.mine || row.reviewers || row.changed ? ask(`decisions/${id}?reviewer=${encodeURIComponent(reviewer)}`).then((reply) => reply.json()) : null;
    [html, decisions] = await Promise.all([fragment(id), asks]);
  } catch (error) {
    if (current !== id) return;
    const said = `${id} cannot be shown: ${away(error) ? awayText(error, "show") : error.message}`;
    pane.replaceChildren(Object.assign(document.createElement("p"), { className: "absent", textContent: said }));
    form.close();
    if (away(error)) setTimeout(() => { if (current === id && !pane.querySelector("article")) show(id); }, 2000);
    return;
  }
  if (current !== id) return; // another sample is shown meanwhile
  const article = new DOMParser().parseFromString(html, "text/html").querySelector("article");
  pane.replaceChildren(document.adoptNode(article));
  pane.scrollTop = 0;
  pictures.prepare(article);
  const waiting = outbox().map((each) => each.decision).filter((each) => each.sample === id && each.reviewer === reviewer).at(-1);
  form.open(article, reviewer, waiting ? (waiting.verdict === "withdraw" ? null : waiting) : decisions?.mine ?? null);
  showOthers(article, decisions);
  showVerdicts(article, decisions);
  fetchAhead(article);
}

function showOthers(article, decisions) {
  const section = article.querySelector(".others");
  const earlier = decisions?.earlier ?? [];
  section.hidden = !decisions || !(decisions.others.length || decisions.hidden || earlier.length);
  if (section.hidden) return;
  const entries = decisions.others.map(otherEntry);
  entries.push(...earlier.map((each) => Object.assign(document.createElement("p"), { className: "dim", textContent: `${each.reviewer} on an earlier version, no longer counted: ${each.verdict}${each.reason ? ` — ${each.reason}` : ""}` })));
  if (decisions.hidden) {
    entries.push(Object.assign(document.createElement("p"), { className: "dim", textContent: `${decisions.hidden} decided already: shown once you have` }));
  }
  section.lastElementChild.replaceChildren(...entries);
}

// Who decided what stands after who drafted and corrected the sample.
function showVerdicts(article, decisions) {
  const words = { accept: "accepted", edit: "edit proposed", reject: "rejected" };
  for (const each of [decisions?.mine, ...(decisions?.others ?? [])].filter(Boolean)) {
    const name = Object.assign(document.createElement("b"), { textContent: each.reviewer });
    const day = Object.assign(document.createElement("span"), { className: "dim", textContent: ` ${each.at.slice(0, 10)}` });
    const item = document.createElement("li");
    item.append(`${words[each.verdict]} by `, name, day);
    article.querySelector(".made").append(item);
  }
}

function otherEntry(other) {
  const entry = document.createElement("div");
  const word = Object.assign(document.createElement("span"), { className: `verdict-word ${other.verdict}`, textContent: other.verdict });
  entry.append(`${other.reviewer}: `, word, other.reason ? ` — ${other.reason}` : "");
  if (other.edits) {
    const changes = [];
    if (other.edits.query) changes.push(`question: ${other.edits.query}`);
    for (const [slot, fields] of Object.entries(other.edits.slots)) for (const [name, value] of Object.entries(fields)) if (value !== null) changes.push(`${slot} ${name}: ${value}`);
    entry.append(Object.assign(document.createElement("p"), { textContent: changes.join(" · ") }));
    const take = Object.assign(document.createElement("button"), { type: "button", textContent: "Propose the same" });
    take.addEventListener("click", () => form.adopt(other));
    entry.append(take);
  }
  return entry;
}

function showPosition() {
  const at = list.shown.indexOf(current);
  byId("position").textContent = `${at >= 0 ? at + 1 : "–"} / ${list.shown.length}`;
  const rows = [...list.rows.values()];
  const done = rows.filter((row) => row.mine).length;
  byId("done").textContent = `${done} of ${rows.length} decided`;
  byId("bar").value = rows.length ? done / rows.length : 0;
}

function go(by) {
  const id = list.neighbour(current, by);
  if (id) show(id);
}

function goUndecided() {
  const id = list.nextUndecided(current);
  if (id) show(id);
  else byId("saving").textContent = "all of these are decided";
}

function filter() {
  list.applyFilters(current);
  if (list.shown.length && !list.shown.includes(current)) show(list.shown[0]);
  showPosition();
}

// --- deciding -------------------------------------------------------------------------------------------------------

function decide(verdict) {
  if (!current || pane.firstElementChild?.dataset.id !== current) return;
  let made;
  try {
    made = form.decision(verdict);
  } catch (error) {
    trouble(error.message);
    return;
  }
  if ((verdict === "reject" || verdict === "edit") && !made.reason) {
    if (form.pendingVerdict() !== verdict) form.setPending(verdict);
    form.wantReason();
    return;
  }
  trouble("");
  queue(made);
  form.settled(made);
  markQueued(made);
  document.activeElement?.blur();
  flush();
  if (verdict !== "withdraw") go(1);
}

// Handle a verdict by key or button: accept stores at once, the others first ask for a reason or edits.
function choose(verdict) {
  if (verdict === "edit" && form.pendingVerdict() !== "edit") {
    trouble("");
    form.setPending("edit");
    pane.querySelector("[data-edit]")?.focus();
    return;
  }
  decide(verdict);
}

function markQueued(made) {
  const row = list.rows.get(made.sample);
  if (!row || made.reviewer !== reviewer) return;
  row.mine = made.verdict === "withdraw" ? null : made.verdict;
  row.queued = true;
  list.update(row);
  showPosition();
}

saving.onStored((made, row) => {
  const own = list.rows.get(made.sample);
  if (!own || made.reviewer !== reviewer) return;
  const waiting = outbox().some(({ decision }) => decision.sample === made.sample && decision.reviewer === reviewer);
  Object.assign(own, waiting ? {} : row, { queued: waiting });
  list.update(own);
});

saving.onRefused((made) => {
  form.backToDraft(made);
  const own = list.rows.get(made.sample);
  if (own && made.reviewer === reviewer) {
    Object.assign(own, { queued: false, mine: null });
    list.update(own);
    showPosition();
  }
  if (made.sample === current) show(current);
});

// --- editor ---------------------------------------------------------------------------------------------------------

async function edit(key) {
  if (!document.body.dataset.corrects || !key) return;
  await editor.open(key, reviewer);
}

// A version was saved: the sample is another one now.
async function showSaved(id) {
  fragments.delete(id);
  await loadIndex();
  list.fillFilters();
  if (!list.rows.has(current)) current = id;
  list.applyFilters(id);
  await show(id);
  byId("saving").textContent = "saved as a new version: decide on it";
}

editor.connect({
  saved: (id) => showSaved(id).catch((error) => trouble(`saved, but the page could not show it: ${error.message}`)),
  closed: () => { loadIndex().catch(() => {}).then(() => show(current ?? list.shown[0])); },
});

// --- dialogs --------------------------------------------------------------------------------------------------------

async function standing() {
  try { await loadIndex(); filter(); } catch { /* show the last known state */ }
  const body = byId("standing-body");
  const table = (head, rows) => {
    const made = document.createElement("table");
    const line = (cells, of) => { const row = document.createElement("tr"); row.append(...cells.map((text) => Object.assign(document.createElement(of), { textContent: text }))); return row; };
    made.createTHead().append(line(head, "th"));
    made.createTBody().append(...rows.map((cells) => line(cells, "td")));
    return Object.assign(document.createElement("div"), { className: "scroll", tabIndex: 0 }).appendChild(made).parentElement;
  };
  const says = (text) => Object.assign(document.createElement("p"), { textContent: text });
  body.replaceChildren(...summary.map((part) => (part.text ? says(part.text) : table(part.head, part.rows))));
  byId("standing").showModal();
}

function askName() {
  byId("name").value = reviewer;
  byId("name-dialog").showModal();
}

function toggleList(open = byId("list-pane").hidden) {
  byId("list-pane").hidden = !open;
  byId("list-toggle").setAttribute("aria-expanded", String(open));
}

// --- keys and clicks ------------------------------------------------------------------------------------------------

const KEYS = {
  j: () => go(1), ArrowRight: () => go(1), k: () => go(-1), ArrowLeft: () => go(-1), u: goUndecided,
  b: pictures.toggleShapes, l: () => toggleList(), "?": () => byId("help").showModal(),
  o: () => { if (!pictures.toggleMasks(pane)) byId("saving").textContent = "no masks in this picture"; },
  z: () => { const first = pane.querySelector(".files button.picture"); if (first) pictures.enlarge(first); },
  "/": () => { toggleList(true); byId("search").focus(); },
};
KEYS.m = KEYS.o;
KEYS.t = () => edit(current);
KEYS.n = () => edit(editor.newKey());
Object.assign(KEYS, form.keys({ decide, choose }));

document.addEventListener("keydown", (event) => {
  const field = event.target.closest?.("input, textarea, select");
  if (document.querySelector("dialog[open]")) return;
  if (editor.isOpen() && !(field && !field.closest(".editor"))) { editor.key(event); return; }
  if (event.key === "Escape") {
    if (field) field.blur();
    else if (form.pendingVerdict()) form.cancel();
    trouble("");
    return;
  }
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && form.pendingVerdict()) {
    event.preventDefault();
    decide(form.pendingVerdict());
    return;
  }
  if (event.key === "Enter" && !event.shiftKey && event.target.id === "reason") {
    event.preventDefault();
    if (form.pendingVerdict()) decide(form.pendingVerdict());
    else event.target.blur();
    return;
  }
  if (field || event.ctrlKey || event.metaKey || event.altKey) return;
  const act = KEYS[event.key];
  if (act) { event.preventDefault(); act(); }
});

byId("previous").addEventListener("click", () => go(-1));
byId("next").addEventListener("click", () => go(1));
byId("help-open").addEventListener("click", KEYS["?"]);
byId("standing-open").addEventListener("click", standing);
byId("who").addEventListener("click", askName);
byId("list-toggle").addEventListener("click", () => toggleList());
byId("withdraw").addEventListener("click", () => KEYS.x());
byId("new-question")?.addEventListener("click", KEYS.n);
byId("scheme").addEventListener("click", () => {
  const style = document.documentElement.style;
  const dark = style.colorScheme ? style.colorScheme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  style.colorScheme = dark ? "light" : "dark";
});
byId("reset").addEventListener("click", () => { list.resetFilters(); filter(); });
for (const each of document.querySelectorAll(".verdict")) each.addEventListener("click", () => choose(each.dataset.verdict));
byId("filters").addEventListener("input", filter);
byId("filters").addEventListener("submit", (event) => event.preventDefault());
pane.addEventListener("click", (event) => {
  const pressed = event.target.closest("button");
  if (pressed?.classList.contains("picture")) pictures.enlarge(pressed);
  if (pressed?.dataset.do === "correct") edit(current);
  if (pressed?.dataset.do === "save-edit") decide("edit");
  if (pressed?.dataset.do === "cancel-edit") form.cancel();
});
window.addEventListener("hashchange", () => {
  show(decodeURIComponent(location.hash.slice(1)));
  if (matchMedia("(max-width: 860px)").matches) toggleList(false);
});
window.addEventListener("online", flush);
document.addEventListener("visibilitychange", () => { if (!document.hidden) flush(); });
byId("name-dialog").addEventListener("cancel", (event) => { if (!reviewer) event.preventDefault(); });
byId("name-form").addEventListener("submit", () => {
  reviewer = byId("name").value.trim() || reviewer;
  if (!reviewer) { setTimeout(askName); return; }
  keepSetting("reviewer", reviewer);
  begin();
});

async function begin() {
  if (!reviewer) { askName(); return; }
  byId("who").textContent = reviewer;
  try {
    await loadIndex();
  } catch (error) {
    trouble(`the samples cannot be listed: ${away(error) ? awayText(error, "list") : error.message}`);
    setTimeout(begin, 2000);
    return;
  }
  trouble("");
  list.fillFilters();
  const asked = decodeURIComponent(location.hash.slice(1)) || setting("last", "");
  list.applyFilters(asked);
  const start = list.rows.has(asked) ? asked : list.shown[0] ?? [...list.rows.keys()][0];
  list.mark(start);
  flush();
  const editing = setting("editing", null);
  if (editing) { current = start; if (await editor.open(editing, reviewer)) { showPosition(); return; } }
  show(start);
}

toggleList(!matchMedia("(max-width: 860px)").matches);
begin();
