// Whole numbers in NumPy's file format (.npy), as vLLM tells its routed experts.

/** Numbers of an array, row by row. */
export interface NpyArray {
  readonly shape: readonly number[];
  readonly values: Uint8Array | Uint16Array | Int32Array;
}

const MAGIC = Buffer.from('\x93NUMPY', 'latin1');
/** Behind the magic: two bytes of version, then the length of the head, in two bytes or, from version 2 on, four. */
const VERSION_AT = 6;
const LENGTH_AT = 8;
/** A head is text of some hundred bytes. */
const HEAD_BYTES_MAX = 4_096;

const TYPES = { '|u1': Uint8Array, '<u2': Uint16Array, '<i4': Int32Array } as const;
const HEAD = /'descr': '([^']+)', 'fortran_order': False, 'shape': \(([\d, ]*)\)/;

/** Undefined where the bytes are not an array of uint8, uint16 or int32 as NumPy writes it, or break off. */
export function readNpy(bytes: Buffer): NpyArray | undefined {
  if (bytes.length < LENGTH_AT + 4 || !bytes.subarray(0, MAGIC.length).equals(MAGIC)) return undefined;
  const isFirst = bytes[VERSION_AT] === 1;
  const headAt = LENGTH_AT + (isFirst ? 2 : 4);
  const length = isFirst ? bytes.readUInt16LE(LENGTH_AT) : bytes.readUInt32LE(LENGTH_AT);
  if (length > HEAD_BYTES_MAX) return undefined;
  const [, descr = '', told = ''] = HEAD.exec(bytes.toString('latin1', headAt, headAt + length)) ?? [];
  const type = TYPES[descr as keyof typeof TYPES];
  if (type === undefined) return undefined;
  const shape = told.split(',').flatMap((one) => (one.trim() === '' ? [] : [Number(one)]));
  const count = shape.reduce((product, one) => product * one, 1);
  // Copied, as numbers of several bytes must lie at even places.
  const data = new Uint8Array(bytes.subarray(headAt + length));
  if (data.byteLength !== count * type.BYTES_PER_ELEMENT) return undefined;
  return { shape, values: new type(data.buffer) };
}
