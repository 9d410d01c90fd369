import { expect } from 'chai';
import { Roster } from './roster.ts';

describe('a roster without engines', () => {
  it('is told without the credentials of its router: harnesses read it', () => {
    using roster = new Roster(
      {
        kind: 'sglang',
        model: '',
        key: undefined,
        callsMax: 1,
        alias: '',
        urls: ['http://user:secret@router:30000/v1'],
        scheduler: 'sglang_router',
        madeStreams: false,
        queueMs: 1_000,
        sessionsMax: null,
      },
      () => {},
    );
    const { message } = roster.noEngine();
    expect(message)
      .to.include('http://router:30000')
      .and.not.match(/user|secret/);
  });
});
