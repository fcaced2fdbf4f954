// Pictures of a sample: reasons for missing ones, boxes, masks, and a zoom window.

const viewer = document.getElementById("viewer");
const stage = viewer.querySelector(".stage");
const LEAST_PX = 420; // minimum width of a picture, if there is room
const TALLEST_VH = 54; // maximum height, in percent of the window
let moved = null; // zoomed picture and its position
let view = { x: 0, y: 0, scale: 1 };

export function prepare(article) {
  for (const image of article.querySelectorAll("button.picture > img:not(.mask)")) {
    image.addEventListener("error", () => explain(image), { once: true });
  }
  for (const image of article.querySelectorAll(".files img[width]:not(.mask)")) room(image);
  for (const caption of article.querySelectorAll("figcaption[data-about]")) tell(caption);
  for (const step of article.querySelectorAll(".step")) {
    step.addEventListener("mouseenter", () => light(article, step.dataset.step));
    step.addEventListener("mouseleave", () => light(article, null));
  }
}

// Reserve the space of a picture before it has loaded, to avoid jumps; small pictures are enlarged.
function room(image) {
  const [width, height] = [Number(image.getAttribute("width")), Number(image.getAttribute("height"))];
  image.closest("button").style.width = `min(100%, ${Math.max(width, LEAST_PX)}px, ${Math.round((TALLEST_VH * width) / height)}vh)`;
  image.style.aspectRatio = `${width} / ${height}`;
  image.classList.toggle("enlarged", width < LEAST_PX / 2);
}

// Resolve once every picture has loaded, failed or timed out.
export function loaded(article) {
  const images = [...article.querySelectorAll("figure img:not(.mask)")].filter((image) => !image.complete);
  const each = images.map((image) => new Promise((done) => { image.addEventListener("load", done); image.addEventListener("error", done); }));
  return Promise.race([Promise.all(each), new Promise((done) => { setTimeout(done, 3000); })]);
}

// Replace a picture that fails to load by the server's reason.
async function explain(image) {
  let reason = "it could not be loaded";
  try {
    const reply = await fetch(image.src);
    if (reply.ok) { image.src = image.src; return; }
    reason = (await reply.json()).error ?? reason;
  } catch { /* the page reports an unreachable server elsewhere */ }
  const said = Object.assign(document.createElement("p"), { className: "absent", textContent: `${image.alt}: ${reason}` });
  image.closest("button").replaceWith(said);
}

// Show how the values of a raster, a depth map or a mask were rendered.
async function tell(caption) {
  const reply = await fetch(caption.dataset.about).catch(() => null);
  if (!reply?.ok) return;
  const { how, colours } = await reply.json();
  const text = [how && `shown ${how}`, colours.join(", ")].filter(Boolean).join("; ");
  if (text) caption.append(document.createElement("br"), text);
}

function light(article, step) {
  for (const shapes of article.querySelectorAll("svg.shapes")) {
    const own = [...shapes.children].filter((shape) => shape.dataset.step === step);
    shapes.classList.toggle("picked", own.length > 0);
    for (const shape of shapes.children) shape.classList.toggle("lit", own.includes(shape));
  }
}

export function toggleShapes() {
  document.body.classList.toggle("no-shapes");
}

export function toggleMasks(article) {
  const masks = [...article.querySelectorAll("img.mask")];
  const hide = masks.some((mask) => !mask.hidden);
  for (const mask of masks) {
    if (!mask.src) {
      mask.addEventListener("error", () => mask.remove(), { once: true });
      mask.src = mask.dataset.src;
    }
    mask.hidden = hide;
  }
  return masks.length;
}

export function enlarge(button) {
  const image = new Image();
  image.alt = button.dataset.name;
  moved = document.createElement("div");
  moved.className = "moved";
  moved.append(image);
  const shapes = button.querySelector("svg.shapes");
  if (shapes) moved.append(shapes.cloneNode(true));
  stage.replaceChildren(moved);
  viewer.querySelector("output").textContent = `${button.dataset.name}: loading…`;
  const save = viewer.querySelector("a");
  save.hidden = !button.dataset.original;
  if (button.dataset.original) save.href = button.dataset.original;
  image.addEventListener("load", () => { viewer.querySelector("output").textContent = button.dataset.name; fit(); });
  image.addEventListener("error", () => { viewer.querySelector("output").textContent = "it could not be loaded"; });
  viewer.showModal();
  image.src = button.dataset.large;
}

function place() {
  moved.style.transform = `translate(${view.x}px, ${view.y}px) scale(${view.scale})`;
}

function fit() {
  const image = moved?.querySelector("img");
  if (!image?.naturalWidth) return;
  const scale = Math.min(stage.clientWidth / image.naturalWidth, stage.clientHeight / image.naturalHeight);
  view = { scale, x: (stage.clientWidth - image.naturalWidth * scale) / 2, y: (stage.clientHeight - image.naturalHeight * scale) / 2 };
  place();
}

function zoom(by, x = stage.clientWidth / 2, y = stage.clientHeight / 2) {
  const scale = Math.min(40, Math.max(0.02, view.scale * by));
  const grown = scale / view.scale;
  view = { scale, x: x - (x - view.x) * grown, y: y - (y - view.y) * grown };
  place();
}

stage.addEventListener("wheel", (event) => {
  event.preventDefault();
  const box = stage.getBoundingClientRect();
  zoom(Math.exp(-event.deltaY / 400), event.clientX - box.left, event.clientY - box.top);
}, { passive: false });
stage.addEventListener("pointerdown", (event) => {
  stage.setPointerCapture(event.pointerId);
  stage.classList.add("moving");
});
stage.addEventListener("pointermove", (event) => {
  if (!stage.classList.contains("moving")) return;
  view = { ...view, x: view.x + event.movementX, y: view.y + event.movementY };
  place();
});
for (const end of ["pointerup", "pointercancel"]) stage.addEventListener(end, () => stage.classList.remove("moving"));
const DO = { in: () => zoom(1.4), out: () => zoom(1 / 1.4), fit, close: () => viewer.close() };
viewer.addEventListener("click", (event) => DO[event.target.closest("[data-do]")?.dataset.do]?.());
viewer.addEventListener("keydown", (event) => {
  const act = { "+": DO.in, "=": DO.in, "-": DO.out, 0: DO.fit, z: DO.close, b: toggleShapes }[event.key];
  if (act && !event.ctrlKey && !event.metaKey) { act(); event.preventDefault(); event.stopPropagation(); }
});
viewer.addEventListener("close", () => { stage.replaceChildren(); moved = null; });
