import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { SamplingSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { CompletionSchema } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import type { JsonObject } from './json.ts';
import { overrideSampling, samplingOf } from './sampling.ts';

describe('sampling', () => {
  it('of the task replaces that of the harness, and leaves the rest', () => {
    const body = { temperature: 0, top_p: 0.5, max_completion_tokens: 9, stop: ['.'] };
    overrideSampling(body, create(SamplingSchema, { temperature: 1, maxTokens: 64 }));
    expect(body).to.deep.equal({ temperature: 1, top_p: 0.5, max_tokens: 64, stop: ['.'] });
  });

  it('sets what is zero, and nothing where the task sets nothing', () => {
    const body = { temperature: 1 };
    overrideSampling(body, create(SamplingSchema, { temperature: 0, seedBase: 0 }));
    expect(body).to.deep.equal({ temperature: 0, seed: 0 });
    overrideSampling(body, undefined);
    expect(body).to.deep.equal({ temperature: 0, seed: 0 });
  });

  it('is recorded without prompt, tools and engine fields', () => {
    const body = { model: 'm', messages: [], tools: [], logprobs: true, seed: 3, tool_choice: 'none' };
    expect(samplingOf(body)).to.deep.equal({ seed: 3, tool_choice: 'none' });
  });

  it('can be read back from a record, however deep it is', () => {
    let deep: JsonObject = {};
    for (let i = 0; i < 90; i++) deep = { a: deep };
    const sampling = samplingOf({ response_format: deep, chat_template_kwargs: { a: [true] } });
    const record = create(CompletionSchema, { sampling });
    expect(fromBinary(CompletionSchema, toBinary(CompletionSchema, record)).sampling).to.deep.equal({
      response_format: JSON.stringify(deep),
      chat_template_kwargs: { a: [true] },
    });
  });
});
