// Local storage: unsaved input by sample (drafts) and decisions that the server has not stored yet (the outbox).

const place = document.body.dataset.place;
const memory = new Map(); // fallback if local storage is disabled, as in some private windows
export let keeps = true;

function read(key, otherwise) {
  try {
    const text = localStorage.getItem(key) ?? memory.get(key);
    return text === null || text === undefined ? otherwise : JSON.parse(text);
  } catch {
    return memory.has(key) ? JSON.parse(memory.get(key)) : otherwise;
  }
}

function write(key, value) {
  const text = JSON.stringify(value);
  try {
    localStorage.setItem(key, text);
    memory.delete(key);
    keeps = true;
  } catch {
    memory.set(key, text);
    keeps = false;
  }
}

function remove(key) {
  memory.delete(key);
  try { localStorage.removeItem(key); } catch { /* local storage is disabled */ }
}

const base = `agrotools-review ${place}`;
export const setting = (name, otherwise = null) => read(`${base} setting ${name}`, otherwise);
export const keepSetting = (name, value) => write(`${base} setting ${name}`, value);

const draftKey = (reviewer, sample) => `${base} draft ${reviewer} ${sample}`;
export const draft = (reviewer, sample) => read(draftKey(reviewer, sample), null);
export const keepDraft = (reviewer, sample, value) => write(draftKey(reviewer, sample), value);
export const dropDraft = (reviewer, sample) => remove(draftKey(reviewer, sample));

// Every decision has its own entry, so that two tabs cannot overwrite each other's.
const outboxPrefix = `${base} outbox `;
export function outbox() {
  const keys = new Set([...memory.keys()].filter((key) => key.startsWith(outboxPrefix)));
  try {
    for (let at = 0; at < localStorage.length; at += 1) {
      const key = localStorage.key(at);
      if (key.startsWith(outboxPrefix)) keys.add(key);
    }
  } catch { /* local storage is disabled */ }
  return [...keys].map((key) => read(key, null)).filter(Boolean).sort((a, b) => a.order - b.order);
}
export const queue = (decision) => write(outboxPrefix + decision.id, { order: Date.now(), decision });
export const unqueue = (id) => remove(outboxPrefix + id);

export function uuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Unfinished work of the editor, until the server has it; the steps of undo are kept here only.
const workKey = (reviewer, key) => `${base} work ${reviewer} ${key}`;
export const keptWork = (reviewer, key) => read(workKey(reviewer, key), null);
export const keepWork = (reviewer, key, value) => write(workKey(reviewer, key), value);
export const dropWork = (reviewer, key) => remove(workKey(reviewer, key));
