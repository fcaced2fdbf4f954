// Files of a sample: pictures in one stage, tables, and the reason for each that is not shown.

const FEW_ABSENT = 1; // more files without a picture would push the steps down
let stage = null;

function fileParts(data) {
  const pictures = data.files.filter((file) => file.picture);
  const layers = data.steps.flatMap((step) =>
    (step.files ?? []).filter((file) => file.picture).map((file) => ({ ...file, from: `${step.n}` })),
  );
  const others = data.files.filter((file) => !file.picture);
  const absent = others.filter((file) => !file.rows);
  stage = pictures.length
    ? pictureStage({
        files: pictures,
        layers: layers.filter((each) => each.kind === "overlay" || each.kind === "mask"),
        shapes: shapesOf(data),
      })
    : null;
  return [
    stage,
    others.filter((file) => file.rows).map(fileView),
    absent.length > FEW_ABSENT
      ? fold(`${absent.length} files are not shown`, () => absent.map(fileView))
      : absent.map(fileView),
  ];
}

function fileView(file) {
  const title = el("figcaption", {}, el("b", {}, file.name), ` ${file.text ?? ""}`, file.how && ` (${file.how})`);
  if (file.rows) return el("figure.table", {}, title, tableView(file.rows, file.n_rows));
  if (!file.picture)
    return el("figure.absent", {}, el("figcaption", {}, el("b", {}, file.name), ` ${file.text ?? ""}: ${file.absent}`));
  const image = el("img", { alt: `${file.name}, ${file.text}`, width: file.shown[0], height: file.shown[1] });
  showPicture(image, file.picture);
  return el(
    "figure.picture",
    {},
    el(
      "button.zoom",
      {
        type: "button",
        "aria-label": `enlarge ${file.name}`,
        onclick: () => enlarge({ files: [file], layers: [], shapes: new Map() }),
      },
      image,
    ),
    title,
  );
}
