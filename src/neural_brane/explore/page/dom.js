// Make elements. Texts become text nodes, so that an id or a label can never become markup.

export function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(made.style, value);
    else if (name === "data") Object.assign(made.dataset, value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

export function fill(parent, ...children) {
  parent.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
}

export const byId = (id) => document.getElementById(id);

// Show a name from the data: a mark replaces control characters, and right-to-left writing does not move other text.
export function name(text, className = "name") {
  const shown = String(text).replace(/[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, "\u241b");
  const short = shown.length > 300 ? `${shown.slice(0, 300)}…` : shown;
  return el("bdi", { class: className, title: shown.length > 16 ? shown.slice(0, 1000) : null }, short || "(empty)");
}

export const count = (number) => number.toLocaleString("en");

export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

// Call an action with the last arguments, when no call has come for `wait` milliseconds.
export function settle(action, wait) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...given), wait);
  };
}

export function download(file, type, text) {
  const link = el("a", { href: URL.createObjectURL(new Blob([text], { type })), download: file });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
