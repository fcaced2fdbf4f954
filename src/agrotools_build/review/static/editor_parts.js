// Parts of the answer in the editor: their words, choices, and the place in the results that gives their value.

import { button, make, options } from "./elements.js";
import { referenceText } from "./references.js";

const FORMS = [["number", "a number"], ["name", "a name of choices"], ["yes_no", "yes or no"], ["file", "one of the files"], ["chart", "a chart"]];

// `act` has: part(number, changes, merge), bind(number), remove(number), stands (names of parts of the sample).
export function partsView(parts, states, act) {
  return make("div", { className: "parts" }, ...parts.map((part, number) => partView(part, number, states?.[number], act)));
}

function partView(part, number, state, act) {
  const isOld = act.stands.has(part.name);
  const field = (name, label, properties = {}) => {
    const input = make("input", { value: part[name] ?? "", dataset: { at: `parts.${number}.${name}` }, autocomplete: "off", ...properties });
    input.addEventListener("input", () => act.part(number, { [name]: input.value || (name === "unit" ? null : "") }, `parts.${number}.${name}`));
    return make("label", {}, label, input);
  };
  const box = make("fieldset", { className: "part", dataset: { part: part.name } }, make("legend", { textContent: `Part ${number + 1}` }));
  box.append(field("label", "What is asked for, in words", { maxLength: 300 }));
  const row = make("span", { className: "pair" }, field("name", "Name in the answer form", { disabled: isOld, pattern: "[a-z][a-z0-9_]*" }), formChoice(part, number, isOld, act));
  if (part.form === "number" && !isOld) row.append(field("unit", "Unit of a calculated number", { maxLength: 20 }));
  box.append(row);
  if (part.form === "name" || part.choices.length) box.append(choicesField(part, number, act));
  box.append(make("p", { className: "bound" }, make("span", { className: "dim", textContent: "value from " }), part.from ? make("code", { textContent: referenceText(part.from) }) : make("span", { className: "error", textContent: "no result yet" }), " ", button("Choose a value", () => act.bind(number), { className: "bind" }), " ", button("Remove", () => act.remove(number), { className: "quiet", "aria-label": `Remove part ${number + 1}` })));
  box.append(stateView(part, number, state, isOld, act));
  return box;
}

function formChoice(part, number, isOld, act) {
  const select = make("select", { dataset: { at: `parts.${number}.form` }, disabled: isOld });
  options(select, isOld && !FORMS.some(([form]) => form === part.form) ? [[part.form, "keeps its form"]] : FORMS, part.form);
  select.addEventListener("change", () => act.part(number, { form: select.value }));
  return make("label", {}, "Form of the answer", select);
}

function choicesField(part, number, act) {
  const area = make("textarea", { value: part.choices.join("\n"), rows: Math.min(8, part.choices.length + 1), dataset: { at: `parts.${number}.choices` }, spellcheck: false });
  area.addEventListener("input", () => act.part(number, { choices: area.value.split("\n").map((line) => line.trim()).filter(Boolean) }, `parts.${number}.choices`));
  return make("label", {}, "Choices, one a line", area);
}

function stateView(part, number, state, isOld, act) {
  const box = make("div", { className: `part-state ${state?.state ?? ""}` });
  if (!state) { box.append(make("p", { className: "dim small", textContent: "Run the steps to see the value." })); return box; }
  const says = (text, className = "") => box.append(make("p", { textContent: text, className }));
  const toleranceOf = (text) => { if (text) says(text, "dim small"); };
  if (!isOld) { newPartState(part, number, state, act, says, box); return box; }
  if (part.value === "result") {
    if (state.state === "missing") says(`✗ ${state.reason}`, "error");
    else says(`✓ ${state.result}`, "right");
    toleranceOf(state.tolerance);
    if (state.stands && state.stands !== state.result) {
      says(`${state.stands} stood in the sample`, "dim small");
      toleranceOf(state.stands_tolerance);
    }
    box.append(button("Back to the value of the sample", () => act.part(number, { value: "stands" })));
    return box;
  }
  const isKept = part.value === "label" && !state.not_kept;
  says(`${state.state === "same" ? "✓ " : ""}${state.stands} stands in the sample${isKept ? ", kept as a label" : ""}`, state.state === "same" ? "right" : "");
  toleranceOf(state.stands_tolerance);
  if (state.state === "same") return box;
  says(state.state === "missing" ? `✗ the results give no value: ${state.reason}` : `✗ the results give ${state.result}`, "error");
  toleranceOf(state.tolerance);
  if (state.not_kept) says(`It cannot be kept: ${state.not_kept}.`, "dim small");
  if (!isKept) box.append(...choiceButtons(number, state.state === "differs", !state.not_kept, act));
  return box;
}

// A part that the sample does not have takes the folder's label; where the tool says something else, the reviewer chooses.
function newPartState(part, number, state, act, says, box) {
  if (state.state === "missing") says(`✗ ${state.reason}`, "error");
  if (state.state === "same") says(`✓ ${state.result}`, "right");
  if (state.state === "same" && state.tolerance) says(state.tolerance, "dim small");
  if (state.origin) says(state.origin, state.state === "differs" ? "" : "dim small");
  if (state.state === "differs") {
    says(`✗ the answer is ${state.stands} by the label, but the results give ${state.result || `none: ${state.reason}`}`, "error");
    for (const [who, text] of [["label", state.stands_tolerance], ["result", state.tolerance]]) {
      if (text) says(`by the ${who} ${text}`, "dim small");
    }
    box.append(...choiceButtons(number, Boolean(state.result), true, act));
  } else if (part.value !== "stands") {
    box.append(button("Choose again", () => act.part(number, { value: "stands" })));
  }
}

function choiceButtons(number, hasResult, canKeep, act) {
  const take = button("Take the result", () => act.part(number, { value: "result" }), { className: "take-result" });
  const keep = button("Keep the label", () => act.part(number, { value: "label" }), { className: "keep-label", title: "The label is right, and the tool is wrong: the sample says so" });
  return [...(hasResult ? [take, " "] : []), ...(canKeep ? [keep] : [])];
}

// Return a part for a value that was chosen in a result.
export function partFor(path, value, files, taken) {
  const field = path.replace(/\[\d+\]/g, "").split(".").at(-1) || "answer";
  const plain = field.toLowerCase().replace(/[^a-z0-9_]+/g, "_").replace(/^[^a-z]+/, "") || "answer";
  let name = plain;
  for (let number = 2; taken.has(name); number += 1) name = `${plain}_${number}`;
  return { name, label: field.replaceAll("_", " "), form: formOf(value, files), from: "", unit: null, choices: [], value: "stands" };
}

function formOf(value, files) {
  if (typeof value === "boolean") return "yes_no";
  if (typeof value === "number") return "number";
  if (typeof value === "string") return files.some((file) => file.as === value) ? "file" : "name";
  return value && "series" in value ? "chart" : "number";
}
