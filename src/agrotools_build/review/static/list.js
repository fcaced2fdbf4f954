// List of samples and its filters. Rows are data; elements are created only for rows that pass the filters.

import { keepSetting, setting } from "./store.js";

const byId = (id) => document.getElementById(id);
const MARKS = { accept: "✓", reject: "✗", edit: "✎" };
const FILTERS = ["search", "state", "task", "source", "flag"];

export const rows = new Map(); // row from the server by sample id
export let shown = []; // ids of rows that pass the filters, in order
const elements = new Map();

export function setRows(samples) {
  rows.clear();
  for (const sample of samples) rows.set(sample.id, sample);
}

export function fillFilters() {
  fill("task", count((row) => [row.task]), (name) => name.replaceAll("_", " "));
  fill("source", count((row) => [row.source]));
  fill("flag", count((row) => row.flags), (name) => name.replaceAll("_", " "));
  byId("flag").hidden = byId("flag").options.length <= 2;
  const kept = setting("filters", {});
  for (const name of FILTERS) {
    const field = byId(name);
    field.value = kept[name] ?? "";
    if (field.selectedIndex === -1) field.value = "";
  }
}

function count(keysOf) {
  const found = new Map();
  for (const row of rows.values()) for (const key of keysOf(row)) found.set(key, (found.get(key) ?? 0) + 1);
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1));
}

function fill(id, counts, words = (name) => name) {
  const select = byId(id);
  while (select.options.length > (id === "flag" ? 2 : 1)) select.lastElementChild.remove();
  for (const [name, n] of counts) select.append(new Option(`${words(name)} (${n})`, name));
}

function passes(row, wanted) {
  if (wanted.task && row.task !== wanted.task) return false;
  if (wanted.source && row.source !== wanted.source) return false;
  if (wanted.flag === "*" ? row.flags.length === 0 : wanted.flag && !row.flags.includes(wanted.flag)) return false;
  const words = wanted.search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length && !words.every((word) => `${row.id} ${row.query}`.toLowerCase().includes(word))) return false;
  if (wanted.state === "undecided") return !row.mine;
  if (wanted.state === "corrected" || wanted.state === "written") return row.changed === wanted.state;
  if (wanted.state === "disputed") return row.standing === "disputed";
  if (wanted.state === "others") return !row.mine && row.reviewers > 0;
  return !wanted.state || row.mine === wanted.state;
}

export function applyFilters(current) {
  const wanted = Object.fromEntries(FILTERS.map((name) => [name, byId(name).value]));
  keepSetting("filters", wanted);
  shown = [...rows.values()].filter((row) => passes(row, wanted)).map((row) => row.id);
  elements.clear();
  byId("list").replaceChildren(...shown.map((id) => element(rows.get(id))));
  byId("count").textContent = shown.length === rows.size ? `${rows.size} in all` : `${shown.length} of ${rows.size}`;
  byId("reset").hidden = !FILTERS.some((name) => wanted[name]);
  mark(current);
}

export function resetFilters() {
  for (const name of FILTERS) byId(name).value = "";
}

function element(row) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  link.href = `#${row.id}`;
  link.tabIndex = -1;
  const [state, name, asks] = ["mark", "name", "asks"].map((part) => Object.assign(document.createElement("span"), { className: part }));
  const aside = document.createElement("span");
  name.append(row.id, aside);
  asks.textContent = row.query;
  link.append(state, name, asks);
  item.append(link);
  elements.set(row.id, { item, link, state, aside });
  update(row);
  return item;
}

export function update(row) {
  const found = elements.get(row.id);
  if (!found) return;
  found.state.textContent = row.queued ? "…" : MARKS[row.mine] ?? "";
  found.state.className = `mark ${row.mine ?? ""}`;
  found.aside.textContent = row.standing === "disputed" ? "disputed" : row.changed ? row.changed : row.flags.length ? "⚑" : "";
  found.aside.title = row.flags.join(", ");
}

export function mark(current) {
  for (const { link } of elements.values()) link.removeAttribute("aria-current");
  const found = elements.get(current);
  if (!found) return;
  found.link.setAttribute("aria-current", "true");
  found.item.scrollIntoView({ block: "nearest" });
}

// Return the sample `by` rows from `current`; a hidden current sample counts from the place that it would have.
export function neighbour(current, by) {
  const at = shown.indexOf(current);
  if (at >= 0) return shown[at + by];
  const order = [...rows.keys()];
  const own = order.indexOf(current);
  const place = new Map(order.map((id, index) => [id, index]));
  const later = shown.findIndex((id) => place.get(id) > own);
  const from = later < 0 ? shown.length : later;
  return shown[by > 0 ? from + by - 1 : from + by];
}

export function nextUndecided(current) {
  const order = shown.length ? shown : [...rows.keys()];
  const start = Math.max(0, order.indexOf(current) + 1);
  return [...order.slice(start), ...order.slice(0, start)].find((id) => !rows.get(id).mine && id !== current);
}
