// Result of a call: every value is a button that gives it to an argument or to a part of the answer.

import { button, make } from "./elements.js";

const MOST_SHOWN = 12; // entries of a list that are shown at once
const LONGEST = 160; // characters of a text that is shown

export function resultView(found, number, act) {
  const box = make("div", { className: "result" });
  if (!found) {
    box.append(make("p", { className: "dim small", textContent: "Not run as it is now." }));
    return box;
  }
  if (found.error) box.append(make("p", { className: "error", textContent: found.error.message }, found.error.hint ? make("span", { className: "dim", textContent: ` ${found.error.hint}` }) : null));
  const labels = Object.entries(found.labels);
  if (labels.length) {
    const said = labels.map(([name, value]) => `${name} ${value !== null && typeof value === "object" ? sizeText(value) : valueText(value)}`);
    box.append(make("p", { className: "dim small", textContent: `By labels, which the answer follows: ${said.join(", ")}` }));
  }
  const fields = Object.entries(found.result);
  if (fields.length) box.append(fieldList(fields, "", number, act));
  if (found.notes.length) box.append(make("p", { className: "dim small", textContent: found.notes.join(" · ") }));
  const pictures = found.artifacts.filter((each) => each.sha256 && ["overlay", "mask", "plot", "image"].includes(each.kind));
  if (pictures.length) box.append(make("div", { className: "artifacts" }, ...pictures.map(artifact)));
  return box;
}

function artifact(each) {
  const place = `editor/made/${each.sha256}/${encodeURIComponent(each.name)}`;
  const image = make("img", { src: place, alt: each.kind });
  image.addEventListener("error", () => image.closest("button").replaceWith(make("p", { className: "absent", textContent: `${each.name}: not shown` })), { once: true });
  const open = make("button", { type: "button", className: "picture", dataset: { large: `${place}?size=large`, name: each.name } }, image);
  return make("figure", {}, open, make("figcaption", { textContent: each.kind }));
}

function fieldList(fields, at, number, act) {
  const list = make("dl", { className: "values" });
  const shown = fields.slice(0, MOST_SHOWN);
  list.append(...shown.map(([name, value]) => entry(name, value, at, number, act)));
  if (fields.length > shown.length) {
    const more = button(`${fields.length - shown.length} more`, () => {
      more.remove();
      list.append(...fields.slice(MOST_SHOWN).map(([name, value]) => entry(name, value, at, number, act)));
    }, { className: "quiet" });
    list.append(more);
  }
  return list;
}

function entry(name, value, at, number, act) {
  const path = typeof name === "number" ? `${at}[${name}]` : at ? `${at}.${name}` : name;
  const row = make("div", {});
  const isWhole = value !== null && typeof value === "object";
  const text = isWhole ? sizeText(value) : valueText(value);
  const pick = button(text, () => act.pick(number, path, value), {
    className: "pick", dataset: { path: `${number}:${path}` }, title: `${path}: use this value`, disabled: value === null,
  });
  row.append(make("dt", { textContent: typeof name === "number" ? `[${name}]` : name }), make("dd", {}, pick));
  if (isWhole && Object.keys(value).length) {
    const inner = make("details", {}, make("summary", { textContent: "open" }));
    inner.addEventListener("toggle", () => {
      if (inner.open && inner.childElementCount === 1) inner.append(fieldList(Array.isArray(value) ? [...value.entries()] : Object.entries(value), path, number, act));
    });
    row.lastElementChild.append(inner);
  }
  return row;
}

const sizeText = (value) => (Array.isArray(value) ? (value.length <= 4 && value.every((item) => typeof item === "number") ? `[${value.join(", ")}]` : `list of ${value.length}`) : `object of ${Object.keys(value).length}`);

function valueText(value) {
  if (value === null) return "none";
  if (typeof value === "boolean") return value ? "yes" : "no";
  const text = String(value);
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}
