// Pictures of a sample: layers (boxes, overlays of tools), zoom and pan, a slider for two dates, a large window.

const BOX_NAMES = new Set(["box", "boxes", "bbox", "bboxes", "region", "regions"]);
const POINT_NAMES = new Set(["centre", "centres", "center", "centers", "point", "points", "xy"]);
const MOST_SHAPES = 400;
const ORIGINS = { question: "the question's boxes", call: "boxes in calls", found: "boxes found", truth: "truth" };
const hiddenOrigins = new Set();
const isNumbers = (value, n) => Array.isArray(value) && value.length === n && value.every((each) => typeof each === "number");

// Boxes and points in a value, recognised by the names of their fields, in pixels of the picture.
function* placesIn(value, name = "") {
  const word = name.replace(/_px$/, "");
  if (Array.isArray(value)) {
    const isBox = BOX_NAMES.has(word) || word.endsWith("_box");
    if (isBox && isNumbers(value, 4) && value[2] > value[0] && value[3] > value[1]) yield { box: value };
    else if (POINT_NAMES.has(word) && isNumbers(value, 2)) yield { point: value };
    else if (!isNumbers(value, value.length) || !value.length) for (const item of value) yield* placesIn(item, name);
  } else if (value && typeof value === "object") {
    const located = Object.keys(value).some((key) => BOX_NAMES.has(key.replace(/_px$/, "")));
    for (const [key, item] of Object.entries(value)) {
      if (located && POINT_NAMES.has(key.replace(/_px$/, ""))) continue; // the centre of a box that is drawn
      yield* placesIn(item, key);
    }
  }
}

function* boxesInWords(text) {
  for (const match of text.matchAll(/[[(]\s*(\d+(?:\.\d+)?)\s*[,;]\s*(\d+(?:\.\d+)?)\s*[,;]\s*(\d+(?:\.\d+)?)\s*[,;]\s*(\d+(?:\.\d+)?)\s*[\])]/g)) {
    const box = match.slice(1, 5).map(Number);
    if (box[2] > box[0] && box[3] > box[1]) yield { box };
  }
}

// All shapes by the name of the file they lie on.
function shapesOf(data) {
  const shapes = new Map();
  const sized = new Set(data.files.filter((file) => file.size).map((file) => file.name));
  const fileOf = (values) => Object.values(values ?? {}).find((value) => typeof value === "string" && sized.has(value));
  const add = (file, origin, places, step) => {
    if (!file) return;
    const all = shapes.get(file) ?? shapes.set(file, []).get(file);
    for (const place of places) if (all.filter((each) => each.origin === origin && each.step === step).length < MOST_SHAPES) all.push({ ...place, origin, step });
  };
  for (const file of sized) add(file, "question", boxesInWords(data.query));
  for (const [at, step] of data.plan.entries()) {
    const file = fileOf(step.arguments);
    add(file, "question", placesIn(step.arguments));
    add(file, "truth", placesIn(step.truth), at);
  }
  for (const step of data.steps) {
    const file = fileOf(step.call) ?? (step.match !== undefined ? fileOf(data.plan[step.match]?.arguments) : undefined);
    add(file, "call", placesIn(step.call), step.n);
    add(file, "found", placesIn(step.result), step.n);
  }
  return shapes;
}

