// What is refused in any request, and what is not.
import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import type { SessionState } from '../../gen/ts/polar/common/v1/session_pb.js';
import {
  SeekConsumerRequestSchema,
  SeekTarget,
} from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import {
  GetTaskRequestSchema,
  ListTasksRequestSchema,
  RetryOnly,
  RetrySessionsRequestSchema,
} from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { asPolarError } from './errors.ts';
import { checkRequest } from './request-faults.ts';

describe('faults of any request', () => {
  const fieldsOf = (check: () => void): string[] => {
    try {
      check();
      return [];
    } catch (error) {
      const { reason, fields, message } = asPolarError(error);
      expect(reason).to.equal('INVALID_REQUEST');
      for (const { field } of fields) expect(message).to.contain(field);
      return fields.map(({ field }) => field);
    }
  };

  it('are numbers that an enum has not', () => {
    const retry = (only: RetryOnly) => () =>
      checkRequest(RetrySessionsRequestSchema, create(RetrySessionsRequestSchema, { only }));
    expect(fieldsOf(retry(RetryOnly.FAILED))).to.deep.equal([]);
    for (const unknown of [9_999, -1]) expect(fieldsOf(retry(unknown))).to.deep.equal(['only']);
  });

  it('are those of a message inside, and of the chosen part of a choice', () => {
    const state = create(ListTasksRequestSchema, { filter: { state: 9_999 as SessionState } });
    expect(fieldsOf(() => checkRequest(ListTasksRequestSchema, state))).to.deep.equal(['filter.state']);
    const seek = (value: SeekTarget) => () =>
      checkRequest(
        SeekConsumerRequestSchema,
        create(SeekConsumerRequestSchema, { to: { case: 'target', value } }),
      );
    expect(fieldsOf(seek(SeekTarget.OLDEST))).to.deep.equal([]);
    expect(fieldsOf(seek(9_999 as SeekTarget))).to.deep.equal(['target']);
  });

  it('are durations and instants that proto has not', () => {
    const wait =
      (seconds: bigint, nanos = 0) =>
      () =>
        checkRequest(GetTaskRequestSchema, create(GetTaskRequestSchema, { wait: { seconds, nanos } }));
    for (const good of [wait(0n), wait(-1n, -5), wait(315_576_000_000n)])
      expect(fieldsOf(good)).to.deep.equal([]);
    for (const bad of [wait(2n ** 62n), wait(1n, -1), wait(0n, 1_000_000_000)]) {
      expect(fieldsOf(bad)).to.deep.equal(['wait']);
    }
    const since =
      (seconds: bigint, nanos = 0) =>
      () =>
        checkRequest(
          ListTasksRequestSchema,
          create(ListTasksRequestSchema, { sinceTime: { seconds, nanos } }),
        );
    expect(fieldsOf(since(-1n))).to.deep.equal([]);
    for (const bad of [since(2n ** 62n), since(0n, -1)]) expect(fieldsOf(bad)).to.deep.equal(['since_time']);
  });
});
