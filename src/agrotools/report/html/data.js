// What the file holds: the head, which is read at once, and parts that are decoded when a view asks for them.
// On a local server the parts are fetched instead.

let head, runs;

function readHead(text) {
  head = JSON.parse(text);
  runs = head.runs;
}

readHead(byId("head").textContent);

const loaded = new Promise((done) => {
  if (document.readyState !== "loading") done();
  else document.addEventListener("DOMContentLoaded", done);
});

async function inflate(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

// Content that the page stores under a name: it may stand further down than the browser has read so far. A local server
// is asked for it.
async function stored(name) {
  if (head.live && name !== "index") return (await fetch(`${head.live.part}&name=${name}`)).text();
  if (!byId(name)) await loaded;
  return byId(name)?.textContent;
}

const blocks = new Map();
const KEPT_BLOCKS = 24;

// Lines of a block of details. The last blocks stay decoded.
function blockLines(number) {
  if (!blocks.has(number)) {
    const lines = stored(`b${number}`)
      .then(inflate)
      .then((text) => text.split("\n"));
    blocks.set(number, lines);
    if (blocks.size > KEPT_BLOCKS) blocks.delete(blocks.keys().next().value);
  }
  return blocks.get(number);
}

async function detailOf(record) {
  return record.block === null ? null : JSON.parse((await blockLines(record.block))[record.line]);
}

const textOf = async (text) => (typeof text === "number" ? inflate(await stored(`t${text}`)) : text);

async function showPicture(image, name) {
  image.decoding = "async";
  image.src = await stored(name);
}
