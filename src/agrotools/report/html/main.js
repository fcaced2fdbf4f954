// Views, keys, help, and the start of the page.

const VIEWS = ["overview", "table", "samples", "compare", "tables", "errors", "setup"].filter((name) => byId(name));
let ready = false;

function follow() {
  const { view, parameters } = readAddress();
  const name = VIEWS.includes(view) ? view : "overview";
  for (const each of VIEWS) byId(each).hidden = each !== name;
  document.body.dataset.view = name;
  for (const link of byId("tabs").children) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (!ready) return;
  if (name === "samples") followAddress(parameters);
  if (name === "table") drawTable(parameters);
  if (name === "compare") drawCompare(parameters);
}

const KEYS = [
  ["j", "next sample", () => move(1)], ["k", "previous sample", () => move(-1)],
  ["/", "search", () => { if (readAddress().view !== "samples") location.hash = "#samples"; showDetailOnPhone(false); setTimeout(() => byId("search").focus()); }],
  ["b", "boxes of calls and results on the picture", () => { for (const origin of ["call", "found", "question"]) toggleOrigin(origin); stage?.redraw(); }],
  ["t", "truth on the picture", () => { toggleOrigin("truth"); stage?.redraw(); }],
  ["o", "overlays of the tools, one after another", () => nextLayer()],
  ["z", "picture in a large window; wheel, + and - zoom, drag moves, 0 fits", () => byId("detail")?.querySelector("button.enlarge")?.click()],
  ["g", "overview", () => { location.hash = "#overview"; }], ["l", "list of samples", () => { location.hash = address("samples", { ...addressFilters(), id: current ? decodeURIComponent(current.link) : "" }); }],
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
  const keyList = el("dl.keys", {}, KEYS.map(([key, meaning]) => el("div", {}, el("dt", {}, el("kbd", {}, key)), el("dd", {}, meaning))));
  const termList = el("dl.keys", {}, Object.entries(head.terms).map(([label, meaning]) => el("div", {}, el("dt", {}, label), el("dd", {}, meaning))));
  const smaller = head.shrunk > 0 && ` ${count(head.shrunk, "picture")} ${head.shrunk === 1 ? "is" : "are"} smaller or left out, to keep the file small.`;
  byId("help").replaceChildren(
    // The button comes first: a dialog opens where its first control is.
    el("form.close", { method: "dialog" }, el("h2", { id: "help-title" }, "Keys"), el("button", {}, "Close")), keyList,
    el("h2", {}, "Terms"), termList,
    el("h2", {}, "Pictures"), el("p", {}, `Pictures on this page are at most ${head.longest_px} px wide or high.`, smaller, " For larger ones, run ", el("code", {}, `${head.command} --image-px 1200`), "."),
    el("p", {}, `The originals of the questions are in ${head.originals.join(", ") || "the folder of the benchmark"}. Pictures that tools made are in the folder artifacts of the run.`));
}

// Headings of tables and error classes are explained on hover, too.
function explainHeadings() {
  for (const line of document.querySelectorAll("table.numbers thead .line span")) if (head.terms[line.textContent]) line.title = head.terms[line.textContent];
}

byId("help-open").addEventListener("click", openHelp);
// The address names the view: a jump to the content must not change it.
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); byId("main").focus(); });
byId("scheme").addEventListener("click", () => {
  const dark = getComputedStyle(document.documentElement).colorScheme === "dark" || (getComputedStyle(document.documentElement).colorScheme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.style.colorScheme = dark ? "light" : "dark";
});
for (const dialog of document.querySelectorAll("dialog")) dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
byId("viewer").addEventListener("close", () => byId("viewer").replaceChildren());
addEventListener("hashchange", follow);

async function start() {
  follow();
  readIndex(JSON.parse(await inflate(await stored("index"))));
  drawSamplesView();
  drawOverview();
  drawHelp();
  explainHeadings();
  ready = true;
  follow();
  performance.mark("ready");
  document.body.dataset.ready = "true";
}

// On a local server: take over the data of the page when a run has new records. Sample, filters and focus stay.
async function update() {
  const page = new DOMParser().parseFromString(await (await fetch(location.href.split("#")[0])).text(), "text/html");
  readHead(page.getElementById("head").textContent);
  readIndex(JSON.parse(await inflate(page.getElementById("index").textContent)));
  for (const name of ["tables", "errors", "setup"]) byId(name)?.replaceChildren(...(page.getElementById(name)?.childNodes ?? []));
  explainHeadings();
  drawOverview();
  if (["compare", "table"].includes(document.body.dataset.view)) follow();
  rowElements.clear();
  byId("list").replaceChildren();
  if (document.body.dataset.view !== "samples") { drawSamplesView(); return; }
  if (current && !records.includes(current)) {
    current = records.find((each) => each.link === current.link) ?? null;
    if (current) drawDetail(current);
  }
  applyFilters();
}

async function watch() {
  let state = null;
  try { state = await (await fetch(head.live.state)).json(); } catch { byId("live").replaceChildren("the server has stopped"); }
  if (state) byId("live").replaceChildren(runs.some((run) => run.missing) ? "live" : "");
  try { if (state && ready && state.stamp !== head.live.stamp) await update(); } catch { byId("live").replaceChildren("the new records cannot be shown; load the page again"); }
  setTimeout(watch, 2500);
}

start();
if (head.live) watch();
