// Keys, and the window that explains keys, terms and pictures.

const KEYS = [
  ["j", "next sample", () => moveBy(1)],
  ["k", "previous sample", () => moveBy(-1)],
  [
    "/",
    "search",
    () => {
      if (readAddress().view !== "samples") location.hash = "#samples";
      showDetailOnPhone(false);
      setTimeout(() => byId("search").focus());
    },
  ],
  [
    "b",
    "boxes of calls and results on the picture",
    () => {
      for (const origin of ["call", "found", "question"]) toggleOrigin(origin);
      stage?.redraw();
    },
  ],
  [
    "t",
    "truth on the picture",
    () => {
      toggleOrigin("truth");
      stage?.redraw();
    },
  ],
  ["o", "overlays of the tools, one after another", () => nextLayer()],
  [
    "z",
    "picture in a large window; wheel, + and - zoom, drag moves, 0 fits",
    () => byId("detail")?.querySelector("button.enlarge")?.click(),
  ],
  [
    "g",
    "overview",
    () => {
      location.hash = "#overview";
    },
  ],
  [
    "l",
    "list of samples",
    () => {
      location.hash = address("samples", { ...addressFilters(), id: current ? decodeURIComponent(current.link) : "" });
    },
  ],
  ["?", "this help", () => openHelp()],
];

function openHelp() {
  byId("help").showModal();
  byId("help").scrollTop = 0;
}

function nextLayer() {
  const layers = [...(stage?.querySelectorAll("button.layer") ?? [])];
  const at = layers.findIndex((button) => button.getAttribute("aria-pressed") === "true");
  (layers[at + 1] ?? layers[at])?.click();
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input:not([type=range]), select, textarea");
  if (event.key === "Escape" && typing) typing.blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const inList = event.target.closest?.("#list");
  const name = inList && event.key === "ArrowDown" ? "j" : inList && event.key === "ArrowUp" ? "k" : event.key;
  const act = KEYS.find(([key]) => key === name)?.[2];
  if (!act || (["j", "k"].includes(name) && document.body.dataset.view !== "samples")) return;
  event.preventDefault();
  act();
});

function drawHelp() {
  const keyList = el(
    "dl.keys",
    {},
    KEYS.map(([key, meaning]) => el("div", {}, el("dt", {}, el("kbd", {}, key)), el("dd", {}, meaning))),
  );
  const termList = el(
    "dl.keys",
    {},
    Object.entries(head.terms).map(([label, meaning]) => el("div", {}, el("dt", {}, label), el("dd", {}, meaning))),
  );
  const smaller =
    head.shrunk > 0 &&
    ` ${count(head.shrunk, "picture")} ${head.shrunk === 1 ? "is" : "are"} smaller or left out, to keep the file small.`;
  byId("help").replaceChildren(
    // The button comes first: a dialog opens where its first control is.
    el("form.close", { method: "dialog" }, el("h2", { id: "help-title" }, "Keys"), el("button", {}, "Close")),
    keyList,
    el("h2", {}, "Terms"),
    termList,
    el("h2", {}, "Pictures"),
    el(
      "p",
      {},
      `Pictures on this page are at most ${head.longest_px} px wide or high.`,
      smaller,
      " For larger ones, run ",
      el("code", {}, `${head.command} --image-px 1200`),
      ".",
    ),
    el(
      "p",
      {},
      `The originals of the questions are in ${head.originals.join(", ") || "the folder of the benchmark"}. Pictures that tools made are in the folder artifacts of the run.`,
    ),
  );
}

// Headings of tables and error classes are explained on hover, too.
function explainHeadings() {
  for (const line of document.querySelectorAll("table.numbers thead .line span"))
    if (head.terms[line.textContent]) line.title = head.terms[line.textContent];
}
