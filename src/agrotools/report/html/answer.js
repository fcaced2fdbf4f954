// Answer of a sample with the words that were read from it, its scores, and the points that it lost.

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
const LONGEST_MATCHED = 240; // words that a slot was read from are cut there

// Place of the words that a slot was read from, as [start, end]. The last form of an answer counts: its words stand
// right behind the name of the slot. Without the name these are the last ones that are no part of another word.
function placeOfWords(text, name, written, isCut) {
  const words = written.split(/\s+/).map(escaped).join("\\s+");
  const whole = `(?<![\\w.])${words}${isCut ? "" : "(?![\\w]|[.,]\\d)"}`;
  const named = `(?<!\\w)${name.split("_").map(escaped).join("[_ ]")}(?!\\w)[^\\w\\n]{1,20}`;
  for (const before of [named, ""]) {
    const last = [...text.matchAll(new RegExp(`(${before})(${whole})`, "gi"))].at(-1);
    if (last) return [last.index + last[1].length, last.index + last[0].length];
  }
  return null;
}

// The answer, with the words that each slot was read from marked in it.
function answerView(data) {
  if (data.answer === null) return data.ended && el("p.bad", {}, `✗ no answer (${data.ended})`);
  const text = data.answer || "(empty)";
  const spans = [];
  for (const slot of data.slots) {
    const written = slot.matched.trim();
    const isCut = slot.matched.length >= LONGEST_MATCHED;
    const place = written && placeOfWords(text, slot.name, written, isCut);
    if (!place) continue;
    const [at, end] = place;
    if (!spans.some((span) => at < span.end && end > span.at)) spans.push({ at, end, slot });
  }
  spans.sort((a, b) => a.at - b.at);
  const parts = [];
  let from = 0;
  for (const { at, end, slot } of spans) {
    parts.push(
      text.slice(from, at),
      el(
        `mark.${stateOf(slot.value)}`,
        { title: `${slot.label}, read from these words, scored ${rounded(100 * slot.value)} of 100` },
        text.slice(at, end),
      ),
    );
    from = end;
  }
  return [
    el("p.answer", {}, parts, longText(text.slice(from), 4000)),
    data.ended && el("p.bad", {}, `✗ ${data.ended}`),
  ];
}

function slotsView(data) {
  if (!data.slots.length) return null;
  return el(
    "section.card.slots",
    {},
    el("h3", {}, "Scores"),
    data.slots.map((slot) =>
      el(
        "div.slot",
        {},
        el("h4", {}, badge(slot.value), " ", slot.label, el("small.dim", {}, ` ${slot.type}`)),
        labelled(slot.lines),
      ),
    ),
  );
}

function lostView(record, data) {
  const parts = Object.entries(record.lost).filter(([, lost]) => Math.abs(lost) >= 0.05);
  if (!parts.length || record.mode !== head.measure?.mode) return null;
  return el(
    "section.card.lost",
    {},
    el("h3", {}, "Points lost by"),
    el(
      "ul.parts",
      {},
      parts.map(([part, lost]) =>
        el(
          "li",
          {},
          el(`i.key.${kindOf(part)}`),
          el("span", { title: partTitle(part) }, partWord(part)),
          " ",
          el("b", {}, decimal(lost)),
        ),
      ),
    ),
    data.twin && el("p.dim", {}, data.twin),
  );
}
