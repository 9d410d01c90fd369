import { expect } from 'chai';
import { htmlOf, TinyElement, tinyDom } from '../../../test/support/tiny-dom.ts';
import { h, write } from './element.js';

const HOSTILE = '<script>alert(1)</script><img src=x onerror=alert(1)>';

describe('dashboard elements', () => {
  const written = (...children: ReturnType<typeof h>[]): TinyElement => {
    const root = new TinyElement('main');
    write(tinyDom, root, children);
    return root;
  };

  it('write all text as text', () => {
    const root = written(h('p', { title: HOSTILE }, HOSTILE));
    expect(htmlOf(root)).to.not.match(/<script|<img/);
    expect(root.childNodes).to.have.length(1);
    expect(root.textContent).to.equal(HOSTILE);
  });

  it('set nothing that runs or loads, and link to nowhere else', () => {
    for (const name of ['onclick', 'onerror', 'style', 'src', 'srcdoc', 'action', 'formaction']) {
      expect(() => h('p', { [name]: 'x' }), name).to.throw(`a view sets ${name}`);
    }
    for (const href of ['javascript:alert(1)', 'https://elsewhere', '/settings.json', '']) {
      expect(() => h('a', { href }), href).to.throw('another page');
    }
  });

  it('alter what differs, and leave the rest', () => {
    const view = (rows: string[], open: boolean) => [
      h('details', { open }, h('summary', {}, 'All')),
      h('ul', { class: rows.length > 1 && 'many' }, ...rows.map((row) => h('li', {}, row))),
    ];
    const root = written(...view(['a', 'b', 'c'], false));
    const [details, list] = [...root.childNodes] as [TinyElement, TinyElement];
    details.setAttribute('open', '');
    const { made } = TinyElement;
    write(tinyDom, root, view(['a', 'x'], false));
    expect(TinyElement.made).to.equal(made);
    expect([...root.childNodes]).to.deep.equal([details, list]);
    expect(htmlOf(root)).to.equal(
      '<main><details open=""><summary>All</summary></details><ul class="many"><li>a</li><li>x</li></ul></main>',
    );
    write(tinyDom, root, [...view(['a'], false), h('svg', {}, 'y')]);
    expect(htmlOf(root)).to.match(/<ul><li>a<\/li><\/ul><svg>y<\/svg><\/main>$/);
    write(tinyDom, root, [h('p', {}, 0, undefined, null, false, '')]);
    expect(htmlOf(root)).to.equal('<main><p>0</p></main>');
  });
});
