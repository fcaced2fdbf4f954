// Two runs side by side: the paired difference, second minus first, and the samples whose score changed.

let pairChoice = null; // numbers of the two runs; kept while other views are open

// Samples of both runs whose mean score over epochs differs, as agrotools compare counts them: up (second is better) and down.
function changedSamples(first, second, mode) {
  const means = new Map();
  for (const record of records) {
    if (record.mode !== mode || record.value === null || (record.run !== first && record.run !== second)) continue;
    const entry =
      means.get(record.sample) ?? means.set(record.sample, { [first]: [], [second]: [] }).get(record.sample);
    entry[record.run].push(record);
  }
  const mean = (some) => some.reduce((sum, record) => sum + record.value, 0) / some.length;
  const result = { up: [], down: [], same: 0, of: 0 };
  for (const entry of means.values()) {
    if (!entry[first].length || !entry[second].length) continue;
    const change = mean(entry[second]) - mean(entry[first]);
    result.of += 1;
    if (change > 1e-9) result.up.push({ a: entry[first][0], b: entry[second][0] });
    else if (change < -1e-9) result.down.push({ a: entry[first][0], b: entry[second][0] });
    else result.same += 1;
  }
  return result;
}

const reachOf = ([value, low, high]) => Math.max(0.1, Math.abs(low ?? value), Math.abs(high ?? value)) * 1.1;

function differenceDrawing([value, low, high], reach) {
  const place = (share) => `${50 + (50 * share) / reach}%`;
  return el(
    "span.scale.difference",
    { role: "img", "aria-label": `difference ${signed(value)}` },
    el("span.axis"),
    el("span.tick.zero", { style: { left: "50%" }, title: "no difference" }),
    low !== null &&
      el("span.interval.run0", { style: { left: place(low), width: `calc(${place(high)} - ${place(low)})` } }),
    el("span.dot.run0.circle", { style: { left: place(value) } }),
  );
}

function flipList(title, flips) {
  if (!flips.length) return null;
  const most = 200;
  return el(
    "section.card",
    {},
    el("h3", {}, `${title} (${flips.length})`),
    el(
      "ul.flips",
      {},
      flips
        .slice(0, most)
        .map(({ a, b }) =>
          el(
            "li",
            {},
            el("a", { href: sampleAddress(a) }, a.sample.id),
            " ",
            badge(a.value, runs[a.run].label),
            " ",
            badge(b.value, runs[b.run].label),
            el("span.dim", {}, ` ${words(a.sample.task)}: ${(a.value < b.value ? a : b).reason}`),
          ),
        ),
    ),
    flips.length > most &&
      el("p.dim", {}, `${flips.length - most} more are in the list of samples, under “runs disagree”.`),
  );
}

// A name of tools with places where a narrow table may break it: after its underscores.
const breakable = (text) => text.split("_").flatMap((piece, at) => (at ? ["_", el("wbr"), piece] : [piece]));

// By task and by cause: difference, interval and number of samples; turned if the runs are chosen the other way round.
function partsTable(title, meaning, kind, pair, turned) {
  const rows = pair.rows.filter(([of, , [value]]) => of === kind && (kind === "task" || Math.abs(value) >= 0.0005));
  const reach = Math.max(...rows.map(([, , estimate]) => reachOf(estimate)));
  return (
    rows.length > 0 &&
    el(
      "section.card",
      {},
      el("h3", {}, title),
      meaning && el("p.dim", {}, meaning),
      el(
        "table.numbers.differences",
        {},
        el(
          "tbody",
          {},
          rows.map(([, name, estimate, differs]) => {
            const [value, low, high, n] = turned ? turnedRound(estimate) : estimate;
            return el(
              `tr${n < FEW ? ".few" : ""}`,
              {},
              el(
                "th",
                { scope: "row" },
                kind === "cause" ? el("span", { title: partTitle(name) }, breakable(partWord(name))) : name,
              ),
              el("td", {}, el(differs ? "b" : "span", {}, signed(value))),
              el("td.dim", {}, low === null ? "" : `${signed(low)} to ${signed(high)}`),
              el("td.scales", {}, differenceDrawing([value, low, high], reach)),
              el("td.dim", {}, `n ${n}`),
            );
          }),
        ),
      ),
    )
  );
}

const HEADINGS = [
  ["difference"],
  ["95 % interval"],
  ["", undefined, "th.scales"],
  ["p, adjusted", "p-value, adjusted for all pairs of runs (Holm)"],
  ["n", "number of samples"],
  ["detectable", "smallest difference that this many samples can show"],
];

