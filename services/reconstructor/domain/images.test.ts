import { expect } from 'chai';
import { imageLines } from './images.ts';

const bodyWith = (url: string): string =>
  JSON.stringify({ role: 'user', content: [{ type: 'image_url', image_url: { url } }] });
const told = (url: string): { media_type: string; size_bytes: number; data: string }[] =>
  [...imageLines([bodyWith(url)])].map((line) => JSON.parse(line));

describe('images of messages', () => {
  it('have their type before what else an address says', () => {
    for (const [head, mediaType] of [
      ['data:image/png;base64,', 'image/png'],
      ['DATA:Image/PNG;name=a;charset=b;BASE64,', 'image/png'],
      ['data:;base64,', ''],
    ]) {
      expect(told(`${head}AQID`), head).to.have.deep.nested.property('[0].media_type', mediaType);
      expect(told(`${head}AQID`)[0]).to.include({ data: 'AQID', size_bytes: 3 });
    }
  });

  it('are left out where their bytes are elsewhere, however long the address is', () => {
    const long = 'a'.repeat(400_000);
    for (const url of [
      'https://example.test/a.png',
      `data:${long}`,
      `data:${long};${long}`,
      'data:image/png,x',
    ])
      expect(told(url)).to.deep.equal([]);
  });
});
