// Elements made in code; texts are set as text, so that markup in them is never run.

export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "dataset") Object.assign(element.dataset, value);
    else if (name.startsWith("aria-")) element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const button = (textContent, act, properties = {}) => make("button", { type: "button", textContent, onclick: act, ...properties });

export function options(select, items, chosen) {
  for (const [value, text] of items) select.append(new Option(text, value, false, value === chosen));
  if (!items.some(([value]) => value === chosen) && chosen) select.append(new Option(chosen, chosen, false, true));
  return select;
}
