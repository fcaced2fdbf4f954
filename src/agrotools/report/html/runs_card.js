// Card of the overview: each run with its score and cost, and the difference of the two best models.

function scoreFigure(run) {
  if (!run.score) return el("span.figure.none", { title: run.withheld }, run.withheld ? "withheld" : "no score");
  return el(
    "span.figure",
    { title: estimateText(run.score) },
    el("b", {}, onScale(valueOf(run.score))),
    el("small", {}, rangeText(run.score)),
  );
}

function spent(run) {
  const parts = [
    run.usd !== null && [dollars(run.usd), "cost"],
    run.tokens > 0 && [`${amount(run.tokens)} tokens`, run.token_parts],
    run.seconds > 0 && [
      `${duration(run.seconds)} a sample`,
      "mean time of a sample, as in the run statistics; several samples run at the same time",
    ],
    [count(run.records, "record"), "samples times modes times epochs"],
    run.invalid > 0 && [`${run.invalid} invalid`, "no reply was received; excluded from all averages"],
    run.missing > 0 && [
      `${run.missing} missing`,
      "planned and not finished; run the same agrotools eval command to resume",
    ],
  ];
  return el(
    "span.spent.dim",
    {},
    parts.filter(Boolean).map(([text, title], at) => [at > 0 && " · ", el("span", { title }, text)]),
  );
}

function runsCard() {
  const references = referenceScores().filter((mark) => mark.role !== "planner" || runs.length === 1);
  const ticks = references.map((mark) => ({ role: mark.role, score: mark.score }));
  const order = runs.map((run, at) => at);
  if (runs.length > MANY_RUNS) order.sort(byScore);
  const rows = order
    .map((at) => [runs[at], at])
    .map(([run, at]) =>
      el(
        `div.run${run.role === "model" ? "" : ".baseline"}`,
        {},
        el(
          "span.name",
          {},
          el(
            "button.pick",
            {
              type: "button",
              "aria-pressed": String(at === chosenRun),
              title: "show this run below",
              onclick: () => {
                chosenRun = at;
                drawOverview();
              },
            },
            el(`span.${shapeOf(at).replaceAll(" ", ".")}.still`),
            run.label,
          ),
          run.privileged && [" ", yardstickBadge()],
          run.unsealed && [
            " ",
            el("span.badge", { title: "not isolated, so it could have read the answers" }, "unsealed"),
          ],
        ),
        scoreFigure(run),
        run.score
          ? scoreScale(
              [[at, run.score]],
              ticks.filter((tick) => tick.role !== run.role),
              `${run.label}: ${estimateText(run.score)}`,
            )
          : el(
              "span.dim",
              {},
              run.possible
                ? `between ${onScale(run.possible[0])} and ${onScale(run.possible[1])} if all invalid ones are counted`
                : "",
            ),
        spent(run),
      ),
    );
  const heads =
    head.measure &&
    el(
      "div.run.heads",
      { "aria-hidden": "true" },
      el("span.name.dim", {}, head.measure.mode.replaceAll("-", " ")),
      el("span.figure.dim", {}, term(head.measure.label)),
      el(
        "span.scale.labels",
        {},
        references.every((mark) => valueOf(mark.score) >= 0.05) && el("span.end", {}, "0"),
        scaleLabels(references),
        el("span.end.right", {}, head.measure?.out_of ?? 100),
      ),
      el("span.spent"),
    );
  return el(
    `section.card.runs${runs.length > MANY_RUNS ? ".many" : ""}`,
    { "aria-label": "Runs" },
    heads,
    rows,
    pairLine(),
  );
}

const isModel = (at) => runs[at].role === "model";

// The pair of the two best models. Baselines are yardsticks, so that they are never one of the two.
function mainPair() {
  const pairs = head.pairs.filter(
    (pair) =>
      isModel(pair.first) &&
      isModel(pair.second) &&
      (!head.measure || (pair.mode === head.measure.mode && pair.label === head.measure.label)),
  );
  const score = (at) => valueOf(runs[at].score);
  return pairs.sort((a, b) => score(b.first) + score(b.second) - score(a.first) - score(a.second))[0];
}

function pairLine() {
  const pair = mainPair();
  if (!pair)
    return (
      runs.filter((_, at) => isModel(at)).length > 1 &&
      el(
        "p.pair.dim",
        {},
        "This page has no difference of these runs. agrotools compare shows it, or says why there is none. ",
        el("a", { href: "#compare" }, "samples that differ"),
      )
    );
  const flips = changedSamples(pair.first, pair.second, pair.mode);
  return el(
    "p.pair",
    {},
    verdictLine(pair),
    flips.up.length + flips.down.length > 0 &&
      `. ${runs[pair.second].label} scores higher on ${count(flips.up.length, "sample")}, lower on ${flips.down.length}, the same on ${flips.same}`,
    ". ",
    el("a", { href: address("compare", { a: pair.first, b: pair.second }) }, "Details"),
  );
}

const verdictLine = (pair) =>
  el(
    `strong.${pair.differs ? "shown" : "unshown"}`,
    { title: pair.p === null ? "" : `p = ${pair.p.toPrecision(2)}, adjusted for all pairs (Holm)` },
    pair.verdict,
  );
