import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { OfferSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { hasImage } from './images.ts';

const offer = (more: MessageInitShape<typeof OfferSchema> = {}) =>
  create(OfferSchema, {
    backend: 'docker',
    images: ['python:3.12', 'localhost/mine:1', 'tools:latest'],
    ...more,
  });

describe('images of a node', () => {
  it('have several names', () => {
    const of = offer();
    for (const name of [
      'python:3.12',
      'docker.io/library/python:3.12',
      'index.docker.io/library/python:3.12',
      'library/python:3.12',
      'mine:1',
      'tools',
      'tools:latest',
      '',
    ]) {
      expect(hasImage(of, name), name).to.equal(true);
    }
  });

  it('are others where tag, registry or name differ', () => {
    const of = offer();
    for (const name of ['pyhton:3.12', 'python', 'python:3.13', 'quay.io/python:3.12', 'other/python:3.12']) {
      expect(hasImage(of, name), name).to.equal(false);
    }
  });

  it('are left to the node by digest and by id, and where it fetches', () => {
    for (const name of [`python@sha256:${'a'.repeat(64)}`, `sha256:${'b'.repeat(64)}`, 'bada55c0ffee']) {
      expect(hasImage(offer(), name), name).to.equal(true);
      expect(hasImage(offer({ images: [] }), name), `${name} of none that has a name`).to.equal(true);
    }
    expect(hasImage(offer({ others: true }), 'pyhton:3.12')).to.equal(true);
    expect(hasImage(offer({ images: [] }), 'python:3.12')).to.equal(false);
  });
});
