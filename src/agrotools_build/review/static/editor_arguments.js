// Form of the arguments of a call, made from the JSON schema of its tool.

import { button, make, options } from "./elements.js";
import { isReference, referenceText } from "./references.js";

const LONG_TEXT = 200; // characters from which a text has a field of several lines

// Return the form of a call. `act` has: change(argument path, value, merge), take(path), draw(name, kind), files, opened.
export function argumentForm(step, number, tool, act) {
  const form = make("div", { className: "arguments-form" });
  if (!tool) return make("p", { className: "error", textContent: `${step.tool} cannot be run here: choose another tool` });
  const { properties = {}, required = [] } = tool.parameters;
  const rest = [];
  for (const [name, schema] of Object.entries(properties)) {
    const isShown = required.includes(name) || name in step.arguments || tool.agreement[name] === "box";
    const field = argumentField(name, schema, step, number, tool, act, required.includes(name));
    if (isShown) form.append(field);
    else rest.push(field);
  }
  for (const name of Object.keys(step.arguments)) {
    if (name in properties) continue;
    form.append(row(name, make("span", { className: "error", textContent: "the tool has no such argument" }), button("Remove", () => act.change([name], undefined))));
  }
  if (rest.length) {
    const more = make("details", { className: "more-arguments", open: act.opened(number) }, make("summary", { textContent: `More arguments (${rest.length})` }), ...rest);
    more.addEventListener("toggle", () => act.setOpened(number, more.open));
    form.append(more);
  }
  return form;
}

function row(name, ...fields) {
  return make("div", { className: "argument" }, make("span", { className: "argument-name", textContent: name }), make("span", { className: "argument-fields" }, ...fields));
}

function argumentField(name, schema, step, number, tool, act, isRequired) {
  const value = step.arguments[name];
  const kind = tool.agreement[name];
  const fields = isReference(value) ? [chip(value, () => act.change([name], undefined))] : valueFields(name, schema, value, number, kind, act, isRequired);
  if (!isReference(value) && !takesParts(schema, kind)) fields.push(takeButton([name], number, act));
  const made = row(name, ...fields);
  made.title = schema.description ?? "";
  return made;
}

const NEVER_A_RESULT = ["expression", "presentation", "variables"]; // kinds of arguments; variables have results in them
const takesParts = (schema, kind) => NEVER_A_RESULT.includes(kind) || (schema.type === "array" && schema.items?.type === "object");

function chip(value, remove) {
  return make("span", { className: "chip" }, make("span", { textContent: `← ${referenceText(value.$ref)}` }), button("✕", remove, { "aria-label": "Remove the reference" }));
}

function takeButton(path, number, act) {
  if (number === 0) return null;
  return button("← result", () => act.take(path), { className: "quiet take", title: "Take a value from the result of an earlier step" });
}

function valueFields(name, schema, value, number, kind, act, isRequired) {
  const label = `${name} of step ${number + 1}`;
  const at = `steps.${number}.${name}`;
  const set = (now, merge = "") => act.change([name], now, merge);
  const usual = "default" in schema && schema.default !== null ? `(usual: ${schema.default})` : isRequired ? "(choose)" : "(none)";
  if (kind === "file") {
    const names = act.files.map((file) => [file.as, `${file.as} · ${file.kind}`]);
    return [choice([["", usual], ...names], value ?? "", label, at, (now) => set(now || undefined))];
  }
  const words = schema.enum ?? null;
  if (words && !schema.anyOf) return [choice([["", usual], ...words.map((word) => [word, word])], value ?? "", label, at, (now) => set(now || undefined))];
  if (schema.type === "boolean") {
    const text = value === undefined ? "" : String(value);
    return [choice([["", usual], ["true", "yes"], ["false", "no"]], text, label, at, (now) => set(now === "" ? undefined : now === "true"))];
  }
  if (schema.type === "array" && schema.items?.enum) return [checks(schema.items.enum, value, label, set)];
  if (kind === "variables") return [variables(value ?? {}, number, act, name)];
  if (schema.type === "object" || (schema.type === "array" && schema.items?.type === "object")) return structure(name, value, number, label, at, act);
  if (schema.type === "array") {
    const drawn = drawnKind(name, schema, kind);
    const input = text(Array.isArray(value) ? value.join(", ") : value ?? "", drawn === "box" ? "x0, y0, x1, y1" : usual, label, at, (now, merge) => set(listOf(now), merge));
    return drawn ? [input, button(`Draw ${drawn === "box" ? "a box" : "a point"}`, () => act.draw(name, drawn), { className: "draw" })] : [input];
  }
  const isNumber = ["number", "integer"].includes(schema.type) || schema.anyOf;
  const typed = (now) => (now.trim() === "" ? undefined : isNumber ? numberOr(now) : now);
  return [text(value ?? "", usual, label, at, (now, merge) => set(typed(now), merge), { long: (schema.maxLength ?? 0) > LONG_TEXT, isNumber })];
}

