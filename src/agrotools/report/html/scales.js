// Scores drawn on a line from floor to ceiling, one mark and one colour for each run.

const SHAPES = ["circle", "square", "diamond", "triangle"];
const FEW = 5; // fewer samples than these are grey
const NEAR = 0.03; // scores that differ by less would cover each other
const MIDDLE_PX = 5; // top of a mark on the middle of the line
const MARK_PX = 7; // height of a mark
const shapeOf = (at) => `dot run${at % SHAPES.length} ${SHAPES[at % SHAPES.length]}`;

// An estimate is [value, low, high, number of samples], with shares of 1; low and high are null without an interval.
const nOf = (estimate) => estimate?.[3] ?? 0;
const valueOf = (estimate) => estimate?.[0] ?? -1; // a run without a score stands last

// The better of two runs first, given their numbers.
const byScore = (a, b) => valueOf(runs[b].score) - valueOf(runs[a].score);

const onScale = (share) =>
  (head.measure?.out_of ?? 100) === 100 ? points(share) : (head.measure.out_of * share).toFixed(2);

// Floors, planner and ceiling: runs of the page, and baselines that were computed for it.
function referenceScores() {
  const known = runs.map((run) => ({ role: run.role, score: run.score, name: run.label, tasks: run.tasks }));
  const shown = [...known, ...head.references].filter(
    (each) => ["floor", "colours", "planner", "ceiling"].includes(each.role) && each.score,
  );
  const most = Math.max(...known.map((each) => nOf(each.score)));
  return shown.map((each) => ({ ...each, part: nOf(each.score) < most ? ` (n = ${nOf(each.score)})` : "" }));
}

// One line with the scores of one or several runs: an interval and a dot for each, and ticks for floor and ceiling.
function scoreScale(entries, ticks, title) {
  const place = (share) => `${100 * Math.min(1, Math.max(0, share))}%`;
  return el(
    "span.scale",
    { role: "img", "aria-label": title },
    el("span.axis"),
    ticks.map((tick) =>
      el(`span.tick.${tick.role}`, {
        style: { left: place(valueOf(tick.score)) },
        title: `${tick.role} ${estimateText(tick.score)}`,
      }),
    ),
    entries.map(
      ([at, [, low, high]]) =>
        low !== null &&
        el(`span.interval.run${at % SHAPES.length}`, {
          style: { left: place(low), width: `calc(${place(high)} - ${place(low)})` },
        }),
    ),
    entries.map((entry) => {
      const [at, [value]] = entry;
      // Marks at one place are drawn one above the other.
      const near = entries.filter(([, [other]]) => Math.abs(other - value) < NEAR);
      const top = `${MIDDLE_PX + MARK_PX * (near.indexOf(entry) - (near.length - 1) / 2)}px`;
      return el(`span.${shapeOf(at).replaceAll(" ", ".")}`, {
        style: { left: place(value), top },
        title: `${runs[at].label} ${onScale(value)}`,
      });
    }),
  );
}

function estimateText([value, low, high, n]) {
  const interval =
    low === null ? "no interval: fewer than 10 clusters" : `95 % interval ${onScale(low)} to ${onScale(high)}`;
  return `${onScale(value)}, ${interval}, n = ${n}`;
}

const rangeText = ([, low, high]) => (low === null ? "" : `(${onScale(low)} to ${onScale(high)})`);

// The names of the ticks, each at its place, or in one row where these would cover each other.
function scaleLabels(references) {
  const shown = [...references].sort((a, b) => valueOf(a.score) - valueOf(b.score));
  const crowded = shown.some(
    (mark, at) => at && valueOf(mark.score) - valueOf(shown[at - 1].score) < 0.7 / (shown.length - 1),
  );
  const labels = shown.map((mark, at) =>
    el(
      `span.${crowded ? "" : "label."}${mark.role}`,
      { style: { left: `${100 * valueOf(mark.score)}%` } },
      `${crowded && at ? " · " : ""}${mark.role} ${onScale(valueOf(mark.score))}${mark.part}`,
    ),
  );
  return crowded
    ? el("span.side", { style: { left: `${100 * Math.min(0.1, valueOf(shown[0].score))}%` } }, labels)
    : labels;
}
