// Steps of a sample as a timeline: arguments beside those of the reference, results, files.

function argumentTable(step) {
  if (step.args.length) {
    const rows = step.args.map(([name, value, expected, mark, detail]) => {
      const raw = step.call?.[name];
      const whole =
        raw !== undefined && /… \(\d+ more characters\)$/.test(value)
          ? longText(typeof raw === "string" ? raw : JSON.stringify(raw))
          : longText(value);
      return el(
        "tr",
        { class: mark === "✗" ? "wrong" : mark === "≈" ? "nearly" : "right" },
        el("th", { scope: "row" }, el("span.mark", {}, mark), " ", name),
        el("td", {}, whole),
        el(
          "td",
          {},
          mark === "✓" ? el("span.dim", {}, "same") : longText(expected),
          detail && mark !== "✓" && el("span.dim", {}, ` (${detail})`),
        ),
      );
    });
    return headedTable("table.arguments", ["argument", "value", step.against], rows);
  }
  if (step.call && Object.keys(step.call).length) return fieldList(Object.entries(step.call));
  return step.plain.length > 0 && fieldList(step.plain);
}

const FIRST_FIELDS = 8;

function resultView(step) {
  if (!step.result && !step.error) return null;
  const names = new Set((step.files ?? []).map((file) => file.name));
  const entries = Object.entries(step.result ?? {}).filter(
    ([name, value]) =>
      !names.has(value) && name !== "notes" && name !== "flags" && !(name === "spec" && step.result.summary),
  );
  const light = (value) =>
    value === null || typeof value !== "object" || (Array.isArray(value) && JSON.stringify(value).length < 80);
  const [short, long] = [entries.filter(([, value]) => light(value)), entries.filter(([, value]) => !light(value))];
  // A tool of another server may use these names for something else than lists.
  const listOf = (value) => (Array.isArray(value) ? value.map(String) : value ? [String(value)] : []);
  const flags = listOf(step.result?.flags),
    notes = listOf(step.result?.notes);
  return el(
    "div.seen",
    {},
    el("p.word", {}, step.word || "result"),
    el(
      "div",
      {},
      step.error && el("p.bad", {}, el("b", {}, "✗ error "), longText(step.error, 600)),
      short.length > 0 && fieldList(short.slice(0, FIRST_FIELDS)),
      flags.length > 0 &&
        el(
          "p.odd",
          {},
          flags.map((flag) => `⚑ ${flag} `),
        ),
      notes.map((note) => el("p.dim", {}, longText(note))),
      long.map(([name, value]) =>
        fold(`${name}${Array.isArray(value) ? ` (${value.length})` : ""}`, () => valueView(value)),
      ),
      short.length > FIRST_FIELDS &&
        fold(`${short.length - FIRST_FIELDS} more fields`, () => fieldList(short.slice(FIRST_FIELDS))),
      step.result && fold("whole result", () => rawText(JSON.stringify(step.result, null, 1))),
    ),
  );
}

function stepView(step, longest, certificates) {
  const seconds = (step.seconds ?? 0) + (step.reply?.seconds ?? 0);
  const tokens =
    step.reply &&
    step.reply.tokens[0] + step.reply.tokens[1] > 0 &&
    `${amount(step.reply.tokens[0])} + ${amount(step.reply.tokens[1])} tokens`;
  const time = [step.about, step.reply && step.reply.seconds > 0 && `model ${duration(step.reply.seconds)}`, tokens]
    .filter(Boolean)
    .join(", ");
  const tested = certificates[step.tool];
  const item = el(
    `li.step.${step.state || "plain"}`,
    { data: { step: step.n } },
    el(
      "header",
      {},
      el("span.number", {}, step.n || "–"),
      el("h4", {}, tested ? el("abbr", { title: tested }, step.title) : step.title),
      step.verdict && el(`span.verdict.${step.state || "plain"}`, {}, step.verdict),
      el(
        "span.time.dim",
        {},
        time,
        el(
          "span.meter",
          { "aria-hidden": "true" },
          el("i", { style: { width: `${longest ? (100 * seconds) / longest : 0}%` } }),
        ),
      ),
    ),
    step.thought && el("p.thought", {}, longText(step.thought, 600)),
    argumentTable(step),
    step.text && el("p.text", {}, longText(step.text, 1200)),
    resultView(step),
    labelled(step.lines),
    step.scores.length > 0 &&
      el(
        "p.dim",
        {},
        step.scores.map(([label, value], at) => [at > 0 && ", ", term(label), ` ${value}`]),
      ),
    (step.files ?? []).length > 0 && el("div.figures", {}, step.files.map(fileView)),
    step.reply?.text && fold("raw reply", () => rawText(step.reply.text)),
  );
  item.addEventListener("mouseenter", () => stage?.light(step.n));
  item.addEventListener("mouseleave", () => stage?.light(null));
  return item;
}

function stepsView(data, record) {
  if (!data.steps.length) return null;
  const longest = Math.max(0, ...data.steps.map((step) => (step.seconds ?? 0) + (step.reply?.seconds ?? 0)));
  const sums = [
    record.seconds > 0 && duration(record.seconds),
    record.tokens > 0 && `${data.sent_tokens}, ${amount(data.tokens[1])} out`,
    data.usd !== null && dollars(data.usd),
    data.silent && "usage not reported by the agent",
  ]
    .filter(Boolean)
    .join(", ");
  return el(
    "section.taken",
    {},
    el("h3", {}, record.mode === "step-by-step" ? "Predicted steps " : "Steps ", el("small.dim", {}, sums)),
    el(
      "ol.steps",
      {},
      data.steps.map((step) => stepView(step, longest, runs[record.run].certificates)),
      data.left > 0 &&
        el(
          "li.step",
          {},
          el(
            "p.dim",
            {},
            `${data.left} more steps are not on this page. To see them, run agrotools explain ${runs[record.run].folder} ${record.sample.id}`,
          ),
        ),
    ),
  );
}
