import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { type Capability, CapabilitySchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { sha256 } from '../../common/ids.ts';
import { CapabilityTable } from './capability-table.ts';

const capability = (secret: string, expireMs = 1_000n): Capability =>
  create(CapabilitySchema, { digest: sha256(secret), expireMs });

describe('capability table', () => {
  it('finds by digest what was put, until it is deleted or expires', () => {
    const table = new CapabilityTable();
    table.apply('s.1', 1, capability('a'));
    expect(table.find(sha256('a'), 999)).to.not.equal(undefined);
    expect(table.find(sha256('a'), 1_000)).to.equal(undefined);
    expect(table.find(sha256('b'), 0)).to.equal(undefined);
    expect(table.apply('s.1', 2, undefined)?.digest).to.equal(sha256('a'));
    expect(table.find(sha256('a'), 0)).to.equal(undefined);
    expect([table.capabilities.length, table.revisionOf('s.1')]).to.deep.equal([0, 0]);
  });

  it('changes nothing for entries that come late', () => {
    const table = new CapabilityTable();
    table.apply('s.1', 5, undefined);
    expect(table.apply('s.1', 4, capability('a'))).to.equal(undefined);
    expect(table.find(sha256('a'), 0)).to.equal(undefined);
    expect(table.revision).to.equal(5);
  });

  it('revokes what is replaced, but not what is put again unchanged', () => {
    const table = new CapabilityTable();
    table.apply('s.1', 1, capability('a'));
    expect(table.apply('s.1', 2, capability('a', 2_000n))).to.equal(undefined);
    expect(table.find(sha256('a'), 1_500)).to.not.equal(undefined);
    expect(table.apply('s.1', 3, capability('b'))?.digest).to.equal(sha256('a'));
    expect(table.find(sha256('a'), 0)).to.equal(undefined);
    expect(table.holds(capability('a'), 0)).to.equal(false);
    expect(table.find(sha256('b'), 0)).to.not.equal(undefined);
  });

  it('holds one that was found for as long as its entry is there and valid', () => {
    const table = new CapabilityTable();
    const found = capability('a');
    table.apply('s.1', 1, found);
    table.apply('s.1', 2, capability('a', 2_000n));
    expect(table.holds(found, 1_500)).to.equal(true);
    expect(table.holds(found, 2_000)).to.equal(false);
    table.apply('s.1', 3, undefined);
    expect(table.holds(found, 0)).to.equal(false);
  });

  it('gives what has expired once', () => {
    const table = new CapabilityTable();
    table.apply('s.1', 1, capability('a', 10n));
    table.apply('s.2', 2, capability('b', 20n));
    expect(table.expire(15).map(({ digest }) => digest)).to.deep.equal([sha256('a')]);
    expect(table.expire(15)).to.deep.equal([]);
    expect([...table.capabilities]).to.have.length(1);
  });
});
