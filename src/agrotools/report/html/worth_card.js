// Card of the overview: three samples that tell most about the chosen run.

// Three samples that lost points by different parts: of each part the one with the lowest score, with a picture if possible.
// Refused pairs come last: they show nothing of what the run can do.
function tellingRecords() {
  const mode = head.measure?.mode;
  const own = records.filter(
    (record) =>
      record.run === chosenRun && record.value !== null && record.value < 1 && (!mode || record.mode === mode),
  );
  const refusedTwins = new Set(own.filter((record) => record.lost.twin).map((record) => record.sample.twin));
  const isOrdinary = (record) => mainPart(record) !== "twin" && !refusedTwins.has(record.sample.id);
  const rank = (record) => record.value - (record.sample.picture ? 0.5 : 0) + (isOrdinary(record) ? 0 : 2);
  own.sort((a, b) => rank(a) - rank(b));
  const parts = Object.entries(lostSplit(chosenRun).run.parts)
    .sort((a, b) => b[1] - a[1])
    .map(([part]) => part);
  const firsts = [
    own.find((record) => record.disagree && record.value === 0),
    ...parts.map((part) => own.find((record) => mainPart(record) === part)),
    ...own,
  ];
  return [...new Map(firsts.filter(Boolean).map((record) => [record.sample, record])).values()]
    .slice(0, 3)
    .sort((a, b) => isOrdinary(b) - isOrdinary(a));
}

function whyTelling(record) {
  const part = mainPart(record);
  return `${record.disagree ? "runs disagree; " : ""}${part ? `${partWord(part)}: ${partTitle(part)}` : words(record.mode)}`;
}

function worthCard() {
  const found = tellingRecords();
  if (!found.length) return null;
  return el(
    "section.worth",
    { "aria-label": "Worth a look" },
    el("h2", {}, "Worth a look"),
    el(
      "div.row",
      {},
      found.map((record) => {
        const image = record.sample.picture && el("img", { alt: "", width: "72", height: "72" });
        if (image) showPicture(image, record.sample.picture);
        return el(
          "a.card.telling",
          { href: sampleAddress(record) },
          image,
          el(
            "span",
            {},
            el("b", {}, record.sample.id),
            " ",
            recordBadge(record),
            el("span.why", {}, whyTelling(record)),
            el("span.dim.ask", {}, record.reason || record.sample.query),
          ),
        );
      }),
    ),
  );
}
