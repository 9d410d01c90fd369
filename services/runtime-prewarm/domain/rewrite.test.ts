import { expect } from 'chai';
import { rewriter } from './rewrite.ts';

describe('rewriter', () => {
  const rewrite = rewriter(
    new Map([
      ['/polar/session', '/run/x/s'],
      ['/opt/polar/harness/pi', '/cache/pi'],
      ['/opt/polar', '/cache'],
    ]),
  );

  it('replaces whole leading parts wherever they stand', () => {
    expect(rewrite('/polar/session')).to.equal('/run/x/s');
    expect(rewrite('cd "/polar/session/workspace" && ls /polar/session')).to.equal(
      'cd "/run/x/s/workspace" && ls /run/x/s',
    );
    expect(rewrite('PATH=/bin:/polar/session/bin:/usr')).to.equal('PATH=/bin:/run/x/s/bin:/usr');
    expect(rewrite('file:///polar/session/a')).to.equal('file:///run/x/s/a');
  });

  it('leaves longer names and other folders alone', () => {
    for (const text of [
      '/polar/sessions',
      '/polar/session-2',
      '/polar/session.bak',
      '/srv/polar/session',
      'polar/session',
    ]) {
      expect(rewrite(text)).to.equal(text);
    }
  });

  it('takes the longest', () => {
    expect(rewrite('/opt/polar/harness/pi/bin /opt/polar/node')).to.equal('/cache/pi/bin /cache/node');
  });

  it('takes what it replaces with as it is', () => {
    expect(rewriter(new Map([['/a', '/$&/x']]))('/a/b')).to.equal('/$&/x/b');
    expect(rewriter(new Map())('/a')).to.equal('/a');
  });
});
