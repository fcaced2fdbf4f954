// Storage of decisions: the outbox is sent repeatedly until the server has stored its content on disk.

import { keeps, outbox, unqueue } from "./store.js";

const line = document.getElementById("trouble");
const state = document.getElementById("saving");
const PATIENCE_MS = 20000;
const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 8000;

let flushing = false;
let wait = FIRST_WAIT_MS;
let stored = () => {};
let refused = () => {};

export const onStored = (act) => { stored = act; };
export const onRefused = (act) => { refused = act; };

// Refusal by the server, with its reason.
class Refused extends Error {
  constructor(status, message) { super(message); this.status = status; }
}

export async function ask(path, options = {}) {
  const reply = await fetch(path, { signal: AbortSignal.timeout(PATIENCE_MS), ...options });
  if (reply.ok) return reply;
  const text = await reply.text();
  let said = text;
  try { said = JSON.parse(text).error; } catch { /* plain text */ }
  throw new Refused(reply.status, said || reply.statusText);
}

// True if a retry may help: the server is unreachable, cannot write, or has another address.
export const away = (error) => !(error instanceof Refused) || error.status >= 500 || error.status === 403;

export function awayText(error, what = "store") {
  if (error instanceof Refused && error.status >= 500) return `the server could not ${what} it (${error.message})`;
  if (error instanceof Refused) return "the server was started again: open the address that it printed last in this browser";
  return "the server does not answer: start agrotools review again";
}

export function trouble(text, kind = "") {
  line.textContent = text;
  line.hidden = !text;
  line.dataset.kind = kind;
}

// Remove a message of one kind, if it is the one shown.
export function calm(kind) {
  if (line.dataset.kind === kind) trouble("");
}

export async function flush() {
  if (flushing) return;
  flushing = true;
  try {
    let sent = 0;
    for (let left = outbox(); left.length; left = outbox(), sent += 1) {
      state.textContent = "storing…";
      await send(left[0].decision);
    }
    wait = FIRST_WAIT_MS;
    if (sent) state.textContent = "stored";
    calm("away");
  } catch (error) {
    const count = outbox().length;
    state.textContent = `${count} not stored`;
    const what = count > 1 ? `${count} decisions are` : "1 decision is";
    trouble(`${what} not stored yet and kept in this browser${keeps ? "" : " until this tab closes"}: ${awayText(error)}. Trying again…`, "away");
    setTimeout(flush, wait);
    wait = Math.min(LONGEST_WAIT_MS, wait * 1.6);
  } finally {
    flushing = false;
  }
}

const post = (made) => ask("decisions", {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(made),
});

async function send(made) {
  let reply;
  try {
    reply = await post(made);
  } catch (error) {
    if (away(error)) throw error;
    unqueue(made.id);
    refused(made);
    trouble(`${made.sample} was not stored: ${error.message}`);
    return;
  }
  const { row } = await reply.json();
  unqueue(made.id);
  stored(made, row);
}
