"use strict";
// Finds samples and shows one at a time. Parts of the page are cloned from templates; no HTML is built from text.
(() => {
  const byId = (id) => document.getElementById(id);
  const { runs, parts } = JSON.parse(byId("index").textContent);
  const list = byId("list"), detail = byId("detail"), count = byId("count");
  const selects = ["run", "mode", "task", "type", "state"].map(byId);
  const boxes = [...document.querySelectorAll('input[name="facet"]')];
  const search = byId("text"), order = byId("order");
  const STATES = { wrong: 0, partial: 1, right: 2, invalid: 3 };
  const tasks = new Set(parts.map((part) => part.task)).size;
  let shown = [], current = null;

  for (const part of parts) {
    part.link = [runs[part.run].name, part.mode, part.sample, part.epoch].map(encodeURIComponent).join("/");
    part.values = { run: String(part.run), mode: part.mode, task: part.task, type: part.type, state: part.state };
    part.row = row(part);
  }
  const byLink = new Map(parts.map((part) => [part.link, part]));
  // Examples of errors link to their samples if these are shown.
  for (const link of document.querySelectorAll("a.example")) {
    if (!byLink.has(link.hash.slice(1))) link.replaceWith(make("span", "dim", link.textContent));
    else link.addEventListener("click", () => setTimeout(() => byId("samples").scrollIntoView(), 0));
  }

  function make(name, className, text) {
    const element = document.createElement(name);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  }

  function scoreOf(part) {
    return make("span", `score ${part.state}`, part.value === null ? "inv" : String(Math.round(100 * part.value)));
  }

  function row(part) {
    const link = make("a", "row");
    link.href = `#${part.link}`;
    const head = make("span", "head");
    head.append(scoreOf(part), " ", make("b", "", part.sample), " ");
    const where = [part.mode];
    if (tasks > 1) where.push(part.task.replaceAll("_", " "));
    if (part.epoch) where.push(`epoch ${part.epoch}`);
    head.append(make("span", "dim", where.join(", ")));
    if (runs.length > 1) head.append(make("span", "dim of-run", `, ${runs[part.run].model}`));
    link.append(head, make("span", "query", part.query));
    if (part.facets.length) link.append(make("span", "facets", part.facets.join(" · ")));
    return link;
  }

  // Text of a part in lower case, computed at the first search.
  function words(part) {
    part.words ??= `${part.sample} ${byId(part.element).content.textContent}`.toLowerCase();
    return part.words;
  }

  function matches(part, text, without) {
    return selects.every((select) => !select.value || part.values[select.id] === select.value)
      && boxes.every((box) => box === without || !box.checked || part.facets.includes(box.value))
      && (!text || words(part).includes(text));
  }

  function filter() {
    const text = search.value.trim().toLowerCase();
    shown = parts.filter((part) => matches(part, text));
    const byName = (a, b) => (a.sample < b.sample ? -1 : a.sample > b.sample ? 1 : a.run - b.run || a.epoch - b.epoch);
    const byScore = (a, b) => STATES[a.state] - STATES[b.state] || a.value - b.value || byName(a, b);
    shown.sort(order.value === "worst" ? byScore : byName);
    list.classList.toggle("one-run", byId("run").value !== "");
    list.replaceChildren(...shown.map((part) => part.row));
    if (!shown.length) list.append(make("p", "dim", "No sample matches these filters."));
    count.textContent = `${shown.length} of ${parts.length} shown`;
    for (const box of boxes) {
      const n = parts.filter((part) => part.facets.includes(box.value) && matches(part, text, box)).length;
      box.parentElement.querySelector(".n").textContent = n;
    }
  }

  function show(part) {
    if (current) current.row.removeAttribute("aria-current");
    current = part;
    part.row.setAttribute("aria-current", "true");
    detail.replaceChildren(byId(part.element).content.cloneNode(true));
    others(part, detail.querySelector(".others"));
    fill(detail);
    detail.scrollTop = 0;
  }

  // Each picture is stored once in the page.
  function fill(root) {
    for (const image of root.querySelectorAll("img[data-picture]")) {
      image.src = byId(image.dataset.picture).textContent;
    }
  }

  function others(part, place) {
    for (const [at, run] of runs.entries()) {
      if (at === part.run) continue;
      const same = parts.filter((each) => each.run === at && each.sample === part.sample);
      const other = same.find((each) => each.mode === part.mode && each.epoch === part.epoch)
        ?? same.find((each) => each.mode === "end-to-end");
      if (!other) continue;
      if (!place.children.length) place.append(make("h4", "", "Same sample in other runs"));
      const content = byId(other.element).content;
      const head = make("h5", "");
      const link = make("a", "", `${run.model}, ${other.mode}`);
      link.href = `#${other.link}`;
      head.append(scoreOf(other), " ", link);
      if (run.privileged) head.append(" ", make("span", "badge", "privileged"));
      const box = make("section", "other");
      box.append(head);
      const answer = content.querySelector(".answer");
      if (answer) box.append(answer.cloneNode(true));
      const figures = make("div", "figures");
      for (const figure of content.querySelectorAll('figure:not([data-role="file"])')) figures.append(figure.cloneNode(true));
      if (figures.children.length) box.append(figures);
      place.append(box);
    }
  }

  function go(part) {
    // Show the part first: the address changes later, and a held key need not wait for it.
    show(part);
    location.hash = part.link;
  }

  function move(by) {
    if (!shown.length) return;
    const at = shown.indexOf(current);
    const next = shown[at < 0 ? 0 : Math.min(Math.max(at + by, 0), shown.length - 1)];
    go(next);
    next.row.scrollIntoView({ block: "nearest" });
  }

  function followLink() {
    const part = byLink.get(location.hash.slice(1));
    if (!part) return false;
    if (part === current) return true;
    if (!shown.includes(part)) {
      for (const control of [...selects, search]) control.value = "";
      for (const box of boxes) box.checked = false;
      if (runs.length > 1) byId("run").value = String(part.run);
      filter();
    }
    show(part);
    part.row.scrollIntoView({ block: "nearest" });
    return true;
  }

  function fillSelect(select, entries) {
    for (const [value, label] of entries) {
      const option = make("option", "", label);
      option.value = value;
      select.append(option);
    }
    select.parentElement.hidden = entries.length < 2;
  }

  const distinct = (name) => [...new Set(parts.map((part) => part[name]))].sort();
  fillSelect(byId("run"), runs.map((run, at) => [String(at), run.model]));
  for (const name of ["mode", "task", "type"]) {
    fillSelect(byId(name), distinct(name).map((value) => [value, value.replaceAll("_", " ")]));
  }

  let waiting = 0;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(filter, 120);
  });
  for (const control of [...selects, ...boxes, order]) control.addEventListener("change", filter);
  byId("reset").addEventListener("click", () => {
    for (const control of [...selects, search]) control.value = "";
    for (const box of boxes) box.checked = false;
    filter();
  });
  detail.addEventListener("click", (event) => {
    const button = event.target.closest("button.zoom");
    if (button) button.closest("figure").classList.toggle("large");
  });
  list.addEventListener("click", (event) => {
    const link = event.target.closest("a.row");
    const part = link && byLink.get(link.hash.slice(1));
    if (!part) return;
    show(part);
    if (matchMedia("(max-width: 800px)").matches) setTimeout(() => detail.scrollIntoView(), 0);
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input[type=search], select, textarea");
    if (event.key === "Escape" && typing) event.target.blur();
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "j") move(1);
    else if (event.key === "k") move(-1);
    else if (event.key === "/") {
      event.preventDefault();
      search.focus();
    }
  });
  addEventListener("hashchange", followLink);

  byId("browser").hidden = false;
  const first = runs.findIndex((run) => !run.privileged);
  if (runs.length > 1 && first >= 0) byId("run").value = String(first);
  filter();
  if (followLink()) byId("samples").scrollIntoView();
  else if (shown.length) show(shown[0]);
})();
