import { expect } from 'chai';
import { passedOn } from './http-headers.ts';

describe('headers through the egress proxy', () => {
  it('lose what belongs to one connection, and keep the rest as it is written', () => {
    const raw = [
      ...[
        'Host',
        'evil.org',
        'Accept',
        '*/*',
        'Proxy-Authorization',
        'Basic x',
        'X-Twice',
        '1',
        'X-Twice',
        '2',
      ],
      ...[
        'Connection',
        'keep-alive, X-Hop',
        'x-hop',
        'y',
        'Transfer-Encoding',
        'chunked',
        'Upgrade',
        'websocket',
      ],
    ];
    expect(passedOn(raw, ['host', 'site.test'])).to.eql([
      ...[
        'host',
        'site.test',
        'Accept',
        '*/*',
        'X-Twice',
        '1',
        'X-Twice',
        '2',
        'Transfer-Encoding',
        'chunked',
      ],
    ]);
  });

  it('are read in one pass, however many blanks are in them', () => {
    const blanks = ' '.repeat(400_000);
    expect(passedOn(['Connection', `a${blanks}b , x-hop`, 'X-Hop', 'y'], [])).to.eql([]);
  });
});
