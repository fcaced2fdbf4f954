// Pictures of a sample: layers (boxes, overlays of tools), zoom and pan, a slider for two dates, a large window.

const aspect = (file) => file.shown[0] / file.shown[1];
const alike = (a, b) => Math.abs(aspect(a) / aspect(b) - 1) < 0.02;

// A picture with its layers. `files` are the sample's pictures, `layers` pictures that tools made of them.
function pictureStage({ files, layers, shapes, start = 0, border = null, large = false }) {
  let base = start,
    layer = null,
    split = border,
    view = { x: 0, y: 0, scale: 1 };
  const moved = el("div.moved");
  const frame = el(
    "div.frame",
    { tabindex: "0", role: "group", "aria-label": "Picture; + and - zoom, arrows move, 0 fits" },
    moved,
  );
  const tools = el("div.tools");
  const strip = files.length > 1 && el("div.strip", { role: "group", "aria-label": "Files" });
  const caption = el("p.caption.dim");
  const box = el(`figure.stage${large ? ".large" : ""}`, {}, strip, frame, tools, caption);
  const place = () => {
    moved.style.transform = `translate(${view.x}px, ${view.y}px) scale(${view.scale})`;
  };
  const zoom = (by, x = frame.clientWidth / 2, y = frame.clientHeight / 2) => {
    const scale = Math.min(40, Math.max(1, view.scale * by)),
      grown = scale / view.scale;
    view = scale === 1 ? { x: 0, y: 0, scale } : { scale, x: x - (x - view.x) * grown, y: y - (y - view.y) * grown };
    place();
  };
  const fit = () => {
    view = { x: 0, y: 0, scale: 1 };
    place();
  };

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
      divider.addEventListener("pointerdown", (event) => {
        event.stopPropagation();
        divider.setPointerCapture(event.pointerId);
      });
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
    const present = Object.keys(ORIGINS).filter((origin) =>
      (shapes.get(file.name) ?? []).some((shape) => shape.origin === origin),
    );
    tools.replaceChildren(
      ...present.map((origin) =>
        el(
          `button.toggle.${origin}`,
          {
            type: "button",
            "aria-pressed": String(!hiddenOrigins.has(origin)),
            onclick: () => {
              toggleOrigin(origin);
              draw();
            },
          },
          ORIGINS[origin],
        ),
      ),
      ...fitting.map((each) =>
        el(
          "button.toggle.layer",
          {
            type: "button",
            "aria-pressed": String(each === layer),
            onclick: () => {
              layer = each === layer ? null : each;
              draw();
            },
          },
          `${each.from} ${each.kind}`,
        ),
      ),
      ...(partner
        ? [
            el(
              "button.toggle",
              {
                type: "button",
                "aria-pressed": String(split !== null),
                onclick: () => {
                  split = split === null ? 50 : null;
                  draw();
                },
              },
              "before / after",
            ),
          ]
        : []),
      ...(split !== null
        ? [
            el("input.slider", {
              type: "range",
              min: "0",
              max: "100",
              value: String(split),
              "aria-label": `Border between ${file.name} and ${partner.name}`,
              oninput: (event) => moveBorder(Number(event.target.value)),
            }),
          ]
        : []),
      el(
        "span.zooms",
        {},
        el("button.quiet", { type: "button", "aria-label": "Smaller", onclick: () => zoom(1 / 1.5) }, "−"),
        el("button.quiet", { type: "button", "aria-label": "Larger", onclick: () => zoom(1.5) }, "+"),
        el("button.quiet", { type: "button", onclick: fit }, "Fit"),
        large
          ? el("button.quiet", { type: "button", onclick: () => byId("viewer").close() }, "Close")
          : el(
              "button.quiet.enlarge",
              {
                type: "button",
                title: "Large window (z)",
                onclick: () => enlarge({ files, layers, shapes, start: base, border: split }),
              },
              "⤢ Large",
            ),
      ),
    );
    if (strip)
      strip.replaceChildren(
        ...files.map((each, at) => {
          const image = el("img", { alt: "", width: "56", height: "42" });
          showPicture(image, each.picture);
          return el(
            "button.thumb",
            {
              type: "button",
              "aria-pressed": String(at === base),
              title: each.text,
              onclick: () => {
                base = at;
                fit();
                draw();
              },
            },
            image,
            el("span", {}, each.name),
          );
        }),
      );
    caption.replaceChildren(
      el("b", {}, file.name),
      ` ${file.text}${file.how ? `; shown ${file.how}` : ""}${layer ? `; over it ${layer.name}${layer.how ? `, ${layer.how}` : ""}` : ""}`,
    );
  }

  frame.addEventListener(
    "wheel",
    (event) => {
      if (!large && !event.ctrlKey && !event.metaKey && view.scale === 1) return; // the page scrolls
      event.preventDefault();
      const { left, top } = frame.getBoundingClientRect();
      zoom(Math.exp(-event.deltaY / 400), event.clientX - left, event.clientY - top);
    },
    { passive: false },
  );
  frame.addEventListener("dblclick", (event) => {
    const { left, top } = frame.getBoundingClientRect();
    zoom(view.scale > 1 ? 1 / 100 : 3, event.clientX - left, event.clientY - top);
  });
  frame.addEventListener("pointerdown", (event) => {
    if (view.scale > 1) {
      frame.setPointerCapture(event.pointerId);
      frame.classList.add("moving");
    }
  });
  frame.addEventListener("pointermove", (event) => {
    if (frame.classList.contains("moving")) {
      view = { ...view, x: view.x + event.movementX, y: view.y + event.movementY };
      place();
    }
  });
  for (const end of ["pointerup", "pointercancel"]) frame.addEventListener(end, () => frame.classList.remove("moving"));
  frame.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[event.key];
    const act =
      { "+": () => zoom(1.5), "=": () => zoom(1.5), "-": () => zoom(1 / 1.5), 0: fit }[event.key] ??
      (by &&
        view.scale > 1 &&
        (() => {
          view = { ...view, x: view.x + by[0], y: view.y + by[1] };
          place();
        }));
    if (act) {
      act();
      event.preventDefault();
      event.stopPropagation();
    }
  });
  box.redraw = draw;
  box.light = (step) => {
    const drawing = moved.querySelector("svg.shapes");
    if (!drawing) return;
    const own = [...drawing.children].filter(
      (shape) => shape.dataset.step === String(step) && !shape.classList.contains("truth"),
    );
    drawing.classList.toggle("picked", own.length > 0);
    for (const shape of drawing.children) shape.classList.toggle("lit", own.includes(shape));
  };
  draw();
  return box;
}

function enlarge(options) {
  const viewer = byId("viewer");
  viewer.replaceChildren(pictureStage({ ...options, large: true }));
  viewer.showModal();
}
