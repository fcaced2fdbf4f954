// Boxes and points of a sample, found in its question, calls, results and truth, and drawn over its pictures.

const BOX_NAMES = new Set(["box", "boxes", "bbox", "bboxes", "region", "regions"]);
const POINT_NAMES = new Set(["centre", "centres", "center", "centers", "point", "points", "xy"]);
const MOST_SHAPES = 400;
const ORIGINS = { question: "the question's boxes", call: "boxes in calls", found: "boxes found", truth: "truth" };
const hiddenOrigins = new Set();

const isNumbers = (value, n) =>
  Array.isArray(value) && value.length === n && value.every((each) => typeof each === "number");

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
  for (const match of text.matchAll(
    /[[(]\s*(\d+(?:\.\d+)?)\s*[,;]\s*(\d+(?:\.\d+)?)\s*[,;]\s*(\d+(?:\.\d+)?)\s*[,;]\s*(\d+(?:\.\d+)?)\s*[\])]/g,
  )) {
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
    for (const place of places)
      if (all.filter((each) => each.origin === origin && each.step === step).length < MOST_SHAPES)
        all.push({ ...place, origin, step });
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
  const draw = (shape, extra) =>
    shape.box
      ? svg("rect", {
          x: shape.box[0],
          y: shape.box[1],
          width: shape.box[2] - shape.box[0],
          height: shape.box[3] - shape.box[1],
          class: `${shape.origin} ${extra}`,
          "data-step": shape.step,
        })
      : svg("circle", {
          cx: shape.point[0],
          cy: shape.point[1],
          r,
          class: `${shape.origin} ${extra}`,
          "data-step": shape.step,
        });
  return svg(
    "svg",
    { class: "shapes", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    shapes.map((shape) => draw(shape, "halo")),
    shapes.map((shape) => draw(shape, "line")),
  );
}

function toggleOrigin(origin) {
  if (!hiddenOrigins.delete(origin)) hiddenOrigins.add(origin);
}