// Every shape is drawn twice, dark below and coloured above, so that it is visible on soil and on foliage.
function shapesDrawing(shapes, [width, height]) {
  const r = Math.max(width, height) / 160;
  const draw = (shape, extra) => (shape.box
    ? svg("rect", { x: shape.box[0], y: shape.box[1], width: shape.box[2] - shape.box[0], height: shape.box[3] - shape.box[1], class: `${shape.origin} ${extra}`, "data-step": shape.step })
    : svg("circle", { cx: shape.point[0], cy: shape.point[1], r, class: `${shape.origin} ${extra}`, "data-step": shape.step }));
  return svg("svg", { class: "shapes", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    shapes.map((shape) => draw(shape, "halo")), shapes.map((shape) => draw(shape, "line")));
}

const aspect = (file) => file.shown[0] / file.shown[1];
const alike = (a, b) => Math.abs(aspect(a) / aspect(b) - 1) < 0.02;

// A picture with its layers. `files` are the sample's pictures, `layers` pictures that tools made of them.
function pictureStage({ files, layers, shapes, start = 0, border = null, large = false }) {
  let base = start, layer = null, split = border, view = { x: 0, y: 0, scale: 1 };
  const moved = el("div.moved");
  const frame = el("div.frame", { tabindex: "0", role: "group", "aria-label": "Picture; + and - zoom, arrows move, 0 fits" }, moved);
  const tools = el("div.tools");
  const strip = files.length > 1 && el("div.strip", { role: "group", "aria-label": "Files" });
  const caption = el("p.caption.dim");
  const box = el(`figure.stage${large ? ".large" : ""}`, {}, strip, frame, tools, caption);
  const place = () => { moved.style.transform = `translate(${view.x}px, ${view.y}px) scale(${view.scale})`; };
  const zoom = (by, x = frame.clientWidth / 2, y = frame.clientHeight / 2) => {
    const scale = Math.min(40, Math.max(1, view.scale * by)), grown = scale / view.scale;
    view = scale === 1 ? { x: 0, y: 0, scale } : { scale, x: x - (x - view.x) * grown, y: y - (y - view.y) * grown };
    place();
  };
  const fit = () => { view = { x: 0, y: 0, scale: 1 }; place(); };

  function moveBorder(to) {
    split = to;
    moved.querySelector(".after").style.clipPath = `inset(0 0 0 ${split}%)`;
    moved.querySelector(".divider").style.left = `${split}%`;
    tools.querySelector(".slider").value = String(split);
  }

  function picture(file, className) {
    const image = el(`img.${className}`, { alt: `${file.name}, ${file.text}`, draggable: "false" });
    showPicture(image, file.picture);
    return image;
  }

  function draw() {
    const file = files[base];
    const fitting = layers.filter((each) => alike(each, file));
    if (!fitting.includes(layer)) layer = null;
    const partner = files.find((each, at) => at !== base && each.kind === file.kind && alike(each, file));
    if (!partner) split = null;
    frame.style.aspectRatio = `${file.shown[0]} / ${file.shown[1]}`;
    frame.style.setProperty("--aspect", aspect(file));
    const own = (shapes.get(file.name) ?? []).filter((shape) => !hiddenOrigins.has(shape.origin));
    const parts = [picture(file, "base")];
    if (split !== null) {
      const second = picture(partner, "after");
      second.style.clipPath = `inset(0 0 0 ${split}%)`;
      const divider = el("span.divider", { style: { left: `${split}%` } });
      divider.addEventListener("pointerdown", (event) => { event.stopPropagation(); divider.setPointerCapture(event.pointerId); });
      divider.addEventListener("pointermove", (event) => {
        if (!divider.hasPointerCapture(event.pointerId)) return;
        const { left, width } = moved.getBoundingClientRect();
        moveBorder(Math.min(100, Math.max(0, (100 * (event.clientX - left)) / width)));
      });
      parts.push(second, divider);
    }
    if (layer) parts.push(picture(layer, layer.kind === "mask" ? "mask" : "overlay"));
    if (own.length && file.size) parts.push(shapesDrawing(own, file.size));
    moved.replaceChildren(...parts);
    const present = Object.keys(ORIGINS).filter((origin) => (shapes.get(file.name) ?? []).some((shape) => shape.origin === origin));
    tools.replaceChildren(
      ...present.map((origin) => el(`button.toggle.${origin}`, { type: "button", "aria-pressed": String(!hiddenOrigins.has(origin)),
        onclick: () => { toggleOrigin(origin); draw(); } }, ORIGINS[origin])),
      ...fitting.map((each) => el("button.toggle.layer", { type: "button", "aria-pressed": String(each === layer), onclick: () => { layer = each === layer ? null : each; draw(); } }, `${each.from} ${each.kind}`)),
      ...(partner ? [el("button.toggle", { type: "button", "aria-pressed": String(split !== null), onclick: () => { split = split === null ? 50 : null; draw(); } }, "before / after")] : []),
      ...(split !== null ? [el("input.slider", { type: "range", min: "0", max: "100", value: String(split), "aria-label": `Border between ${file.name} and ${partner.name}`,
        oninput: (event) => moveBorder(Number(event.target.value)) })] : []),
      el("span.zooms", {}, el("button.quiet", { type: "button", "aria-label": "Smaller", onclick: () => zoom(1 / 1.5) }, "−"), el("button.quiet", { type: "button", "aria-label": "Larger", onclick: () => zoom(1.5) }, "+"),
        el("button.quiet", { type: "button", onclick: fit }, "Fit"),
        large ? el("button.quiet", { type: "button", onclick: () => byId("viewer").close() }, "Close") : el("button.quiet.enlarge", { type: "button", title: "Large window (z)", onclick: () => enlarge({ files, layers, shapes, start: base, border: split }) }, "⤢ Large")));
    if (strip) strip.replaceChildren(...files.map((each, at) => {
      const image = el("img", { alt: "", width: "56", height: "42" });
      showPicture(image, each.picture);
      return el("button.thumb", { type: "button", "aria-pressed": String(at === base), title: each.text, onclick: () => { base = at; fit(); draw(); } }, image, el("span", {}, each.name));
    }));
    caption.replaceChildren(el("b", {}, file.name), ` ${file.text}${file.how ? `; shown ${file.how}` : ""}${layer ? `; over it ${layer.name}${layer.how ? `, ${layer.how}` : ""}` : ""}`);
  }

  frame.addEventListener("wheel", (event) => {
    if (!large && !event.ctrlKey && !event.metaKey && view.scale === 1) return; // the page scrolls
    event.preventDefault();
    const { left, top } = frame.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 400), event.clientX - left, event.clientY - top);
  }, { passive: false });
  frame.addEventListener("dblclick", (event) => { const { left, top } = frame.getBoundingClientRect(); zoom(view.scale > 1 ? 1 / 100 : 3, event.clientX - left, event.clientY - top); });
  frame.addEventListener("pointerdown", (event) => { if (view.scale > 1) { frame.setPointerCapture(event.pointerId); frame.classList.add("moving"); } });
  frame.addEventListener("pointermove", (event) => { if (frame.classList.contains("moving")) { view = { ...view, x: view.x + event.movementX, y: view.y + event.movementY }; place(); } });
  for (const end of ["pointerup", "pointercancel"]) frame.addEventListener(end, () => frame.classList.remove("moving"));
  frame.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[event.key];
    const act = { "+": () => zoom(1.5), "=": () => zoom(1.5), "-": () => zoom(1 / 1.5), 0: fit }[event.key] ?? (by && view.scale > 1 && (() => { view = { ...view, x: view.x + by[0], y: view.y + by[1] }; place(); }));
    if (act) { act(); event.preventDefault(); event.stopPropagation(); }
  });
  box.redraw = draw;
  box.light = (step) => {
    const drawing = moved.querySelector("svg.shapes");
    if (!drawing) return;
    const own = [...drawing.children].filter((shape) => shape.dataset.step === String(step) && !shape.classList.contains("truth"));
    drawing.classList.toggle("picked", own.length > 0);
    for (const shape of drawing.children) shape.classList.toggle("lit", own.includes(shape));
  };
  draw();
  return box;
}

function toggleOrigin(origin) {
  if (!hiddenOrigins.delete(origin)) hiddenOrigins.add(origin);
}

function enlarge(options) {
  const viewer = byId("viewer");
  viewer.replaceChildren(pictureStage({ ...options, large: true }));
  viewer.showModal();
}
