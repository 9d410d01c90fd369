import { expect } from 'chai';
import { imageFault } from './images.ts';

const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';

describe('images', () => {
  it('are taken by address and as base64', () => {
    const urls = [
      'https://example.test/a.png',
      'http://h/x',
      `data:image/png;base64,${PNG}`,
      'data:image/svg+xml;base64,PHN2Zz4=',
    ];
    for (const url of urls) expect(imageFault(url, { imageUrls: true }), url).to.equal(undefined);
  });

  it('are refused where they are none', () => {
    const urls = [
      '',
      'ftp://h/x',
      'http://',
      'data:text/plain;base64,AAAA',
      'data:image/png,AAAA',
      'data:image/png;base64,',
      'data:image/png;base64,AAA',
      'data:image/png;base64,not base64!',
      'data:image/png;base64,AAAAAAAA',
      `data:image/jpeg;base64,${PNG}`,
    ];
    for (const url of urls) expect(imageFault(url, { imageUrls: true }), url).to.be.a('string');
  });

  it('are refused by address where that is not allowed', () => {
    for (const url of ['https://example.test/a.png', 'HTTP://h/x', 'ftp://h/x'])
      expect(imageFault(url, { imageUrls: false }), url).to.include('image_urls');
    expect(imageFault(`data:image/png;base64,${PNG}`, { imageUrls: false })).to.equal(undefined);
  });
});
