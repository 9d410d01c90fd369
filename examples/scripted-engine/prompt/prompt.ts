// Prompt ids of a request, in text mode: the whole conversation is rendered and encoded each time.
import { Template } from '@huggingface/jinja';
import { RequestFault } from '../faults.ts';
import type { ChatRequest } from '../request.ts';
import type { Switches } from '../switches.ts';
import { otherwiseSplit } from '../tokenizer/split.ts';
import type { Model, Tokenizer } from '../tokenizer/tokenizer.ts';
import { toTemplate } from './messages.ts';

export class Prompts {
  readonly #tokenizer: Tokenizer;
  readonly #template: Template;
  readonly #turnStart: readonly number[];
  readonly #turnEnd: number;

  constructor(model: Model) {
    this.#tokenizer = model.tokenizer;
    this.#template = new Template(model.chatTemplate);
    this.#turnStart = model.tokenizer.encode('<|im_start|>assistant\n');
    this.#turnEnd = model.tokenizer.idOf('<|im_end|>');
  }

  /** Throws a RequestFault for what the template refuses. */
  text(request: ChatRequest, switches: Switches): string {
    if (switches.system_first && request.messages.some(({ role }, i) => i > 0 && role === 'system')) {
      throw new RequestFault(400, 'System message must be at the beginning.');
    }
    return this.#template.render({
      messages: toTemplate(request.messages, switches),
      ...(request.tools != null && request.tools.length > 0 ? { tools: request.tools } : {}),
      add_generation_prompt: request.add_generation_prompt ?? true,
      ...request.chat_template_kwargs,
    });
  }

  ids(request: ChatRequest, switches: Switches): number[] {
    const ids = this.#tokenizer.encode(this.text(request, switches));
    return switches.retokenise_history ? this.#splitTurns(ids) : ids;
  }

  /** The same text, but of each finished assistant turn some tokens are the two that they were merged from. */
  #splitTurns(ids: readonly number[]): number[] {
    const out: number[] = [];
    for (let at = 0; at < ids.length; ) {
      const end = this.#turnStart.every((id, i) => ids[at + i] === id) ? ids.indexOf(this.#turnEnd, at) : -1;
      if (end < 0) {
        out.push(ids[at++] as number);
        continue;
      }
      const turn = at + this.#turnStart.length;
      out.push(...this.#turnStart, ...otherwiseSplit(this.#tokenizer, ids.slice(turn, end)));
      at = end;
    }
    return out;
  }
}
