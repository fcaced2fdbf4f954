// Card of the overview: where the points went.

// Points that a run lost in the mode of the headline; without parts if it has no score of the answers.
const NOTHING_LOST = { run: { parts: {} }, unknown_results: 0 };

const lostSplit = (at) => (runs[at].withheld ? null : runs[at].lost[head.measure?.mode]) ?? NOTHING_LOST;

const lostParts = (split) =>
  Object.entries(split.parts)
    .filter(([, lost]) => Math.abs(lost) >= 0.05)
    .sort((a, b) => b[1] - a[1]);

// A bar for each of a few runs, or for the chosen one of many.
function lostCard() {
  const asked = runs.length > MANY_RUNS ? [chosenRun] : runs.map((_, at) => at);
  const shown = asked.filter((at) => lostParts(lostSplit(at).run).length);
  if (!shown.length) return null;
  const whose =
    runs.length > MANY_RUNS ? ` ${runs[chosenRun].label} · press the name of another run to see its points` : "";
  return el(
    "section.card.lost",
    {},
    el("h2", {}, "Where the points went", el("small.dim", {}, whose)),
    el("p.dim", {}, "Click a lost part to see its samples."),
    shown.map((at) => lostOfRun(at, shown.length > 1)),
  );
}

function lostOfRun(at, isNamed) {
  const run = runs[at];
  const { run: split, unknown_results: unknown } = lostSplit(at);
  const parts = lostParts(split);
  // A headline metric of some of the samples alone, such as the accuracy of choice questions, says nothing about the others.
  const partial = run.score && 100 * (1 - valueOf(run.score)) < split.gap - 0.05;
  const total = parts.reduce((sum, [, lost]) => sum + Math.max(lost, 0), 0);
  const share = (size) => ({ flexGrow: size / (split.score + total), flexBasis: 0 });
  const title = (part, lost) => {
    const interval = split.intervals?.[part];
    return `${partWord(part)} ${decimal(lost)}: ${partTitle(part)}${interval ? `, 95 % interval ${decimal(interval.lower)} to ${decimal(interval.upper)}` : ""}`;
  };
  const href = (part) => address("samples", { run: at, mode: head.measure?.mode, lost: part });
  return el(
    "div.of-run",
    {},
    isNamed && el("h3", {}, el(`span.${shapeOf(at).replaceAll(" ", ".")}.still`), run.label),
    el(
      "p.dim",
      {},
      `${points(split.score / 100)} of ${decimal(split.ceiling)} points scored, ${decimal(split.gap)} lost, in ${count(split.n, "sample")}${partial ? " (all that have a score; the metric above is of some of them)" : ""}.`,
    ),
    el(
      "div.bar",
      {},
      split.score > 0 &&
        el(
          "span.part.scored",
          { title: `${points(split.score / 100)} points scored`, style: share(split.score) },
          el("span", {}, "score"),
          el("b", {}, points(split.score / 100)),
        ),
      parts
        .filter(([, lost]) => lost > 0)
        .map(([part, lost]) =>
          el(
            `a.part.${kindOf(part)}`,
            { href: href(part), title: title(part, lost), style: share(lost) },
            el("span", {}, barWord(part)),
            el("b", {}, decimal(lost)),
          ),
        ),
    ),
    el(
      "ul.parts",
      {},
      el("li", {}, el("i.key.scored"), "score ", el("b", {}, points(split.score / 100))),
      parts.map(([part, lost]) =>
        el(
          "li",
          {},
          el(`i.key.${kindOf(part)}`),
          el("a", { href: href(part), title: title(part, lost) }, partWord(part)),
          " ",
          el("b", {}, decimal(lost)),
        ),
      ),
    ),
    unknown > 0 &&
      el(
        "p.dim",
        {},
        `This split is an estimate, because the results of ${count(unknown, "call")} with other arguments are not known. To make the calls, run `,
        el("code", {}, `agrotools attribute ${run.folder}`),
        ".",
      ),
  );
}
