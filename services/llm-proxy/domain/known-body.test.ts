import { expect } from 'chai';
import { Bytes } from './bytes.ts';
import { engineText } from './engine-text.ts';
import type { JsonObject, JsonValue } from './json.ts';
import { KnownBodies } from './known-bodies.ts';
import { type KnownBody, type ReadBody, readBody } from './known-body.ts';

/** In pieces, as bodies come. */
const bytesOf = (text: string): Bytes => {
  const bytes = Buffer.from(text);
  const places = [0, 7, 20, 21, 60, 200, bytes.length];
  return new Bytes(places.slice(1).map((end, i) => bytes.subarray(places[i], end)));
};
const readOn = (text: string, ...earlier: KnownBody[]): ReadBody =>
  readBody(bytesOf(text), 'messages', earlier);
const read = (text: string, ...earlier: KnownBody[]): KnownBody => readOn(text, ...earlier).body;
const elementsOf = (body: KnownBody): readonly JsonValue[] => body.source?.elements ?? [];
const MESSAGES = [
  '{"role":"system","content":"a \\"b\\" \\\\"}',
  '{"role": "user", "content": [{"type":"text","text":"]}"}]}',
  '{"role":"assistant","content":"é\\u00e9 {["}',
  '12',
];
const bodyOf = (count: number, tail = '],"model":"m"}', head = '{"n":1,"messages": ['): string =>
  `${head}${MESSAGES.slice(0, count).join(' ,\n')} ${tail}`;

describe('known bodies', () => {
  it('are read as JSON.parse reads them', () => {
    for (let count = 0; count <= MESSAGES.length; count++) {
      const text = bodyOf(count);
      expect(read(text).value).to.deep.equal(JSON.parse(text));
      expect(elementsOf(read(text)).length).to.equal(count);
    }
  });

  it('keep the very elements that they share with an earlier one', () => {
    const first = read(bodyOf(2));
    const { body: second, goesOn } = readOn(bodyOf(4), first);
    expect(second.value).to.deep.equal(JSON.parse(bodyOf(4)));
    expect(elementsOf(second)[0]).to.equal(elementsOf(first)[0]);
    expect(elementsOf(second)[1]).to.equal(elementsOf(first)[1]);
    expect(goesOn).to.equal(first);
    const shorter = read(bodyOf(1), second);
    expect(elementsOf(shorter)[0]).to.equal(elementsOf(first)[0]);
    expect(shorter.value).to.deep.equal(JSON.parse(bodyOf(1)));
  });

  it('read other members anew where they differ, and keep them where they do not', () => {
    const first = read(bodyOf(2));
    const same = read(bodyOf(3), first);
    expect(same.source?.rest).to.equal(first.source?.rest);
    const other = read(bodyOf(3, '],"model":"other","x":[1]}'), first);
    expect(other.value).to.deep.equal(JSON.parse(bodyOf(3, '],"model":"other","x":[1]}')));
    expect(elementsOf(other)[1]).to.equal(elementsOf(first)[1]);
  });

  it('take nothing for known that could go on differently', () => {
    const first = read('{"messages":[1,12]}');
    const second = read('{"messages":[1,123]}', first);
    expect(second.value).to.deep.equal({ messages: [1, 123] });
    expect(read('{"messages":[1,12,3]}', first).value).to.deep.equal({ messages: [1, 12, 3] });
    expect(read('{"messages":[]}', first).value).to.deep.equal({ messages: [] });
  });

  it('hold nothing of the bodies before them but what they share, once', () => {
    let body = read(bodyOf(1));
    for (let count = 2; count <= MESSAGES.length; count++) body = read(bodyOf(count), body);
    const memory = new Set<ArrayBufferLike>();
    const look = (value: unknown): void => {
      if (Buffer.isBuffer(value)) memory.add(value.buffer);
      else if (typeof value === 'object' && value !== null) Object.values(value).forEach(look);
    };
    look(body);
    const held = [...memory].reduce((sum, { byteLength }) => sum + byteLength, 0);
    expect(held).to.be.within(body.bytes.length, body.bytes.length * 2);
    expect(body.bytes.text()).to.equal(bodyOf(MESSAGES.length));
  });

  it('hold nothing of what came', () => {
    const came = [2, 3].map((count) => bytesOf(bodyOf(count)));
    const [first, second] = came as [Bytes, Bytes];
    const { body } = readBody(second, 'messages', [readBody(first, 'messages', []).body]);
    for (const piece of came.flatMap(({ pieces }) => pieces)) piece.fill(0);
    expect(body.bytes.text()).to.equal(bodyOf(3));
  });

  it('are read whole where the member comes twice, is written otherwise, or is no array', () => {
    const first = read('{"messages":[1,2]}');
    for (const text of [
      '{"messages":[1,2,3],"messages":[4]}',
      '{"messages":[1,2,3],"messages":[]}',
      '{"messages":[1,2,3],"mess\\u0061ges":[]}',
      '{"messages":{"a":[1,2]}}',
      '{"a":{"messages":[1,2]}}',
      '[1]',
    ]) {
      expect(read(text, first).value, text).to.deep.equal(JSON.parse(text));
    }
  });

  it('are refused where JSON.parse refuses them', () => {
    const first = read('{"messages":[{"a":1},{"b":2}],"c":3}');
    const faults = [
      '{"messages":[{"a":1},{"b":2},],"c":3}',
      '{"messages":[{"a":1},{"b":2}{"c":1}],"c":3}',
      '{"messages":[{"a":1},{"b":2},{"c"}],"c":3}',
      '{"messages":[{"a":1},{"b":2}],"c":3',
      '{"messages":[{"a":1},{"b":2}],"c":3}}',
      '{"messages":[{"a":1},{"b":2]},"c":3}',
      '{"messages":[{"a":1},{"b":2},"x],"c":3}',
      '{"messages":[{"a":1},{"b":2},tru],"c":3}',
    ];
    for (const text of faults) expect(() => read(text, first), text).to.throw(SyntaxError);
  });

  it('read every cut and change of a body as JSON.parse does', () => {
    const first = read(bodyOf(3));
    const text = bodyOf(4);
    for (let i = 0; i < text.length; i++) {
      for (const changed of [text.slice(0, i), `${text.slice(0, i)}]${text.slice(i + 1)}`]) {
        let expected: unknown = SyntaxError;
        try {
          expected = JSON.parse(changed);
        } catch {}
        if (expected === SyntaxError) expect(() => read(changed, first), changed).to.throw(SyntaxError);
        else expect(read(changed, first).value, changed).to.deep.equal(expected);
      }
    }
  });
});

