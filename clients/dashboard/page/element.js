// @ts-check
// Views are descriptions: plain data, made without a document. This writes one into a document and, when the view changes,
// alters only what differs, so that focus, scrolling and open sections stay. All text comes out as text.

/**
 * @typedef {string | Element} Child
 * @typedef {{ tag: string, attributes: Record<string, string>, children: Child[] }} Element
 * @typedef {Child | number | undefined | false | null} Given
 */

/** @typedef {{ nodeName: string, childNodes: ArrayLike<DomNode>, textContent: string | null,
 *   appendChild(child: DomNode): unknown, replaceChild(child: DomNode, old: DomNode): unknown, removeChild(child: DomNode): unknown,
 *   setAttribute?(name: string, value: string): void, removeAttribute?(name: string): void,
 *   getAttributeNames?(): string[], getAttribute?(name: string): string | null, value?: string }} DomNode */

/** @typedef {{ createElementNS(space: string, tag: string): DomNode, createTextNode(text: string): DomNode }} Dom */

const HTML = 'http://www.w3.org/1999/xhtml';
const SVG = 'http://www.w3.org/2000/svg';
const SVG_TAGS = new Set(['svg', 'rect', 'line', 'path', 'title', 'g', 'text']);

/** What a view may set. Nothing here runs a script or loads anything. */
const ATTRIBUTES =
  /^(class|id|href|title|for|type|name|value|placeholder|scope|open|selected|disabled|tabindex|role|datetime|maxlength|colspan|data-[a-z-]+|aria-[a-z]+|x|y|x1|x2|y1|y2|d|width|height|viewBox|preserveAspectRatio)$/;

/**
 * @param {string} tag
 * @param {Record<string, string | number | boolean | undefined>} [attributes] undefined and false: not there
 * @param {...(Given | Given[])} children
 * @returns {Element}
 */
export function h(tag, attributes = {}, ...children) {
  /** @type {Record<string, string>} */
  const set = {};
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (!ATTRIBUTES.test(name)) throw new Error(`a view sets ${name}`);
    if (name === 'href' && !String(value).startsWith('#')) throw new Error('a view links to another page');
    set[name] = value === true ? '' : String(value);
  }
  return { tag, attributes: set, children: children.flat().flatMap(textOf) };
}

/** @param {Given} child @returns {Child[]} */
function textOf(child) {
  if (child === undefined || child === null || child === false || child === '') return [];
  return [typeof child === 'number' ? String(child) : child];
}

/**
 * Makes the children of `parent` what `children` say.
 * @param {Dom} dom @param {DomNode} parent @param {Child[]} children
 */
export function write(dom, parent, children) {
  children.forEach((child, i) => {
    const old = parent.childNodes[i];
    if (old === undefined) parent.appendChild(made(dom, child));
    else if (old.nodeName.toLowerCase() !== nameOf(child)) parent.replaceChild(made(dom, child), old);
    else alter(dom, old, child);
  });
  for (let last = parent.childNodes.length - 1; last >= children.length; last--) {
    parent.removeChild(/** @type {DomNode} */ (parent.childNodes[last]));
  }
}

/** @param {Child} child */
const nameOf = (child) => (typeof child === 'string' ? '#text' : child.tag.toLowerCase());

/** @param {Dom} dom @param {Child} child @returns {DomNode} */
function made(dom, child) {
  if (typeof child === 'string') return dom.createTextNode(child);
  const node = dom.createElementNS(SVG_TAGS.has(child.tag) ? SVG : HTML, child.tag);
  for (const [name, value] of Object.entries(child.attributes)) node.setAttribute?.(name, value);
  write(dom, node, child.children);
  return node;
}

/** @param {Dom} dom @param {DomNode} node @param {Child} child */
function alter(dom, node, child) {
  if (typeof child === 'string') {
    if (node.textContent !== child) node.textContent = child;
    return;
  }
  for (const name of node.getAttributeNames?.() ?? []) {
    // Whether a section is open is for the reader to say.
    if (!(name in child.attributes) && name !== 'open') node.removeAttribute?.(name);
  }
  for (const [name, value] of Object.entries(child.attributes)) {
    if (name !== 'open' && node.getAttribute?.(name) !== value) node.setAttribute?.(name, value);
  }
  write(dom, node, child.children);
}
