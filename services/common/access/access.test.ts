import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { EvaluatorService } from '../../../gen/ts/polar/evaluator/v1/evaluator_service_pb.js';
import { HarnessService } from '../../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import { ProxyService } from '../../../gen/ts/polar/llm_proxy/v1/llm_proxy_service_pb.js';
import { PolicyService } from '../../../gen/ts/polar/llm_proxy/v1/policy_service_pb.js';
import { TrajectoryService } from '../../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { RuntimeService } from '../../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { reasonOf } from '../../../test/support/reason-of.ts';
import { sleep } from '../clock.ts';
import { PolarError } from '../errors.ts';
import { sha256 } from '../ids.ts';
import { AccessControl } from './access-control.ts';
import { SCOPE_OF_RPC } from './scopes.ts';
import { newToken, parseTokens } from './tokens.ts';

const SERVICES = [
  ...[EvaluatorService, HarnessService, ProxyService, PolicyService],
  ...[TrajectoryService, RuntimeService, RolloutService],
];
const SUBMIT = '/polar.scheduler.v1.RolloutService/SubmitTask';

describe('access tokens', () => {
  let folder: string;
  let file: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-access-'));
    file = join(folder, 'tokens.txt');
  });
  after(() => rmSync(folder, { recursive: true }));

  it('are asked for by every RPC, each with a scope', () => {
    const named = Object.entries(SCOPE_OF_RPC).map(([name, methods]) => [name, Object.keys(methods).sort()]);
    const real = SERVICES.map(({ typeName, methods }) => [typeName, methods.map(({ name }) => name).sort()]);
    expect(Object.fromEntries(named)).to.deep.equal(Object.fromEntries(real));
  });

  it('open what their scopes say, and nothing else', () => {
    const trainer = newToken('trainer', ['submit', 'read']);
    writeFileSync(file, `# who\n${trainer.line}\n`);
    const told: string[] = [];
    const onChange = (...call: string[]): void => void told.push(call.join(' '));
    const access = new AccessControl(file, () => {}, onChange);
    const bearer = `Bearer ${trainer.token}`;
    expect(reasonOf(() => access.require(SUBMIT, bearer))).to.equal('none');
    expect(reasonOf(() => access.require(SUBMIT.replace('SubmitTask', 'ListTasks'), bearer))).to.equal(
      'none',
    );
    expect(reasonOf(() => access.require(SUBMIT.replace('SubmitTask', 'DrainNode'), bearer))).to.equal(
      'SCOPE_MISSING',
    );
    expect(told).to.deep.equal(['trainer SubmitTask']);
    expect(reasonOf(() => access.require('/grpc.health.v1.Health/Check', undefined))).to.equal('none');
    const consume = '/polar.reconstructor.v1.TrajectoryService/StreamTrajectories';
    expect(reasonOf(() => access.require(consume, bearer))).to.equal('SCOPE_MISSING');
    expect(reasonOf(() => access.require('/polar.scheduler.v1.RolloutService/New', bearer))).to.equal(
      'SCOPE_MISSING',
    );
    for (const header of [undefined, '', trainer.token, 'Bearer x', `Basic ${trainer.token}`]) {
      expect(
        reasonOf(() => access.require(SUBMIT, header)),
        header,
      ).to.equal('UNAUTHENTICATED');
    }
  });

  it('are those of the file as it is now; of one that is broken, those it had', async () => {
    const [old, young] = [newToken('old', ['submit']), newToken('young', ['submit'])];
    writeFileSync(file, `${old.line}\n`);
    const faults: PolarError[] = [];
    const access = new AccessControl(file, (error) => faults.push(error));
    const reasons = (): string[] =>
      [old, young].map(({ token }) => reasonOf(() => access.require(SUBMIT, `Bearer ${token}`)));
    expect(reasons()).to.deep.equal(['none', 'UNAUTHENTICATED']);
    writeFileSync(file, `${young.line}\n`);
    utimesSync(file, 1, 1);
    await sleep(1_050);
    expect(reasons()).to.deep.equal(['UNAUTHENTICATED', 'none']);
    writeFileSync(file, 'nonsense\n');
    await sleep(1_050);
    expect(reasons()).to.deep.equal(['UNAUTHENTICATED', 'none']);
    expect(faults.map(({ reason }) => reason)).to.deep.equal(['INVALID_CONFIG']);
  });

  it('have a file whose faults are told at once, with their lines', () => {
    const { line } = newToken('a', ['read']);
    const text = `${line}\n${line}\nb all 00\n!\nc read,node 12\n`;
    const faults = (): PolarError => {
      try {
        parseTokens(text, 'f');
      } catch (error) {
        return error as PolarError;
      }
      throw new Error('taken');
    };
    expect(faults().fields.map(({ field }) => field)).to.deep.equal(['line 2', 'line 3', 'line 4', 'line 5']);
    expect(() => parseTokens('# none\n', 'f')).to.throw(PolarError, /no token/);
    expect(() => newToken('a b', [])).to.throw(PolarError, /NAME[\s\S]*scopes/);
    expect(() => newToken('a', ['read', 'write'])).to.throw(PolarError, /scopes/);
    for (const wrong of [line.replace('a ', 'a! '), line.replace('read', 'read,all'), `${line} read`])
      expect(() => parseTokens(wrong, 'f'), wrong).to.throw(PolarError, /line 1/);
    const many = Array.from({ length: 1_001 }, (_, i) => `t${i} read ${sha256(`${i}`)}`);
    expect(() => parseTokens(many.join('\n'), 'f')).to.throw(PolarError, /tokens/);
    expect(parseTokens(many.slice(1).join('\n'), 'f').size).to.equal(1_000);
  });
});
