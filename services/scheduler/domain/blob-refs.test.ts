import { create, toBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { ArchivedTaskSchema, SessionRecordSchema } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { FactSchema, GroupReadySchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { sha256 } from '../../common/ids.ts';
import { digestsIn } from './blob-refs.ts';

const ref = (name: string) => ({ sha256: sha256(name), sizeBytes: 300_000n });

describe('the blobs that a message names', () => {
  it('are found wherever they stand in it', () => {
    const built = { trajectory: ref('one') };
    const sessions = ['one', 'two', 'three'].map((name, i) => ({
      sessionId: `s-${i}`,
      trajectory: ref(name),
    }));
    const messages = [
      toBinary(FactSchema, create(FactSchema, { kind: { case: 'built', value: built } })),
      toBinary(SessionRecordSchema, create(SessionRecordSchema, { built })),
      toBinary(
        ArchivedTaskSchema,
        create(ArchivedTaskSchema, { record: { spec: { case: 'filesRef', value: ref('one') } } }),
      ),
    ];
    for (const message of messages) expect([...digestsIn(message)]).to.eql([sha256('one')]);
    const group = toBinary(GroupReadySchema, create(GroupReadySchema, { sessions }));
    expect([...digestsIn(group)]).to.eql([sha256('one'), sha256('two'), sha256('three')]);
    // In a part of a larger buffer, too.
    const inside = new Uint8Array([1, 2, 3, ...group, 4]).subarray(3, 3 + group.byteLength);
    expect([...digestsIn(inside)]).to.have.length(3);
  });

  it('are none where a digest is cut, or is another kind of text', () => {
    const group = toBinary(
      GroupReadySchema,
      create(GroupReadySchema, { sessions: [{ trajectory: ref('one') }] }),
    );
    expect([...digestsIn(group.subarray(0, 40))]).to.eql([]);
    expect([...digestsIn(Buffer.from(`\n@${'x'.repeat(64)}`))]).to.eql([]);
  });
});
