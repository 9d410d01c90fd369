import { expect } from 'chai';
import { ChunkReader } from './alike-chunks.ts';
import { ChunkTidier, tidyReply } from './engine-calls.ts';
import { arrayOf, type JsonObject, objectOf } from './json.ts';
import { parseReply } from './parse-reply.ts';

const ARGUMENTS = '{"id":9007199254740993,"all":[1.0,18446744073709551615],"text":"\\"arguments\\": {1.0}"}';
const CALL = `{"index":0,"id":"c","function":{"name":"f","arguments":${ARGUMENTS}}}`;

const argumentsIn = (said: JsonObject, member: string): unknown => {
  const message = objectOf(objectOf(arrayOf(said['choices'])[0])[member]);
  return objectOf(objectOf(arrayOf(message['tool_calls'])[0])['function'])['arguments'];
};

describe('arguments that an engine tells as values', () => {
  it('keep their digits in whole replies, and nothing else is otherwise', () => {
    for (const logprobs of [
      '',
      ',"logprobs":{"content":[{"token":"a","logprob":-1.0,"bytes":null,"top_logprobs":[]}]}',
    ]) {
      const text = `{"created":1.0,"choices":[{"index":0,"message":{"tool_calls":[${CALL}]}${logprobs}}],"usage":{"prompt_tokens":3.0}}`;
      const reply = objectOf(parseReply(Buffer.from(text), false));
      tidyReply(reply, () => 'new');
      expect(argumentsIn(reply, 'message')).to.equal(ARGUMENTS);
      expect([reply['created'], reply['usage']]).to.deep.equal([1, { prompt_tokens: 3 }]);
    }
  });

  it('keep them in chunks', () => {
    const chunk = objectOf(
      new ChunkReader(() => 'r').read(`{"id":"x","choices":[{"index":0,"delta":{"tool_calls":[${CALL}]}}]}`),
    );
    new ChunkTidier(() => 'new').tidy(chunk);
    expect(argumentsIn(chunk, 'delta')).to.equal(ARGUMENTS);
  });

  it('are taken as they can be read where the reply is no strict JSON', () => {
    const text = `{"choices":[{"message":{"tool_calls":[${CALL}]},"score":NaN}]}`;
    const reply = objectOf(parseReply(Buffer.from(text), false));
    tidyReply(reply, () => 'new');
    expect(argumentsIn(reply, 'message')).to.contain('"id":9007199254740992');
  });
});
