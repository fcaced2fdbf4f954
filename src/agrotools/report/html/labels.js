// Short labels that several views show: scores, terms, causes of lost points.

const stateOf = (value) => (value === null ? "invalid" : value >= 1 ? "right" : value > 0 ? "partial" : "wrong");
const MARKS = { right: "✓", partial: "≈", wrong: "✗", invalid: "!", unscored: "·" };

// Score with its sign: colour is never the only difference.
const badge = (value, title, state = stateOf(value)) =>
  el(
    `span.score.${state}`,
    { title: title ?? state },
    el("i", { "aria-hidden": "true" }, MARKS[state]),
    value !== null ? rounded(100 * value) : state === "invalid" ? "inv" : "–",
  );

const recordBadge = (record) => badge(record.value, undefined, record.state);

const term = (label, text = label) =>
  head.terms[label] ? el("abbr", { title: head.terms[label] }, text) : el("span", {}, text);

const yardstickBadge = () => el("abbr.badge", { title: head.terms[head.yardstick] }, head.yardstick);

// What people read of a cause: its label, and for a tool also its name. A narrow bar shows a tool by its name alone.
const causeOf = (part) => (part.startsWith("tool:") ? "tool:" : part);

const toolsOf = (part) => part.slice(5).split("+").join(", ");

const partWord = (part) => {
  const { label } = head.parts[causeOf(part)];
  return part.startsWith("tool:") ? `${label} (${toolsOf(part)})` : label;
};

const barWord = (part) => (part.startsWith("tool:") ? toolsOf(part) : partWord(part));
const partTitle = (part) => head.parts[causeOf(part)].meaning;
const partOrder = (part) => Object.keys(head.parts).indexOf(causeOf(part));
const kindOf = (part) => (part.startsWith("tool:") ? "tool" : part);
