// One sample: the parts of the files before this one in two panes, and the same sample in other runs.

function othersView(record, others) {
  const same = others.filter(
    (each) => each.run !== record.run && each.mode === record.mode && each.epoch === record.epoch,
  );
  if (!same.length) return null;
  return el(
    "section.card.others",
    {},
    el("h3", {}, "Same sample in other runs"),
    same.map((other) => {
      const place = el("p.other-answer.dim", {}, "…");
      detailOf(other).then((data) =>
        place.replaceChildren(
          data
            ? longText(data.answer ?? (data.ended ? `no answer (${data.ended})` : data.invalid || "see its steps"), 300)
            : "no details on this page",
        ),
      );
      return el(
        "div.other",
        {},
        el(
          "h4",
          {},
          recordBadge(other),
          " ",
          el("a", { href: sampleAddress(other) }, runs[other.run].label),
          runs[other.run].privileged && [" ", yardstickBadge()],
        ),
        place,
      );
    }),
  );
}

// The record with all that this page shows of it, as agrotools explain --json prints it.
async function downloadRecord(record, data) {
  const whole = async (request) => ({
    ...request,
    tools: await textOf(request.tools),
    messages: await Promise.all(
      request.messages.map(async (message) => ({ ...message, texts: await Promise.all(message.texts.map(textOf)) })),
    ),
  });
  const { sample, mode, epoch, value, lost, reason } = record;
  const shownData = {
    id: sample.id,
    mode,
    epoch,
    task: sample.task,
    score: value,
    cause: mainPart(record) ?? "",
    lost,
    error: reason,
    ...data,
    sent: await Promise.all(data.sent.map(whole)),
  };
  const href = URL.createObjectURL(new Blob([JSON.stringify(shownData, null, 1)], { type: "application/json" }));
  el("a", { href, download: `${sample.id}-${mode}.json` }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}

async function copyId(button, id) {
  try {
    await navigator.clipboard.writeText(id);
    button.textContent = "copied";
  } catch {
    getSelection().selectAllChildren(byId("sample-id"));
    button.textContent = "press Ctrl-C";
  }
}

async function drawDetail(record) {
  const pane = byId("detail");
  let data = null,
    failure = "";
  try {
    data = await detailOf(record);
  } catch (error) {
    failure = `This part of the file cannot be read: ${error.message}`;
  }
  if (record !== current) return; // another one was opened meanwhile
  const run = runs[record.run];
  const others = siblings(record);
  const title = el(
    "header.title",
    {},
    el("button.quiet.back", { type: "button", onclick: () => showDetailOnPhone(false) }, "‹ list"),
    el(
      "h2",
      {},
      recordBadge(record),
      " ",
      el("span", { id: "sample-id" }, record.sample.id),
      " ",
      el("small.dim", {}, `${record.mode}${record.epoch ? `, epoch ${record.epoch}` : ""}, ${run.label}`),
    ),
    el(
      "button.quiet",
      { type: "button", id: "copy-id", onclick: (event) => copyId(event.target, record.sample.id) },
      "copy id",
    ),
    data &&
      el(
        "a",
        {
          id: "download",
          href: sampleAddress(record),
          onclick: (event) => {
            event.preventDefault();
            downloadRecord(record, data);
          },
        },
        "record as JSON",
      ),
    el(
      "span.pager",
      {},
      el(
        "button.quiet",
        { type: "button", "aria-label": "Previous sample", title: "Previous (k)", onclick: () => moveBy(-1) },
        "‹",
      ),
      el("output", {}, `${(shown.indexOf(record) + 1).toLocaleString("en")} / ${shown.length.toLocaleString("en")}`),
      el(
        "button.quiet",
        { type: "button", "aria-label": "Next sample", title: "Next (j)", onclick: () => moveBy(1) },
        "›",
      ),
    ),
    others.length > 0 &&
      el(
        "nav.siblings",
        { "aria-label": "Same sample" },
        others
          .filter((other) => other.run === record.run || (other.mode === record.mode && other.epoch === record.epoch))
          .slice(0, 24)
          .map((other) =>
            el(
              "a",
              { href: sampleAddress(other) },
              recordBadge(other),
              ` ${[runs.length > 1 && other.run !== record.run && runs[other.run].label, other.mode !== record.mode && other.mode, other.epoch !== record.epoch && `epoch ${other.epoch}`].filter(Boolean).join(", ")}`,
            ),
          ),
      ),
  );
  const command = el(
    "p.dim",
    {},
    "in a terminal: ",
    el(
      "code",
      {},
      `agrotools explain ${run.folder} ${record.sample.id} --mode ${record.mode}${record.epoch ? ` --epoch ${record.epoch}` : ""}`,
    ),
  );
  if (!data) {
    stage = null;
    pane.replaceChildren(
      title,
      el("p.query", {}, record.sample.query),
      el(
        "p.warning",
        {},
        failure ||
          `The details of this record are not in this file, to keep it small. To see them, run agrotools view ${run.folder}`,
      ),
      command,
    );
    return;
  }
  const left = el(
    "div.asked",
    {},
    el("p.query", {}, longText(data.query, 2000)),
    data.invalid && el("p.bad", {}, `✗ invalid: ${data.invalid}. Excluded from all averages.`),
    fileParts(data),
    stepsView(data, record),
  );
  const right = el(
    "div.done",
    {},
    el(
      "section.card.given",
      {},
      el("h3", {}, "Answer"),
      answerView(data) || el("p.dim", {}, record.mode === "step-by-step" ? "the last of the steps" : "none"),
    ),
    slotsView(data),
    lostView(record, data),
    othersView(record, others),
    sentView(data),
    rawReplies(data),
    el("section.card", {}, el("h3", {}, "About"), fieldList(data.about), command),
  );
  pane.replaceChildren(title, el("div.panes", {}, left, right));
  pane.scrollTop = 0;
  left.scrollTop = 0;
}
