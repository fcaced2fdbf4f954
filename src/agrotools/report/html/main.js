// Views, the start of the page, and its update while a run goes on.

const VIEWS = ["overview", "table", "samples", "compare", "tables", "errors", "setup"].filter((name) => byId(name));
let ready = false; // the list of samples was read
const WATCH_MS = 2500; // time between two looks at a run that goes on

// Show the view that the address names. Before the list is read, only the frame of a view can be shown.
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

byId("help-open").addEventListener("click", openHelp);

// The address names the view: a jump to the content must not change it.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("main").focus();
});

byId("scheme").addEventListener("click", () => {
  const root = document.documentElement;
  const chosen = getComputedStyle(root).colorScheme; // "light dark" until one is chosen
  const isDark = chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  root.style.colorScheme = isDark ? "light" : "dark";
});

for (const dialog of document.querySelectorAll("dialog")) {
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // a click beside its content
  });
}

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
  for (const name of ["tables", "errors", "setup"])
    byId(name)?.replaceChildren(...(page.getElementById(name)?.childNodes ?? []));
  explainHeadings();
  drawOverview();
  if (["compare", "table"].includes(document.body.dataset.view)) follow();
  rowElements.clear(); // rows show filters, run and score, any of which may have changed
  byId("list").replaceChildren();
  if (document.body.dataset.view !== "samples") {
    drawSamplesView();
    return;
  }
  if (current && !records.includes(current)) {
    current = records.find((each) => each.link === current.link) ?? null;
    if (current) drawDetail(current);
  }
  applyFilters();
}

// Ask the local server whether the run has new records.
async function watch() {
  let state = null;
  try {
    state = await (await fetch(head.live.state)).json();
  } catch {
    byId("live").replaceChildren("the server has stopped");
  }
  if (state) byId("live").replaceChildren(runs.some((run) => run.missing) ? "live" : "");
  try {
    if (state && ready && state.stamp !== head.live.stamp) await update();
  } catch {
    byId("live").replaceChildren("the new records cannot be shown; load the page again");
  }
  setTimeout(watch, WATCH_MS);
}

start();
if (head.live) watch();
