// Card of the overview: scores by task, with a dot for each of a few runs, or a tinted table of many.

function tasksCard() {
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.tasks)))].sort();
  if (!names.length) return null;
  const references = referenceScores().filter((mark) => ["floor", "ceiling"].includes(mark.role) && mark.tasks);
  const other = head.other_floor; // of the tasks in which it is higher than the floor
  if (other) references.push({ role: "other floor", tasks: other.tasks });
  const signs = references
    .map(
      (mark) =>
        ` · ${mark.role === "ceiling" ? "┃" : mark.role === "floor" ? "┊" : "┆"} ${mark.role === "other floor" ? `${other.name}, where it is higher` : mark.role}`,
    )
    .join("");
  const few = names.some((task) => Math.max(...runs.map((run) => nOf(run.tasks[task]))) < FEW)
    ? ` · grey: fewer than ${FEW} samples`
    : "";
  const title = el("h2", {}, "By task", head.measure && el("small.dim", {}, ` ${head.measure.label}${signs}${few}`));
  if (runs.length > MANY_RUNS) return el("section.card.tasks.wide", {}, title, heatTable(names));
  const shown = runs.map((run, at) => at).filter((at) => runs[at].role !== "floor" && runs[at].role !== "ceiling");
  const dots = shown.length ? shown : runs.map((run, at) => at);
  return el(
    "section.card.tasks",
    {},
    title,
    el(
      "table.chart",
      {},
      dots.length > 1 &&
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            el("th", { scope: "col" }, "task"),
            el("td"),
            dots.map((at) =>
              el(
                "th.sign",
                { scope: "col", title: runs[at].label },
                el(`span.${shapeOf(at).replaceAll(" ", ".")}.still`, { role: "img", "aria-label": runs[at].label }),
              ),
            ),
          ),
        ),
      el(
        "tbody",
        {},
        names.map((task) => {
          const ticks = references
            .filter((mark) => mark.tasks[task])
            .map((mark) => ({ role: mark.role === "other floor" ? "colours" : mark.role, score: mark.tasks[task] }));
          const own = dots.filter((at) => runs[at].tasks[task]);
          const most = Math.max(0, ...own.map((at) => nOf(runs[at].tasks[task])));
          return el(
            `tr${most < FEW ? ".few" : ""}`,
            {},
            el(
              "th",
              { scope: "row" },
              el(
                "a",
                {
                  href: address("samples", {
                    task,
                    mode: head.measure.mode,
                    run: runs.length > 1 ? chosenRun : undefined,
                  }),
                },
                words(task),
              ),
            ),
            el(
              "td.scales",
              {},
              scoreScale(
                own.map((at) => [at, runs[at].tasks[task]]),
                ticks,
                `${words(task)}: ${own.map((at) => `${runs[at].label} ${estimateText(runs[at].tasks[task])}`).join("; ")}`,
              ),
            ),
            dots.map((at) =>
              el(
                "td.number",
                {},
                runs[at].tasks[task] &&
                  el(
                    "span",
                    { title: `${runs[at].label}: ${estimateText(runs[at].tasks[task])}` },
                    onScale(valueOf(runs[at].tasks[task])),
                    el("small", {}, ` ${rangeText(runs[at].tasks[task])}`),
                  ),
              ),
            ),
            el("td.number.dim", { title: "samples" }, `n ${most}`),
          );
        }),
      ),
    ),
    dots.length > 1 &&
      el(
        "p.dim.key-line",
        {},
        dots.map((at) => el("span.name", {}, el(`span.${shapeOf(at).replaceAll(" ", ".")}.still`), runs[at].label)),
      ),
  );
}

const HEAT = 45; // tint of a score of 1, in percent: text on it stays readable

// Many runs: a table whose cells are tinted by the score.
function heatTable(names) {
  const order = runs.map((run, at) => at).sort(byScore);
  const rows = order.map((at) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, runs[at].label),
      names.map((task) => heatCell(task, at)),
    ),
  );
  return scrollBox("Scores by task", headedTable("table.heat", ["", ...names.map(words)], rows));
}

function heatCell(task, run) {
  const estimate = runs[run].tasks[task];
  if (!estimate) return el("td");
  const tint = Math.round(HEAT * valueOf(estimate));
  return el(
    `td${nOf(estimate) < FEW ? ".few" : ""}`,
    {
      title: estimateText(estimate),
      style: { background: `color-mix(in srgb, var(--run0) ${tint}%, var(--card))` },
    },
    el("a", { href: address("samples", { task, run, mode: head.measure.mode }) }, onScale(valueOf(estimate))),
    el("small", {}, ` n ${nOf(estimate)} ${rangeText(estimate)}`),
  );
}
