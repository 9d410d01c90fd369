import { expect } from 'chai';
import { loadIn } from './engine-load.ts';

describe('load of an engine', () => {
  it('is read from the metrics of each kind', () => {
    const sglang = '# HELP sglang:num_queue_reqs x\nsglang:num_queue_reqs{model_name="a b} 7"} 3.0\n';
    expect(loadIn(`${sglang}sglang:token_usage{tp_rank="0"} 0.28\n`)).to.deep.equal({
      callsWaiting: 3,
      cacheUse: 0.28,
    });
    expect(
      loadIn('vllm:num_requests_waiting 2.0 1700000000000\r\nvllm:kv_cache_usage_perc 9e-1'),
    ).to.deep.equal({ callsWaiting: 2, cacheUse: 0.9 });
    expect(loadIn('llamacpp:requests_deferred 1\nllamacpp:requests_processing 4')).to.deep.equal({
      callsWaiting: 1,
      cacheUse: undefined,
    });
  });

  it('adds up what waits in several parts, and takes the fullest cache', () => {
    const text = ['0', '1'].map(
      (engine) =>
        `vllm:num_requests_waiting{engine="${engine}"} 4\nvllm:kv_cache_usage_perc{engine="${engine}"} 0.${engine}5\n`,
    );
    expect(loadIn(text.join(''))).to.deep.equal({ callsWaiting: 8, cacheUse: 0.15 });
  });

  it('is unknown where there are no such metrics', () => {
    for (const text of ['', '<html>', '{"error":"x"}', 'vllm:num_requests_waiting NaN', 'other 1']) {
      expect(loadIn(text), text).to.equal(undefined);
    }
  });
});