function drawnKind(name, schema, kind) {
  if (kind === "box") return "box";
  const isPair = schema.items?.type === "number" && schema.maxItems === 2;
  return isPair && /point|xy|cent(re|er)/.test(name) ? "point" : null;
}

function choice(items, value, label, at, act) {
  const select = make("select", { "aria-label": label, dataset: { at } });
  options(select, items, value);
  select.addEventListener("change", () => act(select.value));
  return select;
}

function text(value, placeholder, label, at, act, { long = false, isNumber = false } = {}) {
  const field = make(long ? "textarea" : "input", { value: String(value), placeholder, "aria-label": label, dataset: { at }, autocomplete: "off" });
  if (long) field.rows = 1;
  if (isNumber) field.inputMode = "decimal";
  field.addEventListener("input", () => act(field.value, at));
  return field;
}

function checks(words, value, label, set) {
  const chosen = new Set(Array.isArray(value) ? value : []);
  const box = make("span", { className: "checks", "aria-label": label, role: "group" });
  for (const word of words) {
    const tick = make("input", { type: "checkbox", checked: chosen.has(word) });
    tick.addEventListener("change", () => {
      if (tick.checked) chosen.add(word); else chosen.delete(word);
      set(chosen.size ? words.filter((each) => chosen.has(each)) : undefined);
    });
    box.append(make("label", {}, tick, ` ${word}`));
  }
  return box;
}

// Values by name, as `calculate` has them: each is a number, a text, a list, or a result.
function variables(value, number, act, argument) {
  const box = make("span", { className: "variables" });
  const rename = (from, to) => {
    const now = Object.fromEntries(Object.entries(value).map(([name, item]) => [name === from ? to : name, item]));
    act.change([argument], now);
  };
  for (const [name, item] of Object.entries(value)) {
    const label = make("input", { value: name, "aria-label": `name of variable ${name} of step ${number + 1}`, className: "variable-name" });
    label.addEventListener("change", () => { if (label.value.trim() && !(label.value.trim() in value)) rename(name, label.value.trim()); });
    const remove = button("✕", () => { const { [name]: _, ...others } = value; act.change([argument], others); }, { "aria-label": `Remove ${name}` });
    const fields = isReference(item)
      ? [make("span", { className: "chip" }, make("span", { textContent: `← ${referenceText(item.$ref)}` }))]
      : [text(typeof item === "object" ? JSON.stringify(item) : item, "value", `value of ${name} of step ${number + 1}`, `steps.${number}.${argument}.${name}`, (now, merge) => act.change([argument, name], parsed(now), merge))];
    box.append(make("span", { className: "variable" }, label, "=", ...fields, takeButton([argument, name], number, act) ?? "", remove));
  }
  box.append(button("Add a variable", () => act.change([argument], { ...value, [freeName(value)]: "" })));
  return box;
}

function freeName(value) {
  const letters = [..."abcdefghijklmnopqrstuvwxyz"];
  return letters.find((letter) => !(letter in value)) ?? `v${Object.keys(value).length}`;
}

// Nested values as JSON; a result is put in at the cursor.
function structure(name, value, number, label, at, act) {
  const area = make("textarea", { value: value === undefined ? "" : JSON.stringify(value, null, 1), rows: 4, "aria-label": `${label}, JSON`, className: "json", dataset: { at }, spellcheck: false });
  const fault = make("span", { className: "error" });
  area.addEventListener("input", () => {
    try {
      act.change([name], area.value.trim() ? JSON.parse(area.value) : undefined, at);
      fault.textContent = "";
    } catch {
      fault.textContent = "this is no JSON yet: it is not used";
    }
  });
  const take = number === 0 ? null : button("← result", () => act.insert((found) => {
    const text = JSON.stringify(found);
    area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
    area.dispatchEvent(new Event("input"));
  }), { className: "quiet take", title: "Put the value of a result in at the cursor" });
  return [area, take, fault];
}

const numberOr = (typed) => {
  const number = Number(typed.trim().replace(",", "."));
  return Number.isFinite(number) ? number : typed;
};

function parsed(typed) {
  try { return JSON.parse(typed); } catch { return typed; }
}

function listOf(typed) {
  const items = typed.split(",").map((item) => item.trim()).filter(Boolean);
  return items.length ? items.map(numberOr) : undefined;
}
