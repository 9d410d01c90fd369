// A tool call in the form of the coder models: <function=name><parameter=key>value</parameter></function>.
import type { ToolDefinition } from '../request.ts';

const CALL = /<function=([^>]+)>([\s\S]*?)<\/function>/;
const PARAMETER = /<parameter=([^>]+)>\n?([\s\S]*?)\n?<\/parameter>/g;

/** Values become what the tool's schema says; undefined if the text is no call. */
export function readXmlCall(
  text: string,
  tools: readonly ToolDefinition[],
): { name: string; arguments: string } | undefined {
  const match = CALL.exec(text);
  if (match === null) return undefined;
  const [, name = '', body = ''] = match;
  const types = typesOf(tools.find((tool) => tool.function.name === name));
  const fields = [...body.matchAll(PARAMETER)].map(([, key = '', value = '']) => [
    key,
    types.get(key) === 'string' ? value : jsonOr(value),
  ]);
  return { name, arguments: JSON.stringify(Object.fromEntries(fields)) };
}

function typesOf(tool: ToolDefinition | undefined): Map<string, unknown> {
  const properties = tool?.function.parameters?.['properties'];
  if (typeof properties !== 'object' || properties === null) return new Map();
  return new Map(
    Object.entries(properties).map(([key, schema]: [string, { type?: unknown } | null]) => [
      key,
      schema?.type,
    ]),
  );
}

function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
