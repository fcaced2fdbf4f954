// Decision form of the current sample: reason, edits. Input is kept until it is stored.

import { draft, dropDraft, keepDraft, uuid } from "./store.js";

const form = document.getElementById("decision");
const reason = document.getElementById("reason");
const DONE = { accept: "accepted", reject: "rejected", edit: "proposed an edit" };

let article = null;
let reviewer = "";
let stored = null; // the last stored decision
let pending = null; // the verdict that still needs a reason or edits

const fields = () => [...(article?.querySelectorAll("[data-edit]") ?? [])];
export const keys = (act) => ({
  a: () => act.choose("accept"), r: () => act.choose("reject"), e: () => act.choose("edit"), x: () => stored && act.decide("withdraw"),
});
export const pendingVerdict = () => pending;

// Show the form of a sample with unsaved input, or else with the reviewer's decision, or else empty.
export function open(shown, name, decision) {
  article = shown;
  reviewer = name;
  stored = decision;
  const kept = draft(reviewer, article.dataset.id);
  const values = kept ?? fromDecision(decision);
  reason.value = values.reason;
  for (const field of fields()) {
    const value = values.edits[fieldName(field)];
    if (value !== undefined) field.value = value;
  }
  setPending(kept?.pending ?? null, false);
  document.getElementById("draft").textContent = kept ? "not stored yet: restored from this browser" : "";
  showStored();
}

// No sample is shown, so keys and buttons have no effect.
export function close() {
  article = null;
  stored = null;
  pending = null;
  reason.value = "";
  showStored();
}

function fromDecision(decision) {
  const edits = {};
  if (decision?.edits?.query) edits.query = decision.edits.query;
  for (const [slot, changes] of Object.entries(decision?.edits?.slots ?? {})) {
    for (const [name, value] of Object.entries(changes)) if (value !== null) edits[`${slot}.${name}`] = String(value);
  }
  return { reason: decision?.reason ?? "", edits };
}

function fieldName(field) {
  const slot = field.closest("[data-slot]")?.dataset.slot;
  return slot ? `${slot}.${field.dataset.edit}` : field.dataset.edit;
}

function showStored() {
  const said = stored ? `You ${DONE[stored.verdict]} this${stored.at ? `, ${when(stored.at)}` : ""}` : "Not decided yet";
  document.getElementById("mine").textContent = said;
  document.getElementById("withdraw").hidden = !stored;
  for (const button of form.querySelectorAll(".verdict")) {
    button.setAttribute("aria-pressed", String((pending ?? stored?.verdict) === button.dataset.verdict));
  }
}

const when = (at) => new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });

export function setPending(verdict, keepIt = true) {
  pending = verdict;
  if (article) article.querySelector(".editing").hidden = verdict !== "edit";
  form.classList.remove("wants-reason");
  showStored();
  if (keepIt) keep();
}

export function wantReason() {
  form.classList.add("wants-reason");
  reason.focus();
}

export function cancel() {
  if (pending === "edit") for (const field of fields()) field.value = field.defaultValue;
  setPending(null);
}

function editsNow() {
  const changed = {};
  for (const field of fields()) if (field.value !== field.defaultValue) changed[fieldName(field)] = field.value;
  return changed;
}

// Keep the input as a draft, or remove the draft if it equals the stored decision.
export function keep() {
  if (!article) return;
  const now = { reason: reason.value, edits: editsNow(), pending };
  const before = fromDecision(stored);
  const same = !pending && now.reason === before.reason && equal(now.edits, before.edits);
  if (same) dropDraft(reviewer, article.dataset.id);
  else keepDraft(reviewer, article.dataset.id, now);
  document.getElementById("draft").textContent = same ? "" : "not stored yet";
}

const sorted = (value) => JSON.stringify(Object.entries(value).sort());
const equal = (a, b) => sorted(a) === sorted(b);

// Return the decision in the server's format; throws an Error with the missing part and the field to focus.
export function decision(verdict) {
  const made = { id: uuid(), sample: article.dataset.id, content: article.dataset.content, reviewer, verdict };
  if (verdict === "withdraw") return made;
  made.reason = reason.value.trim();
  if (verdict === "edit") {
    made.edits = { query: null, slots: {} };
    for (const [name, text] of Object.entries(editsNow())) {
      const [slot, field] = name.includes(".") ? name.split(".") : [null, name];
      const value = field.endsWith("_tol") ? Number(text.trim().replace(",", ".") || "x") : text.trim();
      if (value === "" || Number.isNaN(value) || (field.endsWith("_tol") && value < 0)) throw new Error(`${field === "query" ? "The question" : `${slot}: ${field}`} cannot be “${text}”.`);
      if (slot) (made.edits.slots[slot] ??= {})[field] = value;
      else made.edits.query = value;
    }
    if (made.edits.query === null && !Object.keys(made.edits.slots).length) throw new Error("Nothing is changed yet: edit the question or a slot, or accept the sample.");
  }
  return made;
}

// A decision has been put into the outbox: the form shows it as stored.
export function settled(made) {
  dropDraft(reviewer, made.sample);
  stored = made.verdict === "withdraw" ? null : made;
  if (made.verdict === "withdraw") {
    reason.value = "";
    for (const field of fields()) field.value = field.defaultValue;
  }
  setPending(null, false);
  document.getElementById("draft").textContent = "";
}

// A decision that the server rejected becomes a draft again.
export function backToDraft(made) {
  keepDraft(made.reviewer, made.sample, { ...fromDecision(made), pending: made.verdict === "edit" || made.verdict === "reject" ? made.verdict : null });
}

// Copy the proposal of another reviewer into the form.
export function adopt(other) {
  const values = fromDecision(other);
  for (const field of fields()) field.value = values.edits[fieldName(field)] ?? field.defaultValue;
  if (!reason.value.trim()) reason.value = other.reason;
  setPending("edit");
}

form.addEventListener("input", () => { form.classList.remove("wants-reason"); keep(); });
form.addEventListener("submit", (event) => event.preventDefault());
document.getElementById("sample").addEventListener("input", keep);
