// Whether a node has an image that a task names: engines list their images with a tag and without the usual registry.
import type { Offer } from '../../../gen/ts/polar/event/v1/work_pb.js';

/** Registries and folders that engines put before a name, or leave out. */
const USUAL = /^((index\.)?docker\.io\/|localhost\/)?(library\/)?/;
const TAGGED = /:[^/]*$/;
/** By digest or by id: engines list neither, and what was fetched by one has no name that they list. */
const UNLISTED = /@|^(sha256:)?[0-9a-f]{4,64}$/;

/** A name in the one form in which it is compared. */
function comparable(name: string): string {
  const short = name.replace(USUAL, '');
  return TAGGED.test(short) ? short : `${short}:latest`;
}

const compared = new WeakMap<Offer, ReadonlySet<string>>();

/** Where the list does not tell, the node itself decides. */
export function hasImage(offer: Offer, image: string): boolean {
  if (image === '' || offer.others || UNLISTED.test(image) || offer.images.includes(image)) return true;
  let names = compared.get(offer);
  if (names === undefined) {
    names = new Set(offer.images.map(comparable));
    compared.set(offer, names);
  }
  return names.has(comparable(image));
}