const turnedRound = ([value, low, high, n]) => [-value, high === null ? null : -high, low === null ? null : -low, n];

function drawCompare(parameters) {
  if (runs.length < 2) return;
  const best = mainPair() ?? head.pairs[0];
  const valid = (text) => (text !== null && runs[Number(text)] ? Number(text) : null);
  pairChoice = [
    valid(parameters.get("a")) ?? pairChoice?.[0] ?? best?.first ?? 0,
    valid(parameters.get("b")) ?? pairChoice?.[1] ?? best?.second ?? 1,
  ];
  const [first, second] = pairChoice;
  const mode = head.measure?.mode;
  const flips = changedSamples(first, second, mode);
  const choose = (place, label) =>
    el(
      "label",
      {},
      `${label} `,
      el(
        "select",
        {
          onchange: (event) => {
            location.hash = address("compare", {
              a: place ? first : event.target.value,
              b: place ? event.target.value : second,
            });
          },
        },
        runs.map((run, at) => el("option", { value: at, selected: at === pairChoice[place] }, run.label)),
      ),
    );
  const pairs = head.pairs.filter(
    (pair) => (pair.first === first && pair.second === second) || (pair.first === second && pair.second === first),
  );
  pairs.sort((a, b) => (b.mode === mode) - (a.mode === mode));
  const rows = pairs.map((pair) => {
    const [value, low, high, n] = pair.first === first ? pair.difference : turnedRound(pair.difference);
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, `${words(pair.mode)}, `, term(pair.label)),
      el("td", {}, el("b", {}, signed(value))),
      el("td", {}, low === null ? "no interval: fewer than 10 clusters" : `${signed(low)} to ${signed(high)}`),
      el("td.scales", {}, differenceDrawing([value, low, high], reachOf([value, low, high]))),
      el("td.dim", {}, pair.p === null ? "" : `p ${pair.p < 0.001 ? "< 0.001" : pair.p.toPrecision(2)}`),
      el("td.dim", {}, n),
      el("td.dim", {}, pair.detectable === null ? "" : Math.round(100 * pair.detectable)),
    );
  });
  const main = pairs[0]?.rows.length ? pairs[0] : null;
  byId("compare").replaceChildren(
    ...[
      el("div.choose", {}, choose(0, "Compare"), choose(1, "with")),
      pairs.map((pair) =>
        el(
          "p.pair",
          {},
          verdictLine(pair),
          ` · ${words(pair.mode)}, ${pair.label}`,
          pair.more &&
            `. About ${pair.more.toLocaleString("en")} more samples would show a difference of ${Math.abs(100 * pair.difference[0]).toFixed(1)} points.`,
        ),
      ),
      rows.length > 0 && el("p", {}, `Positive numbers favour ${runs[second].label}.`),
      rows.length
        ? scrollBox(
            "Differences",
            el(
              "table.numbers.differences",
              {},
              el(
                "thead",
                {},
                el(
                  "tr",
                  {},
                  el("td"),
                  HEADINGS.map(([text, title, name = "th"]) => el(name, { scope: "col", title }, text)),
                ),
              ),
              el("tbody", {}, rows),
            ),
          )
        : el(
            "p.dim",
            {},
            "This page has no difference of these runs. agrotools compare shows it, or says why there is none.",
          ),
      el(
        "p",
        {},
        `Of the ${count(flips.of, "sample")} in both runs (${words(mode ?? "")}), ${flips.up.length} score higher in ${runs[second].label}, ${flips.down.length} in ${runs[first].label}, and ${flips.same} the same.`,
      ),
      main &&
        el(
          "div.columns",
          {},
          partsTable("By task", "", "task", main, main.first !== first),
          partsTable(
            "By cause",
            `Where the number is positive, ${runs[second].label} loses fewer points to the cause.`,
            "cause",
            main,
            main.first !== first,
          ),
        ),
      el(
        "p.dim",
        {},
        main ? "All metrics: " : "By task and by cause: ",
        el("code", {}, `agrotools compare ${runs[first].folder} ${runs[second].folder} --details`),
      ),
      el(
        "div.columns",
        {},
        flipList(`Better in ${runs[second].label}`, flips.up),
        flipList(`Better in ${runs[first].label}`, flips.down),
      ),
    ]
      .flat()
      .filter(Boolean),
  );
}
