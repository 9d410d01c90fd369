import { expect } from 'chai';
import { PolarError } from '../../../common/errors.ts';
import { type JsonObject, objectOf } from '../../domain/json.ts';
import { digestMessage } from '../../domain/messages.ts';
import type { Asked } from '../dialect.ts';
import { Faults } from '../faults.ts';
import { googleGenerate } from './dialect.ts';
import { choiceOf } from './tools.ts';

const read = (body: JsonObject): Asked =>
  googleGenerate.read(body, { kind: 'generate', dialect: 'google-generate', model: 'alias', stream: false });
const hello: JsonObject = { role: 'user', parts: [{ text: 'hello' }] };
const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';

function faultsOf(body: JsonObject): string[] {
  try {
    read(body);
  } catch (error) {
    expect(error).to.be.instanceOf(PolarError).with.property('reason', 'DIALECT_INVALID');
    return (error as PolarError).fields.map(({ field }) => field);
  }
  return [];
}

describe('google-generate request', () => {
  it('reads contents in camel case and with underscores alike', () => {
    const image = { mimeType: 'image/png', data: PNG };
    const camel = read({
      systemInstruction: { parts: [{ text: 'be brief' }] },
      contents: [hello, { role: 'user', parts: [{ text: 'see' }, { inlineData: image }] }],
    });
    const under = read({
      system_instruction: { parts: { text: 'be brief' } },
      contents: [
        { parts: [{ text: 'hello' }] },
        { role: 'user', parts: [{ text: 'see' }, { inline_data: { mime_type: 'image/png', data: PNG } }] },
      ],
    });
    expect(camel.messages).to.deep.equal([
      { role: 'system', content: 'be brief' },
      { role: 'user', content: 'hello' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'see' },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } },
        ],
      },
    ]);
    expect(under.messages).to.deep.equal(camel.messages);
  });

  it('reads images in base64 for URLs, as Google’s client for Python writes it, and without its end', () => {
    const bytes = Buffer.concat([Buffer.from(PNG, 'base64'), Buffer.from('fffefbffbf', 'hex')]);
    const data = bytes.toString('base64url');
    const urlOf = (given: string): unknown =>
      read({ contents: [{ parts: [{ inlineData: { mimeType: 'image/png', data: given } }] }] }).messages[0];
    const plain = bytes.toString('base64');
    expect(data).to.match(/[-_]/).and.not.equal(plain);
    for (const given of [data, `${data}==`.slice(0, plain.length)])
      expect(urlOf(given)).to.deep.equal(urlOf(plain));
  });

  it('pairs responses with their calls by id, and by name in order where there is none', () => {
    const call = (name: string, args: JsonObject, id?: string) => ({
      functionCall: { name, args, ...(id !== undefined && { id }) },
    });
    const response = (name: string, output: string, more: JsonObject = {}) => ({
      functionResponse: { name, response: { output }, ...more },
    });
    const asked = read({
      contents: [
        hello,
        {
          role: 'model',
          parts: [{ text: 'two' }, call('ls', { p: 1 }), call('ls', { p: 2 }), call('cat', {}, 'x')],
        },
        {
          role: 'user',
          parts: [
            response('ls', 'one'),
            response('cat', 'three', {
              id: 'x',
              parts: [{ inlineData: { mimeType: 'image/png', data: PNG } }],
            }),
            { functionResponse: { name: 'ls', response: { error: 'no' } } },
            { text: 'go on' },
          ],
        },
      ],
    });
    const [, said, ...answers] = asked.messages;
    expect(said).to.deep.equal({
      role: 'assistant',
      content: 'two',
      tool_calls: [
        { id: 'call_0', type: 'function', function: { name: 'ls', arguments: '{"p":1}' } },
        { id: 'call_1', type: 'function', function: { name: 'ls', arguments: '{"p":2}' } },
        { id: 'x', type: 'function', function: { name: 'cat', arguments: '{}' } },
      ],
    });
    expect(answers).to.deep.equal([
      { role: 'tool', tool_call_id: 'call_0', content: 'one' },
      {
        role: 'tool',
        tool_call_id: 'x',
        content: [
          { type: 'text', text: 'three' },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } },
        ],
      },
      { role: 'tool', tool_call_id: 'call_1', content: '{"error":"no"}' },
      { role: 'user', content: 'go on' },
    ]);
  });

  it('gives back a reply so that it is known again, with and without its thoughts', () => {
    const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{ "b": "\\u006c" }' } };
    for (const message of [
      { role: 'assistant', content: 'x', reasoning_content: 'because 🤔', tool_calls: [call] },
      {
        role: 'assistant',
        content: null,
        reasoning_content: 'because',
        tool_calls: [call, { ...call, id: 'b' }],
      },
      { role: 'assistant', content: 'only text', reasoning_content: 'why not' },
    ]) {
      for (const includeThoughts of [true, false]) {
        const { content } = shownOf(message, includeThoughts);
        // Gemini CLI drops thoughts and keeps signatures.
        for (const parts of [content, content.filter(({ thought }) => thought !== true)]) {
          const [, back] = read({ contents: [hello, { role: 'model', parts: [...parts] }] }).messages;
          expect(digestMessage(back ?? null).digest).to.equal(digestMessage(message).digest);
        }
      }
    }
  });

  it('makes one message of the pieces of a stream, and two of two replies', () => {
    const shown = shownOf({ content: 'x', reasoning_content: 'why' }, true).content;
    const pieces = shown.map((part) => ({ role: 'model', parts: [part] }));
    const said = { role: 'assistant', content: 'x', reasoning_content: 'why' };
    const asked = [hello, ...pieces, hello];
    const first = read({ contents: asked }).messages;
    expect(first).to.deep.equal([
      { role: 'user', content: 'hello' },
      said,
      { role: 'user', content: 'hello' },
    ]);
    const again = read({ contents: [...asked, ...pieces, ...pieces] }).messages;
    for (const [i, message] of first.entries()) expect(again[i]).to.equal(message);
    expect(again.slice(3)).to.deep.equal([said, said]);
    const faulty = [hello, ...pieces, { role: 'model', parts: [] }];
    expect(faultsOf({ contents: faulty })).to.deep.equal([`contents[${faulty.length - 1}].parts`]);
  });

  it('believes no signature of someone else', () => {
    const parts = [{ functionCall: { name: 'f' }, thoughtSignature: 'skip_thought_signature_validator' }];
    const [, said] = read({ contents: [hello, { role: 'model', parts }] }).messages;
    expect(said).to.have.all.keys('role', 'content', 'tool_calls');
  });

  it('takes null where a schema is nullable, and names with underscores within schemas', () => {
    const schemaOf = (parameters: JsonObject) => {
      const [tool] = read({
        contents: [hello],
        tools: [{ functionDeclarations: [{ name: 'f', parameters }] }],
      }).tools;
      return objectOf(tool?.['function'])['parameters'];
    };
    expect(schemaOf({ type: 'STRING', enum: ['a'], nullable: true })).to.deep.equal({
      type: ['string', 'null'],
      enum: ['a', null],
    });
    const either = [{ type: 'STRING' }, { type: 'ARRAY', min_items: '1' }];
    const anyOf = [{ type: 'string' }, { type: 'array', minItems: 1 }, { type: 'null' }];
    expect(schemaOf({ any_of: either, nullable: true })).to.deep.equal({ anyOf });
    expect(
      schemaOf({ properties: { any_of: { type: 'STRING' } }, property_ordering: ['any_of'] }),
    ).to.deep.equal({
      properties: { any_of: { type: 'string' } },
    });
    // As google-generativeai writes types over REST.
    const tags = { type: 5, items: { type: 1 }, nullable: true };
    expect(schemaOf({ type: 6, properties: { tags } })).to.deep.equal({
      type: 'object',
      properties: { tags: { type: ['array', 'null'], items: { type: 'string' } } },
    });
  });

  it('says the fields in the engine’s words', () => {
    const asked = read({
      contents: [hello],
      generationConfig: {
        maxOutputTokens: 9,
        temperature: 1,
        topP: 0.95,
        topK: 64,
        stopSequences: ['END'],
        candidateCount: 2,
        presencePenalty: 0.1,
        frequencyPenalty: 0.2,
        seed: 3,
        responseMimeType: 'application/json',
        responseSchema: {
          type: 'OBJECT',
          properties: {
            type: { type: 'STRING', nullable: true },
            list: { type: 'ARRAY', items: { type: 'INTEGER' }, minItems: '1' },
          },
          propertyOrdering: ['type'],
        },
        thinkingConfig: { includeThoughts: true, thinkingLevel: 'LOW' },
      },
      safetySettings: [{ category: 'x' }],
    });
    expect(asked).to.include({ n: 2, model: 'alias', stream: false });
    const schema = {
      type: 'object',
      properties: {
        type: { type: ['string', 'null'] },
        list: { type: 'array', items: { type: 'integer' }, minItems: 1 },
      },
    };
    expect(asked.fields).to.deep.equal({
      max_tokens: 9,
      temperature: 1,
      top_p: 0.95,
      top_k: 64,
      stop: ['END'],
      presence_penalty: 0.1,
      frequency_penalty: 0.2,
      seed: 3,
      chat_template_kwargs: { enable_thinking: true },
      reasoning_effort: 'low',
      response_format: { type: 'json_schema', json_schema: { name: 'output', schema, strict: true } },
    });
  });

  it('takes a schema in each of the forms that the API has had for it', () => {
    const schema = { type: 'object' };
    const format = (generationConfig: JsonObject) => read({ contents: [hello], generationConfig }).fields;
    const expected = {
      response_format: { type: 'json_schema', json_schema: { name: 'output', schema, strict: true } },
    };
    expect(format({ responseSchema: { type: 'OBJECT' } })).to.deep.equal(expected);
    expect(format({ responseJsonSchema: schema })).to.deep.equal(expected);
    const text = { mimeType: 'application/json', schema };
    expect(format({ responseFormat: [{ text }] })).to.deep.equal(expected);
    expect(format({ responseFormat: [{ text: { schema } }] })).to.deep.equal(expected);
    expect(format({ responseFormat: [{ text: { mimeType: 'text/plain' } }] })).to.deep.equal({});
  });

  it('offers tools, all or those that may be called', () => {
    const functionDeclarations = [
      { name: 'f', description: 'd', parameters: { type: 'OBJECT', properties: { a: { type: 'STRING' } } } },
      { name: 'g', parametersJsonSchema: { type: 'object', additionalProperties: false } },
      { name: 'h' },
    ];
    const withMode = (functionCallingConfig: JsonObject) =>
      read({ contents: [hello], tools: [{ functionDeclarations }], toolConfig: { functionCallingConfig } });
    const names = ({ tools }: Asked) => tools.map((tool) => (tool['function'] as JsonObject)['name']);
    expect(withMode({}).tools[0]).to.deep.equal({
      type: 'function',
      function: {
        name: 'f',
        description: 'd',
        parameters: { type: 'object', properties: { a: { type: 'string' } } },
      },
    });
    expect(names(withMode({ mode: 'ANY', allowedFunctionNames: ['g'] }))).to.deep.equal(['g']);
    for (const [mode, choice] of [
      ['AUTO', 'auto'],
      ['ANY', 'required'],
      ['NONE', 'none'],
      ['VALIDATED', 'auto'],
      [2, 'required'],
    ] as const) {
      const asked = withMode({ mode });
      expect(names(asked)).to.deep.equal(['f', 'g', 'h']);
      expect(asked.fields).to.deep.equal({ tool_choice: choice });
    }
  });

  it('goes over tools once, however many may be called', () => {
    const many = 1_000;
    let reads = 0;
    const counted = () => ({
      function: {
        get name() {
          reads++;
          return 'f';
        },
      },
    });
    const tools = [...Array.from({ length: many }, counted), { function: { name: 'z' } }];
    const functionCallingConfig = { mode: 'ANY', allowedFunctionNames: Array(many).fill('z') };
    const { tools: left } = choiceOf({ functionCallingConfig }, tools, new Faults());
    expect(left).to.deep.equal([{ function: { name: 'z' } }]);
    expect(reads).to.be.within(many, many * 10);
  });

  it('is refused with the kind of a part that has no place there', () => {
    const told = (role: string, part: JsonObject): string => {
      try {
        return JSON.stringify(read({ contents: [hello, { role, parts: [part] }] }).messages);
      } catch (error) {
        return (error as Error).message;
      }
    };
    const image = { inlineData: { mimeType: 'image/png', data: 'AAAA' } };
    expect(told('model', image)).to.match(
      /^contents\[1\]\.parts\[0\]\.inlineData: is not offered in this place/,
    );
    expect(told('user', { functionCall: { name: 'f' } })).to.match(
      /parts\[0\]\.functionCall: is not offered/,
    );
    const code = { thoughtSignature: 'x', executableCode: { code: 'x' } };
    expect(told('model', code)).to.match(/executableCode: parts of this kind are not offered/);
    expect(told('model', { ...image, functionResponse: {} })).to.match(/must hold one kind of data/);
  });

  it('is refused with the field’s name', () => {
    const user = (...parts: JsonObject[]) => ({ contents: [{ role: 'user', parts }] });
    const part = 'contents[0].parts[0]';
    const cases: [JsonObject, string][] = [
      [{}, 'contents'],
      [{ contents: [3] }, 'contents[0]'],
      [{ contents: [{ role: 'robot', parts: [{ text: 'x' }] }] }, 'contents[0].role'],
      [{ contents: [{ role: 'user', parts: [] }] }, 'contents[0].parts'],
      [user({}), part],
      [user({ executableCode: { code: 'x' } }), part],
      [user({ inlineData: { mimeType: 'audio/wav', data: 'AAAA' } }), `${part}.inlineData.mimeType`],
      [user({ inlineData: { mimeType: 'image/png', data: 'AAAA' } }), `${part}.inlineData.data`],
      [user({ fileData: { fileUri: 'gs://b/x.png' } }), `${part}.fileData.fileUri`],
      [user({ functionResponse: { name: 'f', response: {} } }), `${part}.functionResponse.name`],
      [user({ functionResponse: { id: 'x', response: {} } }), `${part}.functionResponse.id`],
      [{ contents: [hello], generationConfig: { topP: 3 } }, 'generationConfig.topP'],
      [
        { contents: [hello], generationConfig: { responseModalities: ['AUDIO'] } },
        'generationConfig.responseModalities',
      ],
      [
        { contents: [hello], generationConfig: { thinkingConfig: { thinkingLevel: 'DEEP' } } },
        'generationConfig.thinkingConfig.thinkingLevel',
      ],
      [
        { contents: [hello], generationConfig: { responseMimeType: 'text/plain', responseSchema: {} } },
        'generationConfig.responseMimeType',
      ],
      [
        { contents: [hello], generationConfig: { responseFormat: [{ image: {} }] } },
        'generationConfig.responseFormat',
      ],
      [
        { contents: [hello], generationConfig: { responseFormat: [{ text: { mimeType: 'text/csv' } }] } },
        'generationConfig.responseFormat[0].text.mimeType',
      ],
      [{ contents: [hello], cachedContent: 'c' }, 'cachedContent'],
      [{ contents: [hello], continuationToken: 't' }, 'continuationToken'],
      [{ contents: [hello], tools: [{ googleSearch: {} }] }, 'tools[0].googleSearch'],
      [
        { contents: [hello], tools: [{ functionDeclarations: [{}] }] },
        'tools[0].functionDeclarations[0].name',
      ],
      [
        { contents: [hello], toolConfig: { functionCallingConfig: { mode: 'ANY' } } },
        'toolConfig.functionCallingConfig.mode',
      ],
    ];
    for (const [body, field] of cases) expect(faultsOf(body), field).to.include(field);
    expect(faultsOf({ contents: [hello], generationConfig: { responseModalities: ['TEXT'] } })).to.deep.equal(
      [],
    );
    expect(() => read({ contents: [hello], tools: [{ codeExecution: {} }] })).to.throw(
      /codeExecution .*not offered/,
    );
  });

  it('reads the request within a question for its length', () => {
    const asked = read({ generateContentRequest: { model: 'models/x', contents: [hello] } });
    expect(asked.messages).to.deep.equal([{ role: 'user', content: 'hello' }]);
  });
});

/** The parts of a message as the harness is shown them. */
function shownOf(message: JsonObject, includeThoughts: boolean): { content: JsonObject[] } {
  const asked = read({ contents: [hello], generationConfig: { thinkingConfig: { includeThoughts } } });
  const shown = asked.writer('m').whole({ choices: [{ message: { ...message }, finish_reason: 'stop' }] });
  const [candidate] = shown['candidates'] as { content: { parts: JsonObject[] } }[];
  return { content: candidate?.content.parts ?? [] };
}
