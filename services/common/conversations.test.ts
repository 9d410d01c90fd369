import { expect } from 'chai';
import { Conversations } from './conversations.ts';

describe('conversations', () => {
  /** Adds a call as the proxy does: from the base as much as is shared. */
  function add(all: Conversations, baseIndex: number, messages: readonly string[], reply: string): number {
    const there = [...all.messagesOf(baseIndex), all.replyOf(baseIndex)];
    const differs = messages.findIndex((digest, i) => digest !== there[i]);
    const baseCount = differs < 0 ? messages.length : differs;
    const fresh = messages.slice(baseCount);
    all.add({ baseIndex, baseCount, fresh, reply });
    return fresh.length;
  }

  it('restores what each call was sent, and stores each message once in a loop of turns', () => {
    const all = new Conversations();
    const messages = ['s', 'u'];
    let stored = add(all, -1, messages, 'a0');
    for (let turn = 1; turn < 500; turn++) {
      messages.push(`a${turn - 1}`, `t${turn}`);
      stored += add(all, turn - 1, messages, `a${turn}`);
      expect(all.messagesOf(turn)).to.deep.equal(messages);
    }
    expect(stored).to.equal(2 + 499);
    expect(all.messagesOf(0)).to.deep.equal(['s', 'u']);
  });

  it('forks where messages differ, with and without the reply of the base', () => {
    const all = new Conversations();
    add(all, -1, ['s', 'u'], 'a');
    expect(add(all, 0, ['s', 'u', 'b', 'v'], '')).to.equal(2);
    expect(add(all, 0, ['s', 'x'], 'c')).to.equal(1);
    expect(add(all, 0, ['s'], 'd')).to.equal(0);
    expect(add(all, 1, ['s', 'u', 'b', 'v', 'w'], 'e')).to.equal(1);
    expect([1, 2, 3, 4].map((index) => all.messagesOf(index).join(' '))).to.deep.equal([
      's u b v',
      's x',
      's',
      's u b v w',
    ]);
  });

  it('refuses a call that takes more than its base has', () => {
    const all = new Conversations();
    add(all, -1, ['s'], '');
    expect(() => all.add({ baseIndex: 0, baseCount: 2, fresh: [], reply: '' })).to.throw(RangeError);
  });
});
