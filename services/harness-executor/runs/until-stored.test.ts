import { expect } from 'chai';
import { PolarError } from '../../common/errors.ts';
import { untilStored } from './until-stored.ts';

describe('what must be stored', () => {
  it('is tried until it is, and the first failure alone is told', async () => {
    const said: unknown[] = [];
    let tries = 0;
    const store = async (): Promise<void> => {
      if (++tries < 3) throw new PolarError('NATS_STORE_FULL', `try ${tries}`);
    };
    await untilStored(store, (error) => said.push((error as Error).message), new AbortController().signal, 1);
    expect([tries, said]).to.eql([3, ['try 1']]);
  });

  it('is left where trying again cannot help, and when the signal aborts', async () => {
    const why = (reason: 'NATS_REFUSED' | 'NATS_STORE_FULL', signal: AbortSignal): Promise<unknown> =>
      untilStored(
        () => Promise.reject(new PolarError(reason, '')),
        () => {},
        signal,
        1,
      ).catch((error) => error.reason);
    expect(await why('NATS_REFUSED', new AbortController().signal)).to.equal('NATS_REFUSED');
    expect(await why('NATS_STORE_FULL', AbortSignal.timeout(20))).to.equal('NATS_STORE_FULL');
  });
});
