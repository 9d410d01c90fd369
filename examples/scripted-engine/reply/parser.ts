// Takes a reply's text apart as the engines' reasoning and tool-call parsers do, token by token.
import type { ToolDefinition } from '../request.ts';
import type { Switches } from '../switches.ts';
import { JsonEnd } from './json-end.ts';
import { readXmlCall } from './xml-call.ts';

export interface CallDelta {
  readonly index: number;
  /** Set in the first delta of a call. */
  name?: string;
  arguments: string;
}

/** What one token adds to the message. */
export interface Delta {
  reasoning: string;
  content: string;
  readonly calls: CallDelta[];
}

export interface ParserOptions {
  readonly format: Switches['tool_format'];
  readonly keepContentNewline: boolean;
  /** Empty: tool calls stay text. */
  readonly tools: readonly ToolDefinition[];
}

type State = 'start' | 'reasoning' | 'content' | 'header' | 'arguments' | 'tail';

const HEADER = /^\s*\{\s*"name":\s*"([^"]*)",\s*"arguments":\s*/;

export class ReplyParser {
  readonly #options: ParserOptions;
  #state: State = 'start';
  /** Nothing of the present part has come yet. */
  #fresh = false;
  /** Newlines that are text only if text follows. */
  #newlines = '';
  /** A call's text so far, as long as it is not complete. */
  #open = '';
  #header = '';
  #calls = 0;
  #end = new JsonEnd();
  #delta: Delta = emptyDelta();

  constructor(options: ParserOptions) {
    this.#options = options;
  }

  /** Text of a call that has begun and not ended. */
  get openCall(): string {
    return this.#open;
  }

  get completeCalls(): number {
    return this.#calls;
  }

  /** The text of one token: a tag comes alone, because it is one token. */
  feed(piece: string): Delta {
    this.#delta = emptyDelta();
    if (piece !== '') this.#take(piece);
    return this.#delta;
  }

  /** What was held back and is text after all. */
  flush(): Delta {
    this.#delta = emptyDelta();
    if (this.#state === 'content' && this.#calls === 0) this.#delta.content = this.#newlines;
    return this.#delta;
  }

  #take(piece: string): void {
    switch (this.#state) {
      case 'start':
        this.#fresh = piece === '<think>';
        this.#state = this.#fresh ? 'reasoning' : 'content';
        if (!this.#fresh) this.#takeContent(piece);
        break;
      case 'reasoning':
        if (piece === '</think>') this.#startContent();
        else this.#delta.reasoning += this.#withoutEdges(piece);
        break;
      case 'content':
        this.#takeContent(piece);
        break;
      default:
        this.#takeCall(piece);
    }
  }

  #startContent(): void {
    this.#state = 'content';
    this.#fresh = true;
    this.#newlines = '';
  }

  #takeContent(piece: string): void {
    if (piece !== '<tool_call>' || this.#options.tools.length === 0) {
      this.#delta.content += this.#withoutEdges(piece);
      return;
    }
    this.#open = piece;
    if (this.#options.keepContentNewline && this.#calls === 0) this.#delta.content += this.#newlines;
    else this.#open = this.#newlines + piece;
    this.#header = '';
    this.#end = new JsonEnd();
    this.#state = 'header';
  }

  /** Newlines at the start of a part are dropped; later ones wait for what follows. */
  #withoutEdges(piece: string): string {
    let text = this.#newlines + piece;
    if (this.#fresh) text = text.replace(/^\n+/, '');
    if (text !== '') this.#fresh = false;
    const end = text.search(/\n*$/);
    this.#newlines = text.slice(end);
    return text.slice(0, end);
  }

  #takeCall(piece: string): void {
    this.#open += piece;
    if (piece === '</tool_call>') {
      this.#endCall();
    } else if (this.#state === 'header') {
      this.#header += piece;
      const match = this.#options.format === 'hermes' ? HEADER.exec(this.#header) : null;
      if (match === null) return;
      this.#state = 'arguments';
      this.#begin(match[1] ?? '', this.#header.slice(match[0].length));
    } else if (this.#state === 'arguments') {
      this.#addArguments(piece);
    }
  }

  #begin(name: string, rest: string): void {
    this.#delta.calls.push({ index: this.#calls, name, arguments: '' });
    this.#addArguments(rest);
  }

  #addArguments(piece: string): void {
    const text = this.#end.take(piece);
    if (this.#end.ended) this.#state = 'tail';
    if (text === '') return;
    const last = this.#delta.calls.at(-1);
    if (last?.index === this.#calls) last.arguments += text;
    else this.#delta.calls.push({ index: this.#calls, arguments: text });
  }

  #endCall(): void {
    const xml = this.#options.format === 'xml' ? readXmlCall(this.#open, this.#options.tools) : undefined;
    if (xml !== undefined) this.#delta.calls.push({ index: this.#calls, ...xml });
    if (xml !== undefined || this.#state === 'tail') this.#calls++;
    else this.#delta.content += this.#open;
    this.#open = '';
    this.#startContent();
  }
}

function emptyDelta(): Delta {
  return { reasoning: '', content: '', calls: [] };
}
