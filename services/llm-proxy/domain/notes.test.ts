import { expect } from 'chai';
import { eventually } from '../../../test/support/eventually.ts';
import { heldBytes } from '../../../test/support/held-bytes.ts';
import { Notes } from './notes.ts';

const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => ({ name })) as [Named, Named, Named, Named];

interface Named {
  readonly name: string;
}

/** Makes upper case, and says of what. */
function counted() {
  const seen: string[] = [];
  const make = ({ name }: Named): string => {
    seen.push(name);
    return name.toUpperCase();
  };
  return { seen, make };
}

describe('notes of a conversation', () => {
  it('make only what is new, from body to body', () => {
    const { seen, make } = counted();
    const first = new Notes();
    expect(first.each([a, b], make)).to.deep.equal(['A', 'B']);
    const second = new Notes(first);
    expect(second.each([a, b, c], make)).to.deep.equal(['A', 'B', 'C']);
    expect(new Notes(second).each([a, b, c, d], make)).to.deep.equal(['A', 'B', 'C', 'D']);
    expect(seen).to.deep.equal(['a', 'b', 'c', 'd']);
  });

  it('make anew all behind the first other element, be it equal', () => {
    const { seen, make } = counted();
    const notes = new Notes();
    notes.each([a, b, c], make);
    expect(new Notes(notes).each([a, { name: 'b' }, c], make)).to.deep.equal(['A', 'B', 'C']);
    expect(new Notes(notes).each([b, c], make)).to.deep.equal(['B', 'C']);
    expect(new Notes(notes).each([a], make)).to.deep.equal(['A']);
    expect(new Notes(notes).each([], make)).to.deep.equal([]);
    expect(seen).to.deep.equal(['a', 'b', 'c', 'b', 'c', 'b', 'c']);
  });

  it('are no others’ where two bodies go on from one', () => {
    const { make } = counted();
    const notes = new Notes();
    const shared = notes.each([a, b], make);
    const [one, other] = [new Notes(notes), new Notes(notes)];
    expect(one.each([a, b, c], make)).to.deep.equal(['A', 'B', 'C']);
    expect(other.each([a, b, d], make)).to.deep.equal(['A', 'B', 'D']);
    expect(one.each([a, b, c, d], make)).to.deep.equal(['A', 'B', 'C', 'D']);
    expect(shared).to.deep.equal(['A', 'B']);
  });

  it('go on from what was made of the elements before', () => {
    const upTo = ({ name }: Named, before = ''): string => before + name;
    const notes = new Notes();
    expect(notes.inOrder('up to', [a, b], upTo)).to.deep.equal(['a', 'ab']);
    const next = new Notes(notes);
    expect(next.inOrder('up to', [a, b, c], upTo)).to.deep.equal(['a', 'ab', 'abc']);
    expect(next.inOrder('up to', [a, c, b], upTo)).to.deep.equal(['a', 'ac', 'acb']);
    expect(next.inOrder('another', [a, c], (_, __, place) => place)).to.deep.equal([0, 1]);
  });

  it('keep nothing of a body that the next one has made nothing of', () => {
    const { seen, make } = counted();
    const first = new Notes();
    first.each([a], make);
    const silent = new Notes(first);
    new Notes(silent).each([a], make);
    expect(seen).to.deep.equal(['a', 'a']);
  });

  it('let go of bodies, however their steps change', async () => {
    const gone: string[] = [];
    const registry = new FinalizationRegistry((place: string) => gone.push(place));
    let notes = new Notes();
    for (let i = 0; i < 10; i++) {
      const list = [{ name: `${i}` }];
      registry.register(list, `${i}`);
      notes = new Notes(notes);
      notes.each(list, i % 2 === 0 ? ({ name }) => name : String);
      notes.inOrder(i % 2, list, (_, __, place) => place);
    }
    heldBytes();
    await eventually('bodies are let go', () => gone.length >= 7, 5_000);
    expect(notes.each([a], String)).to.have.length(1);
  });
});
