// The tool calls of a stream as a client of each dialect puts them together: of a call's name it reads the first event alone.

/** Name and arguments. */
export type ShownCall = [name: string, args: string];

// biome-ignore lint/suspicious/noExplicitAny: the events of four dialects
type Event = any;

/** `text` is a stream of events of any dialect. */
export function callsShown(text: string): ShownCall[] {
  const calls = new Map<unknown, ShownCall>();
  for (const [place, name, args] of eventsIn(text).flatMap(piecesIn)) {
    const call = calls.get(place) ?? [name ?? '', ''];
    calls.set(place, [call[0], call[1] + args]);
  }
  return [...calls.values()];
}

const eventsIn = (text: string): Event[] =>
  [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => JSON.parse(data as string));

/** What an event tells of calls: which one, its name, a piece of its arguments. */
type Piece = [place: unknown, name: string | undefined, args: string];

function piecesIn(event: Event): Piece[] {
  switch (event.type) {
    case 'content_block_start':
      return event.content_block.type === 'tool_use' ? [[event.index, event.content_block.name, '']] : [];
    case 'content_block_delta':
      return event.delta.type === 'input_json_delta'
        ? [[event.index, undefined, event.delta.partial_json]]
        : [];
    case 'response.output_item.added':
      return event.item.type === 'function_call' ? [[event.output_index, event.item.name, '']] : [];
    case 'response.function_call_arguments.delta':
      return [[event.output_index, undefined, event.delta]];
    default:
      return [...chatPieces(event), ...googlePieces(event)];
  }
}

const chatPieces = ({ choices = [] }: Event): Piece[] =>
  choices.flatMap(({ delta }: Event) =>
    (delta.tool_calls ?? []).map(({ index, function: called }: Event): Piece => {
      return [index, called.name, called.arguments ?? ''];
    }),
  );

const googlePieces = ({ candidates = [] }: Event): Piece[] =>
  candidates
    .flatMap(({ content }: Event) => content.parts)
    .filter((part: Event) => part.functionCall !== undefined)
    .map(({ functionCall: { id, name, args } }: Event): Piece => [id, name, JSON.stringify(args)]);
