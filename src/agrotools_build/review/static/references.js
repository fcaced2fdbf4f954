// References to results of earlier steps, as samples hold them: steps[0].observation.green_pct.

const STEP = /steps\[(\d+)\]\.observation/g;

export const reference = (step, path) => ({ $ref: `steps[${step}].observation${path.startsWith("[") ? "" : "."}${path}` });
export const isReference = (value) => value !== null && typeof value === "object" && "$ref" in value;

// Return a reference or an expression for a reader, with steps counted from 1.
export const referenceText = (text) => text.replace(STEP, (_, step) => `step ${Number(step) + 1} ·`).replaceAll("·.", "· ");

// Return the steps that a value or an expression uses.
export function stepsIn(value) {
  if (typeof value === "string") return [...value.matchAll(STEP)].map((found) => Number(found[1]));
  if (isReference(value)) return stepsIn(value.$ref);
  if (value === null || typeof value !== "object") return [];
  return Object.values(value).flatMap((item) => (typeof item === "string" ? [] : stepsIn(item)));
}

// Give every reference in a state the new numbers of steps; what refers to a removed step is emptied.
// `places`: new number of each step, or null if it is removed.
export function renumber(state, places) {
  for (const step of state.steps) step.arguments = renumberedValue(step.arguments, places);
  for (const part of state.parts) part.from = renumberedText(part.from, places) ?? "";
}

function renumberedText(text, places) {
  if (stepsIn(text).some((step) => (places[step] ?? null) === null)) return null;
  return text.replace(STEP, (_, step) => `steps[${places[step]}].observation`);
}

function renumberedValue(value, places) {
  if (isReference(value)) {
    const text = renumberedText(value.$ref, places);
    return text === null ? null : { $ref: text };
  }
  if (Array.isArray(value)) return value.map((item) => renumberedValue(item, places));
  if (value === null || typeof value !== "object") return value;
  const kept = Object.entries(value).map(([name, item]) => [name, renumberedValue(item, places), item]);
  return Object.fromEntries(kept.filter(([, now, before]) => now !== null || before === null).map(([name, now]) => [name, now]));
}

// True if a step would use the result of itself or of a later one.
export const looksAhead = (steps) => steps.some((step, number) => stepsIn(step.arguments).some((used) => used >= number));
