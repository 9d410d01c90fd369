import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import {
  type Completion,
  type RoutedExperts,
  RoutedExpertsSchema,
} from '../../../gen/ts/polar/event/v1/completion_pb.js';
import { sampledCall as call, type RecordedCall, recordsOf } from '../../../test/support/records.ts';
import { type BuilderPolicies, DEFAULT_POLICIES } from '../../common/specs/strategies.ts';
import { build } from './build.ts';
import { expand } from './expand.ts';
import { EXPERT_BYTES_MAX, type ExpertRows, traceExperts } from './experts.ts';

/** A row of one layer and two experts for each id: the id's own number and the one behind it. */
const rowsOf = (ids: readonly number[], first = 0): RoutedExperts => {
  const rows = Uint8Array.from(ids.slice(first, -1).flatMap((id) => [id, id + 1]));
  return create(RoutedExpertsSchema, { rows, first, layers: 1, topK: 2, itemBytes: 1 });
};
/** Records of calls, each with the rows from the place that `firsts` says; undefined: none. */
function recorded(calls: readonly RecordedCall[], firsts: readonly (number | undefined)[]): Completion[] {
  const records = recordsOf(calls);
  for (const [i, first] of firsts.entries()) {
    const { prompt_ids, sampled_ids } = calls[i]!;
    if (first !== undefined) records[i]!.routedExperts = rowsOf([...prompt_ids, ...sampled_ids], first);
  }
  return records;
}

const TURNS = [call('a', [1, 2], [3, 4]), call('b', [1, 2, 3, 4, 5], [6]), call('c', [1, 2, 3, 4, 9], [8])];
const POLICIES: BuilderPolicies = DEFAULT_POLICIES;

interface Told {
  readonly experts: number[];
  readonly known: string;
}

/** The experts of each id that come first, and which of them are known. */
const toldBy = (records: readonly Completion[], policies = POLICIES): Told[] =>
  build('prefix_merging', expand(records), policies).traces.map(({ routedExperts }) => ({
    experts: [...(routedExperts?.rows ?? [])].filter((_, i) => i % 2 === 0),
    known: (routedExperts?.known ?? []).join(''),
  }));

describe('routed experts of traces', () => {
  it('are those of the first call that read an id, in each branch', () => {
    expect(toldBy(recorded(TURNS, [0, 3, 3]))).to.deep.equal([
      { experts: [1, 2, 3, 4, 5, 0], known: '111110' },
      { experts: [1, 2, 3, 4, 9, 0], known: '111110' },
    ]);
  });

  it('are unknown where no call told them, until one does', () => {
    expect(toldBy(recorded(TURNS, [undefined, 3, 0]))).to.deep.equal([
      { experts: [0, 0, 0, 4, 5, 0], known: '000110' },
      { experts: [1, 2, 3, 4, 9, 0], known: '111110' },
    ]);
    expect(toldBy(recorded(TURNS, [0, undefined, undefined]))).to.deep.equal([
      { experts: [1, 2, 3, 0, 0, 0], known: '111000' },
      { experts: [1, 2, 3, 0, 0, 0], known: '111000' },
    ]);
  });

  it('are cut with the trace', () => {
    const records = recorded([call('a', [1, 2], [3, 4, 5])], [0]);
    expect(toldBy(records, { ...POLICIES, max_trace_tokens: 4 })).to.deep.equal([
      { experts: [1, 2, 3, 4], known: '1111' },
    ]);
  });

  it('of another shape are not mixed in', () => {
    const records = recorded(TURNS.slice(0, 2), [0, 3]);
    Object.assign(records[0]!.routedExperts!, { layers: 2, topK: 1 });
    expect(toldBy(records)).to.deep.equal([{ experts: [0, 0, 0, 4, 5, 0], known: '000110' }]);
  });

  it('are refused where a record has not as many rows as ids', () => {
    for (const change of [{ topK: 3 }, { itemBytes: 2 }, { first: 1 }, { first: 4 }, { layers: 0 }]) {
      const records = recorded(TURNS.slice(0, 1), [0]);
      Object.assign(records[0]!.routedExperts!, change);
      expect(() => expand(records))
        .to.throw('bytes of routed experts')
        .with.property('reason', 'RECORDS_INVALID');
    }
  });

  it('are left out of the traces that come when a trajectory has its fill, and counted', () => {
    const layers = EXPERT_BYTES_MAX / 8;
    const records = recorded(TURNS, []);
    // Two traces of six ids: the first fits.
    for (const record of records) {
      const ids = record.promptLength + record.sampledIds.byteLength / 4;
      const rows = new Uint8Array(0);
      record.routedExperts = create(RoutedExpertsSchema, {
        rows,
        first: ids - 1,
        layers,
        topK: 1,
        itemBytes: 1,
      });
    }
    const { traces, stats } = build('prefix_merging', expand(records));
    expect(traces.map(({ routedExperts }) => routedExperts?.known.length)).to.deep.equal([6, undefined]);
    expect(stats.expertsDropped).to.deep.equal({ too_large: 1 });
  });

  it('cost no more than the way to the first call', () => {
    let chain: ExpertRows | undefined;
    const ids = Array.from({ length: 20_001 }, (_, i) => i % 100);
    for (let to = 1; to <= 20_000; to++) {
      chain = { own: rowsOf(ids.slice(0, to + 1), to - 1), base: chain, baseCallId: '', baseLength: to };
    }
    const column = traceExperts(chain, ids.length)!;
    expect(column.known.indexOf(0)).to.equal(20_000);
    expect([...column.rows.subarray(0, -2)]).to.deep.equal([...rowsOf(ids).rows]);
  });
});
