import { expect } from 'chai';
import { STICKY_SESSIONS_MAX } from '../../common/limits.ts';
import { Homes } from './homes.ts';
import { Member } from './member.ts';

describe('homes of sessions', () => {
  const spec = { kind: 'vllm', model: 'm', key: undefined, callsMax: 8 } as const;
  const [a, b] = [new Member('http://127.0.0.1:1', spec), new Member('http://127.0.0.1:2', spec)];
  after(() => {
    for (const member of [a, b]) member[Symbol.dispose]();
  });

  it('count each session where it was last', () => {
    const homes = new Homes();
    homes.set('s', a);
    homes.set('s', a);
    homes.set('t', a);
    expect([a.sessions, b.sessions]).to.deep.equal([2, 0]);
    homes.set('s', b);
    expect([a.sessions, b.sessions]).to.deep.equal([1, 1]);
    homes.forget('s');
    homes.forget('s');
    homes.forget('t');
    expect([a.sessions, b.sessions, homes.of('s')]).to.deep.equal([0, 0, undefined]);
  });

  it('forget the session that called longest ago', () => {
    const homes = new Homes();
    for (let i = 0; i < STICKY_SESSIONS_MAX; i++) homes.set(`${i}`, a);
    homes.set('0', a);
    homes.set('new', b);
    expect(homes.of('1')).to.equal(undefined);
    expect(homes.of('0')).to.equal(a);
    expect(a.sessions).to.equal(STICKY_SESSIONS_MAX - 1);
  });
});
