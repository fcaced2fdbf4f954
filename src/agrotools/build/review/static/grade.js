// Form of grades: one row for each rubric. Input is kept until it is stored.

import { draft, dropDraft, keepDraft, uuid } from "./store.js";

const byId = (id) => document.getElementById(id);
const form = byId("decision");
const reason = byId("reason");
const rows = [...form.querySelectorAll(".rubric")];

let article = null;
let reviewer = "";
let stored = null; // the last stored grade
let marked = null; // row that digits apply to

export const results = true; // the results open once everything is graded
export const word = "graded";
export const pendingVerdict = () => null;
export const setPending = () => {};
export const wantReason = () => {};
export const adopt = () => {};
export const cancel = () => {};
export const keys = (act) => ({
  Enter: () => act.decide("grade"), x: () => stored && act.decide("withdraw"), n: () => reason.focus(),
  ArrowDown: () => step(1), ArrowUp: () => step(-1),
  ...Object.fromEntries([1, 2, 3, 4, 5, 6, 7, 8, 9].map((number) => [number, () => marked && choose(marked, marked.querySelectorAll(".level")[number - 1])])),
});

const shown = () => rows.filter((row) => !row.hidden);
const chosen = (row) => row.querySelector('[aria-checked="true"]');

export function open(fragment, name, grade, decisions) {
  article = fragment;
  reviewer = name;
  stored = grade;
  const unsaved = draft(reviewer, article.dataset.id);
  const values = unsaved ?? grade ?? { grades: {}, reason: "" };
  const applies = new Set(article.querySelector("template").dataset.rubrics.split(" "));
  for (const row of rows) {
    row.hidden = !applies.has(row.dataset.rubric);
    for (const level of row.querySelectorAll(".level")) check(level, Number(level.dataset.value) === values.grades[row.dataset.rubric]);
  }
  reason.value = values.reason ?? "";
  mark(shown().find((row) => !chosen(row)) ?? shown()[0]);
  showStored();
  byId("draft").textContent = unsaved ? "not stored yet: restored from this browser" : "";
  byId("sources").replaceChildren(...(decisions?.sources ?? []).map((run) => Object.assign(document.createElement("b"), { textContent: run })));
  form.hidden = false;
}

export function close() {
  article = null;
  stored = null;
  form.hidden = true;
}

function check(level, on) {
  level.setAttribute("aria-checked", String(on));
}

function mark(row) {
  marked?.classList.remove("marked");
  marked = row;
  row?.classList.add("marked");
  byId("asked").textContent = row?.dataset.question ?? "";
  row?.scrollIntoView({ block: "nearest" });
}

function step(by) {
  const list = shown();
  mark(list[Math.min(list.length - 1, Math.max(0, list.indexOf(marked) + by))]);
}

function choose(row, level) {
  if (!article || !level) return;
  for (const each of row.querySelectorAll(".level")) check(each, each === level);
  const list = shown();
  mark(list.slice(list.indexOf(row) + 1).find((each) => !chosen(each)) ?? list.find((each) => !chosen(each)) ?? row);
  keep();
}

const valuesNow = () => ({
  grades: Object.fromEntries(shown().filter(chosen).map((row) => [row.dataset.rubric, Number(chosen(row).dataset.value)])),
  reason: reason.value.trim(),
});

const text = ({ grades, reason: note }) => JSON.stringify([Object.entries(grades ?? {}).sort(), note ?? ""]);

function keep() {
  if (!article) return;
  const now = valuesNow();
  const same = text(now) === text(stored ?? {});
  if (same) dropDraft(reviewer, article.dataset.id);
  else keepDraft(reviewer, article.dataset.id, now);
  const left = shown().filter((row) => !chosen(row)).length;
  byId("draft").textContent = same ? "" : left ? `${left} to grade` : "not stored yet: Enter stores it";
}

// Return the grade in the server's format; throws an Error with the missing rows.
export function decision(verdict) {
  const made = { id: uuid(), sample: article.dataset.id, content: article.dataset.content, reviewer, verdict };
  if (verdict === "withdraw") return made;
  const missing = shown().filter((row) => !chosen(row));
  if (missing.length) {
    mark(missing[0]);
    throw new Error(`Not graded yet: ${missing.map((row) => row.querySelector("b").textContent).join(", ")}.`);
  }
  return { ...made, ...valuesNow() };
}

function showStored() {
  byId("mine").textContent = stored ? "Graded" : "Not graded yet";
  byId("withdraw").hidden = !stored;
}

// A grade has been put into the outbox: the form shows it as stored.
export function settled(made) {
  dropDraft(reviewer, made.sample);
  stored = made.verdict === "withdraw" ? null : made;
  if (!stored) {
    for (const level of form.querySelectorAll(".level")) check(level, false);
    reason.value = "";
    mark(shown()[0]);
  }
  showStored();
  byId("draft").textContent = "";
}

export const backToDraft = (made) => keepDraft(made.reviewer, made.sample, { grades: made.grades ?? {}, reason: made.reason ?? "" });

form.addEventListener("input", keep);
form.addEventListener("submit", (event) => event.preventDefault());
for (const row of rows) {
  row.addEventListener("click", (event) => {
    const level = event.target.closest(".level");
    mark(row);
    if (level) choose(row, level);
    if (level && event.detail) level.blur(); // after a click, Enter stores
  });
  row.addEventListener("focusin", () => mark(row));
}
