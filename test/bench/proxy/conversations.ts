// What the load sends and the engine answers: texts, bodies and replies of fixed sizes, the same in every run.

const WORDS =
  'the build fails because of a missing import in module parser where function read_line returns None for empty input so that def test_read() -> "assert" x == 3 and\\n    return value path/to/file.py error'.split(
    ' ',
  );

/** Pseudo-random numbers below `n`, the same sequence for the same seed. */
function sequence(seed: number): (n: number) => number {
  let state = seed >>> 0 || 1;
  return (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

/** Text of code and talk, with what JSON must escape in it. */
function textOf(bytes: number, seed: number): string {
  const next = sequence(seed);
  const parts: string[] = [];
  for (let length = 0; length < bytes; ) {
    const word = WORDS[next(WORDS.length)] as string;
    parts.push(next(12) === 0 ? `${word}\n` : word);
    length += word.length + 1;
  }
  return parts.join(' ').slice(0, bytes);
}

interface Message {
  readonly role: string;
  readonly content: string;
}

const TOOLS = [
  {
    type: 'function',
    function: {
      name: 'bash',
      description: 'Run a command in the sandbox and return its output.',
      parameters: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
    },
  },
];

/** What comes behind the messages in every body. */
const tail = (stream: boolean): string =>
  `],"model":"policy","max_tokens":400,"temperature":1,"tools":${JSON.stringify(TOOLS)},"stream":${stream}}`;
const opening = (messages: readonly Message[]): string =>
  `{"messages":[${messages.map((message) => JSON.stringify(message)).join(',')}`;

/** Digits in each small body that make it another one. */
const COUNTER = '#00000000#';

/** A body of about `bytes`; `numbered` gives it with a number in its last message. */
export class SmallBody {
  readonly #bytes: Buffer;
  readonly #at: number;

  constructor(bytes: number, stream: boolean) {
    const short = [
      { role: 'system', content: textOf(bytes * 0.4, 1) },
      { role: 'user', content: textOf(bytes * 0.3, 2) },
      { role: 'assistant', content: REPLY_TEXT.slice(0, bytes * 0.05) },
    ];
    const last = (n: number): Message => ({ role: 'user', content: COUNTER + textOf(n, 3) });
    const missing = bytes - Buffer.byteLength(opening([...short, last(0)]) + tail(stream));
    this.#bytes = Buffer.from(opening([...short, last(Math.max(0, missing * 0.9))]) + tail(stream));
    this.#at = this.#bytes.indexOf(COUNTER) + 1;
  }

  numbered(n: number): Buffer {
    this.#bytes.write(String(n % 1e8).padStart(8, '0'), this.#at, 'latin1');
    return this.#bytes;
  }
}

/** What the engine says in every reply. */
export const REPLY_TEXT = textOf(800, 4);

/** A conversation that grows by the reply and `turnBytes` of a tool's output each turn. */
export class GrowingBody {
  readonly #parts: Buffer[];
  readonly #turnBytes: number;
  readonly #tail = Buffer.from(tail(false));
  #turn = 0;

  constructor(startBytes: number, turnBytes: number, seed: number) {
    this.#turnBytes = turnBytes;
    const messages: Message[] = [{ role: 'system', content: textOf(Math.min(startBytes, 10_000), seed) }];
    for (let length = 10_000, i = 0; length < startBytes; length += 9_000, i++) {
      messages.push({ role: i % 2 === 0 ? 'user' : 'assistant', content: textOf(9_000, seed + i) });
    }
    messages.push({ role: 'user', content: textOf(turnBytes, seed) });
    this.#parts = [Buffer.from(opening(messages))];
  }

  /** The body of this turn, in pieces. */
  get pieces(): readonly Buffer[] {
    return [...this.#parts, this.#tail];
  }

  /** Turns that it has had, those of earlier beginnings among them. */
  get turn(): number {
    return this.#turn;
  }

  /** Back to the start, for turns that say something else. */
  beginAnew(): void {
    this.#parts.length = 1;
  }

  /** The engine has answered: on to the next turn. */
  advance(reply = REPLY_TEXT): void {
    this.#turn++;
    const messages = [
      { role: 'assistant', content: reply },
      { role: 'user', content: textOf(this.#turnBytes, this.#turn) },
    ];
    this.#parts.push(Buffer.from(messages.map((message) => `,${JSON.stringify(message)}`).join('')));
    // Few pieces, so that the load does not pay for their number.
    if (this.#parts.length > 16) this.#parts.splice(1, 15, Buffer.concat(this.#parts.slice(1, 16)));
  }
}

/** Prompt ids of a small call, and sampled ones: as many as the bodies of the peers' benchmark. */
const PROMPT_IDS = 512;
const SAMPLED_IDS = 200;
/** Prompt ids that all conversations begin with. */
const SHARED_IDS = 480;

const idAt = (i: number): number => 1_000 + ((i * 7919) % 140_000);
const logprobAt = (i: number): number => -((i * 37) % 1000) / 997;

function choiceOf(sampled: readonly number[]): object {
  const entry = (i: number): object => ({
    token: ` w${i % 10}`,
    logprob: logprobAt(i),
    bytes: [32, 119, 48 + (i % 10)],
    top_logprobs: [],
  });
  return {
    index: 0,
    message: { role: 'assistant', content: REPLY_TEXT, refusal: null, tool_calls: [] },
    logprobs: { content: sampled.map((_, i) => entry(i)) },
    finish_reason: 'stop',
    stop_reason: null,
    token_ids: sampled,
  };
}

function replyOf(prompt: readonly number[], sampled: readonly number[]): Buffer {
  return Buffer.from(
    JSON.stringify({
      id: 'chatcmpl-5f0c2c8f3d6e4b7a',
      object: 'chat.completion',
      created: 1_790_000_000,
      model: 'served',
      choices: [choiceOf(sampled)],
      usage: {
        prompt_tokens: prompt.length,
        completion_tokens: sampled.length,
        total_tokens: prompt.length + sampled.length,
      },
      prompt_logprobs: null,
      prompt_token_ids: prompt,
    }),
  );
}

const count = (n: number, from = 0): number[] => Array.from({ length: n }, (_, i) => idAt(from + i));

/** The n-th of the replies to small calls; they differ behind what all prompts share. */
export function smallReply(n: number): Buffer {
  const own = 10_000 * (n + 1);
  return replyOf(
    [...count(SHARED_IDS), ...count(PROMPT_IDS - SHARED_IDS, own)],
    count(SAMPLED_IDS, own + PROMPT_IDS),
  );
}

/** In the text of every chunk stands when it was sent. */
export const STAMP = '@@';
export const STAMP_DIGITS = 16;

/** Events of a stream of `chunks` chunks: what opens it, the parts around a chunk's stamp, what ends it. */
export function streamParts(chunks: number): { open: string; before: string; after: string; end: string } {
  const head =
    '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"served","choices":';
  const ids = JSON.stringify(count(PROMPT_IDS));
  const first = `[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":${ids}}`;
  const after = `"},"logprobs":{"content":[{"token":" w","logprob":-0.25,"bytes":[32,119],"top_logprobs":[]}]},"finish_reason":null,"token_ids":[1234]}]}\n\n`;
  const last = `[{"index":0,"delta":{"content":""},"logprobs":null,"finish_reason":"stop","stop_reason":null,"token_ids":[2]}]}`;
  const usage = `[],"usage":{"prompt_tokens":${PROMPT_IDS},"completion_tokens":${chunks + 1},"total_tokens":${PROMPT_IDS + chunks + 1}}}`;
  return {
    open: `data: ${head}${first}\n\n`,
    before: `data: ${head}[{"index":0,"delta":{"content":"${STAMP}`,
    after,
    end: `data: ${head}${last}\n\ndata: ${head}${usage}\n\ndata: [DONE]\n\n`,
  };
}
