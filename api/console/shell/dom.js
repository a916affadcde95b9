// Elements. All values become text, never markup.

function fill(made, children) {
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ''));
  return made;
}

// Makes an element with its properties or attributes and its children. Leaves out null children.
export function el(tag, properties, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined) continue;
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  return fill(made, children);
}

export function svg(tag, attributes, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes ?? {})) made.setAttribute(name, value);
  return fill(made, children);
}

// Replaces the children of `parent`. The focus stays at the same place if the new children have an
// element of the same kind there.
export function replace(parent, children) {
  const active = document.activeElement;
  const way = [];
  for (let at = active; at && at !== parent; at = at.parentElement) {
    if (!at.parentElement) { way.length = 0; break; }
    way.unshift([...at.parentElement.children].indexOf(at));
  }
  const had = parent.contains(active) && active !== parent;
  parent.replaceChildren();
  fill(parent, [children]);
  if (!had) return;
  const again = way.reduce((at, index) => at?.children[index], parent);
  if (again?.tagName === active.tagName) again.focus({ preventScroll: true });
}
