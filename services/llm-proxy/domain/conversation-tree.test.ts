import { expect } from 'chai';
import { seeded } from '../../../test/support/laws.ts';
import type { Turn } from '../../common/conversations.ts';
import { ConversationTree } from './conversation-tree.ts';

const turn = (baseIndex: number, baseCount: number, fresh: string[], reply = ''): Turn => ({
  baseIndex,
  baseCount,
  fresh,
  reply,
});

describe('conversation tree', () => {
  it('finds nothing where nothing was recorded', () => {
    const found = new ConversationTree().find(['a']);
    expect(found).to.deep.equal({ heads: [], headCount: 0, shared: 0, nearest: -1 });
  });

  it('finds the deepest call whose reply the request has, and what it shares beyond', () => {
    const tree = new ConversationTree();
    tree.add(turn(-1, 0, ['s', 'u'], 'r0'));
    tree.add(turn(0, 3, ['t'], 'r1'));
    tree.add(turn(1, 4, ['v'], ''));
    expect(tree.find(['s', 'u', 'r0', 't', 'v', 'w'])).to.deep.equal({
      heads: [0],
      headCount: 3,
      shared: 5,
      nearest: 2,
    });
    expect(tree.find(['s', 'u', 'r0', 't', 'r1', 'x'])).to.deep.equal({
      heads: [1],
      headCount: 5,
      shared: 5,
      nearest: 1,
    });
    expect(tree.find(['s', 'x'])).to.include({ headCount: 0, shared: 1 });
  });

  it('tells all calls with the same reply to the same messages', () => {
    const tree = new ConversationTree();
    tree.add(turn(-1, 0, ['u'], 'r'));
    tree.add(turn(0, 1, [], 'r'));
    tree.add(turn(0, 1, [], 'q'));
    expect(tree.find(['u', 'r', 'v']).heads).to.deep.equal([0, 1]);
    expect(tree.find(['u', 'q', 'v']).heads).to.deep.equal([2]);
  });

  it('agrees with a search through all conversations, in made-up sessions', () => {
    const random = seeded(3);
    const pick = (n: number): number => Math.floor(random() * n);
    const tree = new ConversationTree();
    const wholes: string[][] = [];
    const sent: string[][] = [];
    for (let index = 0; index < 300; index++) {
      const base = index === 0 ? -1 : pick(index);
      const from = wholes[base] ?? [];
      const asked = [
        ...from.slice(0, pick(from.length + 1)),
        ...Array.from({ length: 1 + pick(2) }, () => `m${pick(4)}`),
      ];
      const differs = asked.findIndex((digest, at) => digest !== from[at]);
      const baseCount = differs < 0 ? asked.length : differs;
      expect(tree.shared(base, asked)).to.equal(baseCount);
      const made = turn(base, baseCount, asked.slice(baseCount), pick(5) === 0 ? '' : `r${pick(3)}`);
      tree.add(made);
      sent.push(asked);
      wholes.push(made.reply === '' ? asked : [...asked, made.reply]);
      const looked = [...(wholes[pick(index + 1)] as string[]), `m${pick(4)}`];
      const isHead = (whole: string[], i: number): boolean =>
        whole.length > (sent[i] as string[]).length && whole.every((digest, at) => digest === looked[at]);
      const deepest = Math.max(0, ...wholes.filter(isHead).map(({ length }) => length));
      const heads = wholes.flatMap((whole, i) => (isHead(whole, i) && whole.length === deepest ? [i] : []));
      expect(tree.find(looked)).to.deep.include({ heads, headCount: deepest });
    }
  });
});
