// Builds the ids that go on from a recorded call, with one renderer: what is new is rendered, what was served is not.
import { asPolarError } from '../../common/errors.ts';
import { Kept } from '../../common/kept.ts';
import { RENDER_MS, RENDERER_PROOF_AGAIN_MS, RENDERINGS_KEPT_MAX } from '../../common/limits.ts';
import type { GoesOn } from '../domain/attempt-state.ts';
import { commonSuffix, type Frame, type Shape, shapeOf, startsWith, tailOf } from '../domain/bridge.ts';
import type { Drift } from '../domain/drift.ts';
import { canonicalJson, type JsonObject } from '../domain/json.ts';
import { SKETCH_TOOLS, type Sketch, sketchOf, thinkingOf } from '../domain/template-sketch.ts';
import type { Render, Rendering } from './renderer.ts';

/** What an engine answers that does not render, or not this. */
const REFUSALS: ReadonlySet<string> = new Set(['ENGINE_REFUSED', 'ENGINE_ERROR']);

/** A frame, and whether the template writes down the ids of tool calls. */
type TemplateFrame = Frame & { readonly keepIds: boolean };

export class Bridges {
  readonly #render: Render;
  /** The engine's own. */
  readonly #engineRender: Render;
  readonly #frames = new Kept<Promise<TemplateFrame>>(RENDERINGS_KEPT_MAX);
  readonly #shapes = new Kept<Promise<Shape>>(RENDERINGS_KEPT_MAX);
  readonly #proofs = new Kept<{ readonly atMs: number; readonly proven: Promise<boolean> }>(
    RENDERINGS_KEPT_MAX,
  );

  constructor(render: Render, engineRender: Render = render) {
    this.#render = render;
    this.#engineRender = engineRender;
  }

  /**
   * The ids behind those of the recorded call; a reason where there is no bridge. Throws what a call of the engine
   * throws, but not that it refuses to render.
   */
  async continuation(goesOn: GoesOn, asked: Rendering, signal: AbortSignal): Promise<Int32Array | Drift> {
    try {
      if (!(await this.#isProven(goesOn, asked))) return 'renderer_differs';
      return await this.#bridge(goesOn, asked, signal);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (REFUSALS.has(asPolarError(error).reason)) return 'not_rendered';
      throw error;
    }
  }

  async #bridge(
    { count, ...end }: GoesOn,
    asked: Rendering,
    signal: AbortSignal,
  ): Promise<Int32Array | Drift> {
    const frame = await this.#frame(asked);
    const { messages } = asked;
    const head = { before: messages.slice(0, count - 1), turn: messages[count - 1] as JsonObject };
    const fresh = messages.slice(count);
    const sketch = sketchOf(head, fresh, frame.keepIds, asked.notes);
    const key = canonicalJson([keyOf(asked), [...sketch.before], sketch.turn('x'), [...sketch.fresh]]);
    const whole = [...sketch.before, sketch.realTurn, ...fresh];
    for (;;) {
      let isNew = false;
      const make = (): Promise<Shape> => {
        isNew = true;
        return this.#shape(sketch, frame, asked);
      };
      const shape = await this.#shapes.get(key, make);
      if ('fault' in shape) {
        const thought = shape.fault !== 'turn' && messages.some((message) => thinkingOf(message) !== '');
        return thought ? 'reasoning_dropped' : 'template_not_extending';
      }
      const rendered = await this.#render(sketched(whole, asked), signal);
      const tail = tailOf(rendered, shape.start, frame, end);
      if (tail !== undefined) return tail;
      if (isNew) return 'template_not_extending';
      // One that was kept may be of the day before: templates write the date.
      this.#shapes.delete(key);
    }
  }

  async #shape({ before, fresh, turn, hasThinking }: Sketch, frame: Frame, asked: Rendering): Promise<Shape> {
    const render = (messages: readonly JsonObject[]): Promise<Int32Array> => this.#own(messages, asked);
    const [one, other, served, otherThinking] = await Promise.all([
      render([...before, turn('x'), ...fresh]),
      render([...before, turn('y'), ...fresh]),
      render(before),
      hasThinking ? render([...before, turn('x', 'y'), ...fresh]) : undefined,
    ]);
    return shapeOf({ before: served, one, other, otherThinking }, frame);
  }

  #frame(asked: Rendering): Promise<TemplateFrame> {
    return this.#frames.get(keyOf(asked), async () => {
      const render = (...messages: JsonObject[]): Promise<Int32Array> => this.#own(messages, asked);
      const [x, y] = await Promise.all([render(user('x')), render(user('y'))]);
      const turn = (text: string): JsonObject[] => [
        user('x'),
        { role: 'assistant', content: text },
        user('x'),
      ];
      const [turnX, turnY] = await Promise.all([render(...turn('x')), render(...turn('y'))]);
      const turnEnd = commonSuffix(turnX, turnY)[0] ?? -1;
      return { turnEnd, trailer: commonSuffix(x, y), keepIds: await this.#writesIds(render) };
    });
  }

  /** A template that refuses the probe is taken for one that does. */
  async #writesIds(render: (...messages: JsonObject[]) => Promise<Int32Array>): Promise<boolean> {
    try {
      const [one, other] = await Promise.all([render(...probe('call00000')), render(...probe('call11111'))]);
      return one.length !== other.length || !startsWith(one, other);
    } catch {
      return true;
    }
  }

  /** A renderer counts only when it has rendered a prompt exactly as the engine did. */
  async #isProven({ root }: GoesOn, asked: Rendering): Promise<boolean> {
    const key = keyOf(asked);
    const messages = asked.messages.slice(0, root.messages);
    const prove = async (): Promise<boolean> => {
      const served = root.ids();
      // The engine too, where another one renders: its way to take ids is there or it is not.
      for (const render of new Set([this.#engineRender, this.#render])) {
        const ids = await render({ ...asked, messages }, AbortSignal.timeout(RENDER_MS));
        if (ids.length !== served.length || !startsWith(ids, served)) return false;
      }
      return true;
    };
    const nowMs = performance.now();
    const { proven, atMs } = this.#proofs.get(key, () => ({ atMs: nowMs, proven: prove() }));
    const isProven = await proven.catch((error) => {
      this.#proofs.delete(key);
      throw error;
    });
    if (!isProven && nowMs - atMs > RENDERER_PROOF_AGAIN_MS) this.#proofs.delete(key);
    return isProven;
  }

  /** What is kept does not end with the call that asked first. */
  #own(messages: readonly JsonObject[], asked: Rendering): Promise<Int32Array> {
    return this.#render(sketched(messages, asked), AbortSignal.timeout(RENDER_MS));
  }
}

const user = (content: string): JsonObject => ({ role: 'user', content });

const probe = (id: string): JsonObject[] => [
  user('x'),
  {
    role: 'assistant',
    content: 'x',
    tool_calls: [{ id, type: 'function', function: { name: 'x', arguments: '{}' } }],
  },
  { role: 'tool', tool_call_id: id, content: 'x' },
];

const sketched = (messages: readonly JsonObject[], { tools, settings }: Rendering): Rendering => ({
  messages,
  tools: tools.length === 0 ? [] : SKETCH_TOOLS,
  settings,
});

const keyOf = ({ tools, settings }: Rendering): string => canonicalJson([tools.length > 0, settings]);
