// Pictures of the editor: boxes and points are drawn on them with the mouse, a pen or a finger.

import { make } from "./elements.js";

const SVG = "http://www.w3.org/2000/svg";
const LEAST_BOX_PX = 2; // a smaller box is a click, not a drawing

// Return the pictures of a question, with the boxes of its calls on them. `drawing`: {kind, file, done} or null.
export function picturesView(files, shapes, drawing) {
  return make("div", { className: "files" }, ...files.map((file) => figure(file, shapes.filter((shape) => shape.file === file.as), drawing)));
}

function figure(file, shapes, drawing) {
  const caption = make("figcaption", {}, make("b", { textContent: file.as }), ` ${file.kind}${file.width ? ` · ${file.width} × ${file.height} px` : ""}`);
  if (!file.shown) return make("figure", {}, make("p", { className: "absent", textContent: `${file.as}: not shown as a picture` }), caption);
  const image = make("img", { src: file.src, alt: file.as, draggable: false });
  const stage = make("div", { className: "drawable", dataset: { name: file.as } }, image);
  if (file.width) {
    image.width = file.width;
    image.height = file.height;
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", `0 0 ${file.width} ${file.height}`);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("class", "shapes");
    for (const shape of shapes) svg.append(drawn(shape.numbers, shape.label));
    stage.append(svg);
    if (drawing && (!drawing.file || drawing.file === file.as)) listen(stage, svg, file, drawing);
  }
  return make("figure", { dataset: { name: file.as } }, stage, caption);
}

function drawn(numbers, label) {
  const isBox = numbers.length === 4;
  const shape = document.createElementNS(SVG, isBox ? "rect" : "path");
  shape.setAttribute("class", "argument");
  place(shape, numbers);
  const title = document.createElementNS(SVG, "title");
  title.textContent = label;
  shape.append(title);
  return shape;
}

function place(shape, numbers) {
  if (numbers.length === 2) { shape.setAttribute("d", `M${numbers[0]} ${numbers[1]}h0`); return; }
  const [x0, y0, x1, y1] = numbers;
  for (const [name, value] of Object.entries({ x: x0, y: y0, width: x1 - x0, height: y1 - y0 })) shape.setAttribute(name, value);
}

function listen(stage, svg, file, drawing) {
  stage.classList.add("drawing");
  let from = null;
  let shape = null;
  const pixel = (event) => {
    const box = stage.getBoundingClientRect();
    const within = (share, size) => Math.round(Math.min(1, Math.max(0, share)) * size);
    return [within((event.clientX - box.left) / box.width, file.width), within((event.clientY - box.top) / box.height, file.height)];
  };
  const boxTo = ([x, y]) => [Math.min(from[0], x), Math.min(from[1], y), Math.max(from[0], x), Math.max(from[1], y)];
  stage.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    stage.setPointerCapture(event.pointerId);
    from = pixel(event);
    if (drawing.kind === "point") return;
    shape = drawn([...from, ...from], "new");
    svg.append(shape);
  });
  stage.addEventListener("pointermove", (event) => { if (shape) place(shape, boxTo(pixel(event))); });
  stage.addEventListener("pointerup", (event) => {
    if (!from) return;
    const to = pixel(event);
    if (drawing.kind === "point") { drawing.done(file.as, to); return; }
    const box = boxTo(to);
    if (box[2] - box[0] >= LEAST_BOX_PX && box[3] - box[1] >= LEAST_BOX_PX) drawing.done(file.as, box);
    else { shape?.remove(); shape = null; from = null; }
  });
  stage.addEventListener("pointercancel", () => { shape?.remove(); shape = null; from = null; });
}

// Return the pictures of the folder to choose from, and act on a click.
export function chooser(files, chosen, act) {
  const grid = make("div", { className: "chooser" });
  for (const file of files) {
    const isChosen = chosen.some((each) => each.sample === file.sample && each.name === file.name);
    const tile = make("button", { type: "button", className: "tile", "aria-pressed": String(isChosen), title: file.sample ? `${file.name} of ${file.sample}` : file.name });
    if (file.shown) tile.append(make("img", { src: file.src, alt: "", loading: "lazy" }));
    tile.append(make("span", { textContent: file.sample ? `${file.name} · ${file.sample}` : `${file.name} · in no sample` }));
    tile.addEventListener("click", () => act(file, isChosen));
    grid.append(tile);
  }
  return grid;
}
