// Unfinished work of the editor: its state, undo and redo, and storage on the server as one types.

import { ask, away, awayText, calm, trouble } from "./saving.js";
import { dropWork, keepWork, keptWork } from "./store.js";

const WAIT_MS = 400; // time without a key after which the state is sent
const AGAIN_MS = 2000;
const MERGE_MS = 1500; // letters typed within this time are one step of undo
const MOST_STEPS_BACK = 60;

let work = null; // key, reviewer, of, edited, state, past, future
let timer = null;
let sending = false;
let lastMerge = { name: "", at: 0 };
let showKept = () => {};

export const current = () => work;
export const onKept = (act) => { showKept = act; };

const post = (path, body) => ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
export const copy = (value) => structuredClone(value);

// Begin with the later of what this browser and the server kept, or else with the sample, or an empty question.
export function begin(key, reviewer, found, empty) {
  const here = keptWork(reviewer, key);
  const there = found.work;
  const kept = here && (!there || here.edited >= there.edited) ? here : there;
  work = {
    key, reviewer, of: kept?.of ?? found.of, edited: kept?.edited ?? 0, state: copy(kept?.state ?? found.written ?? empty),
    past: here?.edited === kept?.edited ? here?.past ?? [] : [], future: here?.edited === kept?.edited ? here?.future ?? [] : [],
  };
  work.began = JSON.stringify(found.written ?? empty);
  lastMerge = { name: "", at: 0 };
  if (here && kept === here && here.edited !== there?.edited) send();
  return Boolean(kept);
}

export function end() {
  if (timer) send();
  work = null;
}

// Change the state. `merge`: name of a field whose letters are one step of undo.
export function change(act, merge = "") {
  const now = Date.now();
  const isSame = merge && merge === lastMerge.name && now - lastMerge.at < MERGE_MS;
  if (!isSame) {
    work.past.push(JSON.stringify(work.state));
    if (work.past.length > MOST_STEPS_BACK) work.past.shift();
  }
  lastMerge = { name: merge, at: now };
  work.future = [];
  act(work.state);
  keep();
}

export const canUndo = () => Boolean(work?.past.length);
export const canRedo = () => Boolean(work?.future.length);

export function undo() { move(work.past, work.future); }
export function redo() { move(work.future, work.past); }

function move(from, to) {
  if (!from.length) return;
  to.push(JSON.stringify(work.state));
  work.state = JSON.parse(from.pop());
  lastMerge = { name: "", at: 0 };
  keep();
}

function keep() {
  work.edited = Math.max(Date.now(), work.edited + 1);
  keepWork(work.reviewer, work.key, { edited: work.edited, of: work.of, state: work.state, past: work.past, future: work.future });
  showKept("keeping…");
  clearTimeout(timer);
  timer = setTimeout(send, WAIT_MS);
}

// Take the present content of the sample as the one that the work began with.
export function rebase(of) {
  work.of = of;
  keep();
}

async function send() {
  clearTimeout(timer);
  timer = null;
  if (!work || sending) { if (work) timer = setTimeout(send, WAIT_MS); return; }
  const { key, reviewer, edited, of, state } = work;
  sending = true;
  try {
    await post("editor/work", { key, reviewer, edited, of, state });
    calm("work");
    if (work?.key === key && work.edited === edited) showKept("kept on the server");
  } catch (error) {
    showKept("kept in this browser only");
    trouble(`your work is kept in this browser: ${away(error) ? awayText(error) : error.message}. Trying again…`, "work");
    if (away(error) && work?.key === key) timer = setTimeout(send, AGAIN_MS);
  } finally {
    sending = false;
  }
}

// Forget the work here and on the server.
export async function discard() {
  const { key, reviewer, of } = work;
  const edited = Math.max(Date.now(), work.edited + 1);
  clearTimeout(timer);
  timer = null;
  await post("editor/work", { key, reviewer, edited, of, state: null });
  dropWork(reviewer, key);
  work = null;
}

export async function run() {
  const reply = await ask("editor/run", runOptions({ key: work.key, written: work.state }));
  return reply.json();
}

// Save what the page holds. With a warning that is not in `seen`, nothing is saved yet.
export async function save(id, seen) {
  clearTimeout(timer);
  timer = null;
  const { key, reviewer, of, state } = work;
  const reply = await ask("editor/save", runOptions({ id, key, of, by: reviewer, written: state, seen }));
  const answer = await reply.json();
  if (answer.saved) {
    dropWork(reviewer, key);
    work = null;
  }
  return answer;
}

const LONGEST_RUN_MS = 600000; // a trace may have several slow calls
const runOptions = (body) => ({ method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal: AbortSignal.timeout(LONGEST_RUN_MS) });
