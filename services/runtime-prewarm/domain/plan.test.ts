import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { RuntimeSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { SANDBOX_MEMORY_MB_DEFAULT } from '../../common/limits.ts';
import { type PlanDefaults, planOf } from './plan.ts';

const MIB = 1024 * 1024;
const spec = (init: MessageInitShape<typeof RuntimeSpecSchema>) => create(RuntimeSpecSchema, init);
const none: PlanDefaults = { runtime: undefined, backend: 'bubblewrap' };
const step = (command: string) => ({ step: { case: 'exec' as const, value: { command } } });

describe('planOf', () => {
  it('fills what a task leaves open', () => {
    expect(planOf(undefined, none, false)).to.eql({
      backend: 'bubblewrap',
      image: '',
      steps: [],
      egress: [],
      prepareEgress: [],
      prepareEach: false,
      env: {},
      workdir: '/polar/session/workspace',
      limits: { memoryBytes: SANDBOX_MEMORY_MB_DEFAULT * MIB, cpus: 0 },
      gpus: 0,
      storageMb: 0,
    });
  });

  it('takes what a task says', () => {
    const given = spec({ backend: 'process', env: { A: 'b' }, workdir: '/work/', cpus: 1.5, memoryMb: 64 });
    const { backend, env, workdir, limits } = planOf(given, none, false);
    expect({ backend, env, workdir }).to.eql({ backend: 'process', env: { A: 'b' }, workdir: '/work' });
    expect(limits).to.eql({ memoryBytes: 64 * MIB, cpus: 1.5 });
  });

  it("uses the node's default whole where there is no runtime, and its image only with its own backend", () => {
    const runtime = spec({
      backend: 'bubblewrap',
      image: 'debian',
      env: { N: '1' },
      memoryMb: 128,
      storageMb: 9,
    });
    const defaults: PlanDefaults = { runtime, backend: 'bubblewrap' };
    expect(planOf(undefined, defaults, false)).to.deep.include({ image: 'debian', env: { N: '1' } });
    expect(planOf(spec({}), defaults, false)).to.deep.include({ image: 'debian', env: {} });
    expect(planOf(spec({ backend: 'process' }), defaults, false).image).to.equal('');
    expect(planOf(spec({}), defaults, false).storageMb).to.equal(9);
    expect(planOf(spec({ backend: 'process' }), defaults, false).storageMb).to.equal(0);
    expect(planOf(spec({ image: 'alpine' }), defaults, false).image).to.equal('alpine');
    expect(planOf(spec({}), defaults, false).limits.memoryBytes).to.equal(128 * MIB);
  });

  it('takes eval_prepare for an evaluation only, and an empty one too', () => {
    const both = spec({ prepare: [step('run')], evalPrepare: { steps: [] } });
    expect(planOf(both, none, false).steps).to.have.length(1);
    expect(planOf(both, none, true).steps).to.have.length(0);
    expect(planOf(spec({ prepare: [step('run')] }), none, true).steps).to.have.length(1);
  });

  it('opens the egress list to the run and to the steps, and to no evaluation', () => {
    const network = { egress: [{ host: 'a.org', port: 443 }], prepareEgress: [{ host: 'b.org', port: 80 }] };
    const hosts = (forEvaluation: boolean, defaults = none, given = spec({ network })) => {
      const { egress, prepareEgress } = planOf(given, defaults, forEvaluation);
      return [egress, prepareEgress].map((rules) => rules.map(({ host }) => host));
    };
    expect(hosts(false)).to.eql([['a.org'], ['b.org']]);
    expect(hosts(true)).to.eql([[], ['b.org']]);
    const runtime = spec({ backend: 'bubblewrap', network });
    expect(hosts(false, { ...none, runtime }, spec({}))).to.eql([['a.org'], ['b.org']]);
    expect(hosts(false, { ...none, runtime }, spec({ network: {} }))).to.eql([[], []]);
    expect(() => planOf(spec({ network }), { ...none, backend: 'process' }, false)).to.throw(
      /network: process/,
    );
  });

  it('refuses by name what the backend does not offer, also where the node chooses it', () => {
    expect(() => planOf(spec({ backend: 'process', storageMb: 1 }), none, false)).to.throw(
      /storage_mb: process/,
    );
    expect(planOf(spec({ backend: 'docker', gpus: 1, storageMb: 2 }), none, false)).to.include({
      ...{ backend: 'docker', gpus: 1, storageMb: 2 },
    });
  });

  it('refuses a backend that is unknown, and none where there is no default', () => {
    const reason = (backend: string, defaults: PlanDefaults): string => {
      try {
        planOf(spec({ backend }), defaults, false);
        return 'none';
      } catch (error) {
        return (error as { reason: string }).reason;
      }
    };
    expect(reason('nerdctl', none)).to.equal('BACKEND_UNAVAILABLE');
    expect(reason('', { runtime: undefined, backend: undefined })).to.equal('BACKEND_UNAVAILABLE');
    expect(reason('process', { runtime: undefined, backend: undefined })).to.equal('none');
  });
});