describe('bodies kept', () => {
  const [one, other] = [{}, {}];
  /** What one JSON value counts for beside the bytes. */
  const VALUE_BYTES = 64;
  const keep = (bodies: KnownBodies, attempt: object, text: string, values = 0): KnownBody => {
    const read = bodies.read(attempt, bytesOf(text), 'messages');
    bodies.keep(attempt, read, values);
    return read.body;
  };

  it('hold what goes on once, and conversations beside each other', () => {
    const bodies = new KnownBodies();
    const texts = [bodyOf(2), bodyOf(3), '{"messages":[{"x":1}]}', bodyOf(4)];
    const read = texts.map((text) => keep(bodies, one, text));
    expect(elementsOf(read[3] as KnownBody)[2]).to.equal(elementsOf(read[1] as KnownBody)[2]);
    expect(bodies.sizeBytes).to.equal(bytesOf(bodyOf(4)).length + bytesOf(texts[2] as string).length);
    bodies.forget(one);
    expect(bodies.sizeBytes).to.equal(0);
  });

  it('are bounded: the longest unused goes first', () => {
    const bodies = new KnownBodies(60);
    const text = '{"messages":[{"role":"user"}]}';
    const kept = keep(bodies, one, text);
    for (const attempt of [other, one, {}]) keep(bodies, attempt, text);
    expect(bodies.sizeBytes).to.equal(60);
    expect(elementsOf(keep(bodies, one, text))[0]).to.equal(elementsOf(kept)[0]);
  });

  it('are those that were taken, not all that were read', () => {
    const bodies = new KnownBodies();
    const refused = bodies.read(one, bytesOf(bodyOf(2)), 'messages').body;
    expect(bodies.sizeBytes).to.equal(0);
    expect(elementsOf(keep(bodies, one, bodyOf(2)))[0]).to.not.equal(elementsOf(refused)[0]);
  });

  it('count for the heap that their values take', () => {
    const text = `{"messages":[{}],"metadata":[${'{"a":{}},'.repeat(10_000)}{}]}`;
    const bodies = new KnownBodies(text.length * 10);
    keep(bodies, one, bodyOf(2));
    keep(bodies, other, text, 20_000);
    expect(bodies.sizeBytes).to.equal(0);
    keep(bodies, one, bodyOf(2), 5);
    expect(bodies.sizeBytes).to.equal(bytesOf(bodyOf(2)).length + 5 * VALUE_BYTES);
  });
});

describe('engine text', () => {
  const textOf = (body: JsonObject, source: KnownBody): string =>
    Buffer.concat(engineText(body, source.source)).toString();

  it('is the harness’s own bytes where a message is as it came, JSON where it is not', () => {
    const source = read(bodyOf(4));
    const [system, user, assistant, number] = elementsOf(source) as [
      JsonValue,
      JsonValue,
      JsonValue,
      JsonValue,
    ];
    const own = bodyOf(4).slice('{"n":1,"messages": ['.length, -' ],"model":"m"}'.length);
    expect(textOf({ a: 1, messages: [system, user, assistant, number], b: 'c' }, source)).to.equal(
      `{"a":1,"messages":[${own}],"b":"c"}`,
    );
    expect(textOf({ messages: [{ new: 1 }, user, { new: 2 }, number] }, source)).to.equal(
      `{"messages":[{"new":1},${MESSAGES[1]},{"new":2},12]}`,
    );
    expect(JSON.parse(textOf({ messages: [assistant, system, user] }, source))).to.deep.equal({
      messages: [assistant, system, user],
    });
  });

  it('is plain JSON without a source', () => {
    const body = { messages: [1, { a: '"' }], x: null };
    expect(Buffer.concat(engineText(body, undefined)).toString()).to.equal(JSON.stringify(body));
    expect(textOf({}, read(bodyOf(1)))).to.equal('{}');
  });
});
