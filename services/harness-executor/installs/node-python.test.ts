import { expect } from 'chai';
import { ADAPTERS } from '../adapters/index.ts';
import { pythonVersionFor } from './node-python.ts';

describe('the Python that a harness is installed for ahead of time', () => {
  const { signal } = new AbortController();
  const { pi, openhands_sdk } = ADAPTERS;

  it('is the one that is asked for, where the harness runs on one', async () => {
    expect(await pythonVersionFor(openhands_sdk, '3.13', signal)).to.equal('3.13');
    expect(await pythonVersionFor(pi, '3.13', signal)).to.equal(undefined);
  });

  it('is none that is too old, or no version', async () => {
    for (const wrong of ['3.11', '3.9', '3', '4.12', '3.12.1', '']) {
      const error = await pythonVersionFor(openhands_sdk, wrong, signal).catch((thrown) => thrown);
      expect(error, wrong).to.include({ reason: 'INVALID_REQUEST' });
      expect(error.message).to.contain('openhands_sdk needs Python 3.12 or newer');
    }
  });

  it('is not looked for any more where that has been given up', async () => {
    const gone = AbortSignal.abort(new Error('left'));
    const error = await pythonVersionFor(ADAPTERS.mini_swe_agent, undefined, gone).catch((thrown) => thrown);
    expect(error.message).to.equal('left');
  });
});
