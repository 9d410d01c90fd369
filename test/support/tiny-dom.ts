// As much of a document as the dashboard's page writes into, and what it looks like as HTML.
import type { Dom, DomNode } from '../../clients/dashboard/page/element.js';

class Text {
  readonly nodeName = '#text';
  readonly childNodes: DomNode[] = [];
  textContent: string;

  constructor(text: string) {
    this.textContent = text;
  }
  appendChild(): void {}
  replaceChild(): void {}
  removeChild(): void {}
}

/** An element; `made` counts those that were ever made. */
export class TinyElement {
  static made = 0;
  readonly childNodes: DomNode[] = [];
  readonly #attributes = new Map<string, string>();
  readonly nodeName: string;

  constructor(tag: string) {
    TinyElement.made++;
    this.nodeName = tag;
  }
  get textContent(): string {
    return this.childNodes.map((node) => node.textContent ?? '').join('');
  }
  set textContent(text: string) {
    this.childNodes.splice(0, Number.POSITIVE_INFINITY, new Text(text));
  }
  appendChild(child: DomNode): void {
    this.childNodes.push(child);
  }
  replaceChild(child: DomNode, old: DomNode): void {
    this.childNodes.splice(this.childNodes.indexOf(old), 1, child);
  }
  removeChild(child: DomNode): void {
    this.childNodes.splice(this.childNodes.indexOf(child), 1);
  }
  setAttribute(name: string, value: string): void {
    this.#attributes.set(name, value);
  }
  removeAttribute(name: string): void {
    this.#attributes.delete(name);
  }
  getAttribute(name: string): string | null {
    return this.#attributes.get(name) ?? null;
  }
  getAttributeNames(): string[] {
    return [...this.#attributes.keys()];
  }
}

export const tinyDom: Dom = {
  createElementNS: (_, tag) => new TinyElement(tag),
  createTextNode: (text) => new Text(text),
};

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');

/** As HTML. */
export function htmlOf(node: DomNode): string {
  if (!(node instanceof TinyElement)) return escaped(node.textContent ?? '');
  const attributes = node
    .getAttributeNames()
    .map((name) => ` ${name}="${escaped(node.getAttribute(name) ?? '')}"`);
  return `<${node.nodeName}${attributes.join('')}>${node.childNodes.map(htmlOf).join('')}</${node.nodeName}>`;
}
