// From what a script wants done to a call of a tool that the harness has.
import type { Call } from '../reply/format.ts';
import type { ToolDefinition } from '../request.ts';
import type { ScriptCall } from './schema.ts';
import { asShell } from './shell.ts';

type Role = 'command' | 'path' | 'content' | 'old' | 'new';

/** Names that harnesses give to the same tool and the same argument, the likeliest first. */
const TOOLS = {
  shell: [
    'bash',
    'shell',
    'exec_command',
    'run_shell_command',
    'execute_command',
    'run_command',
    'run_commands',
    'terminal',
    'exec',
  ],
  read: ['read', 'read_file', 'view'],
  write: ['write', 'write_file', 'create_file', 'create'],
  edit: ['edit', 'edit_file', 'replace', 'str_replace'],
} as const;
type Capability = keyof typeof TOOLS;

const ARGUMENTS: Readonly<Record<Role, readonly string[]>> = {
  command: ['command', 'cmd', 'commands', 'script'],
  path: ['path', 'file_path', 'filePath', 'absolute_path', 'filename', 'file'],
  content: ['content', 'contents', 'file_text', 'text'],
  old: ['oldText', 'old_string', 'oldString', 'old_str', 'old_text'],
  new: ['newText', 'new_string', 'newString', 'new_str', 'new_text'],
};

interface Schema {
  readonly type?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
}

/**
 * The call for what the script wants. Where the harness has no tool for it, its shell does it; undefined where it
 * has none either.
 */
export function bindCall(wanted: ScriptCall, tools: readonly ToolDefinition[]): Call | undefined {
  if ('tool' in wanted) return { name: wanted.tool, arguments: wanted.arguments };
  return bindTo(wanted, tools) ?? bindTo({ shell: asShell(wanted) }, tools);
}

function bindTo(
  wanted: Exclude<ScriptCall, { tool: string }>,
  tools: readonly ToolDefinition[],
): Call | undefined {
  const [capability, values] = rolesOf(wanted);
  for (const name of TOOLS[capability] as readonly string[]) {
    const tool = tools.find((one) => one.function.name.toLowerCase() === name)?.function;
    const schema = tool?.parameters as Schema | undefined;
    const given = schema == null ? undefined : fill(schema, values);
    if (tool !== undefined && given !== undefined) return { name: tool.name, arguments: given };
  }
  return undefined;
}

function rolesOf(wanted: Exclude<ScriptCall, { tool: string }>): [Capability, Partial<Record<Role, string>>] {
  if ('shell' in wanted) return ['shell', { command: wanted.shell }];
  if ('read' in wanted) return ['read', { path: wanted.read }];
  if ('write' in wanted) return ['write', wanted.write];
  return ['edit', wanted.edit];
}

/** Arguments as the schema names them; undefined if it has no place for one of the values. */
function fill(schema: Schema, values: Partial<Record<Role, string>>): Record<string, unknown> | undefined {
  const properties = schema.properties ?? {};
  const given: Record<string, unknown> = {};
  const nested: Partial<Record<Role, string>> = {};
  for (const [role, value] of Object.entries(values) as [Role, string][]) {
    const name = ARGUMENTS[role].find((one) => one in properties);
    if (name === undefined) nested[role] = value;
    else given[name] = typed(properties[name], name, value);
  }
  if (Object.keys(nested).length > 0) {
    const list = properties['edits']?.items;
    const edit = list === undefined ? undefined : fill(list, nested);
    if (edit === undefined) return undefined;
    given['edits'] = [edit];
  }
  for (const name of schema.required ?? []) given[name] ??= placeholder(properties[name]);
  return given;
}

/** A list named for one command is its words; any other holds several of what it is named for. */
function typed(schema: Schema | undefined, name: string, value: string): unknown {
  if (schema?.type !== 'array') return value;
  return name === 'command' || name === 'cmd' ? ['bash', '-lc', value] : [value];
}

function placeholder(schema: Schema | undefined): unknown {
  switch (schema?.type) {
    case 'boolean':
      return false;
    case 'number':
    case 'integer':
      return 1;
    case 'array':
      return [];
    case 'object':
      return {};
    default:
      return 'as planned';
  }
}
